//! Numbers for random tests, the same for the same seed.

/// Xorshift64*: not the generator of the registry.
pub(crate) struct Numbers {
    state: u64,
}

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let number = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).expect("31 bits") % bound
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}
