//! Seeded random numbers.

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(super) struct Rng {
    state: u64,
}

impl Rng {
    /// The sequence of `seed`.
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `from` to just below `to`.
    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(to - from);
        from + (wide >> 64) as u64
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.between(0, bound as u64) as usize
    }

    /// True so many times of a thousand.
    pub(super) fn permille(&mut self, share: u64) -> bool {
        self.between(0, 1_000) < share
    }

    /// One of them.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
