//! Seeded random numbers, for nothing secret: the choice of victims must be fair and repeatable.

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    /// The sequence of `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, each as likely as the others to within 2^-64 of `bound`. Panics if `bound` is zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below zero");
        let wide = u128::from(self.next_u64()) * (bound as u128);
        (wide >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn follows_the_published_sequence() {
        let mut rng = Rng::new(1_234_567);
        let first = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn every_number_below_the_bound_is_as_likely() {
        let mut rng = Rng::new(7);
        let mut drawn = [0_u32; 10];
        for _ in 0..30_000 {
            drawn[rng.below(10)] += 1;
        }
        // 3,000 each on average with a standard deviation of 52.
        for (number, count) in drawn.iter().enumerate() {
            assert!((2_750..3_250).contains(count), "{number} was drawn {count} times");
        }
    }
}
