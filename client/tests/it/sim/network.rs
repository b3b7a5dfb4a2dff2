//! Who reaches whom, and how fast.

/// What lies between a client and a server, or between two servers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// Nothing passes there, and nothing comes back, until then.
    pub(super) cut: [u64; 2],
    /// Of a thousand messages so many are lost, until then.
    pub(super) loss: (u64, u64),
    /// Messages take up to so long, until then.
    pub(super) slow: (u64, u64),
}

/// The way there, or back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    There,
    Back,
}

impl Link {
    /// How long a message takes; `None` if it does not arrive.
    pub(super) fn pass(&self, t: u64, way: Way, rng: &mut fastrand::Rng) -> Option<u64> {
        let lost = t < self.loss.1 && rng.u64(0..1_000) < self.loss.0;
        let cut = t < self.cut[way as usize];
        let slow = if t < self.slow.1 {
            rng.u64(0..=self.slow.0)
        } else {
            0
        };
        (!lost && !cut).then(|| slow + rng.u64(1..=40))
    }

    /// Whether everything passes in time.
    pub(super) fn is_good(&self, t: u64) -> bool {
        t >= self.cut[0] && t >= self.cut[1] && t >= self.loss.1 && t >= self.slow.1
    }

    /// As if nothing had been.
    pub(super) fn heal(&mut self) {
        *self = Self::default();
    }
}
