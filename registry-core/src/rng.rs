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

    /// Moves `count` random elements, each choice as likely as any other, to the front (a partial Knuth shuffle).
    pub(crate) fn choose<T>(&mut self, items: &mut [T], count: usize) {
        for chosen in 0..count.min(items.len()) {
            let other = chosen + self.below(items.len() - chosen);
            items.swap(chosen, other);
        }
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
    fn every_element_is_chosen_about_equally_often() {
        let mut rng = Rng::new(7);
        let mut chosen = [0_u32; 10];
        for _ in 0..10_000 {
            let mut items: [usize; 10] = core::array::from_fn(|index| index);
            rng.choose(&mut items, 3);
            for item in &items[..3] {
                chosen[*item] += 1;
            }
        }
        // 3,000 each on average with a standard deviation of 46.
        for (item, count) in chosen.iter().enumerate() {
            assert!((2_750..3_250).contains(count), "{item} was chosen {count} times");
        }
    }

    #[test]
    fn choosing_more_than_there_are_takes_all() {
        let mut items = [1, 2, 3];
        Rng::new(1).choose(&mut items, 9);
        items.sort_unstable();
        assert_eq!(items, [1, 2, 3]);
    }
}
