//! How many tries beyond the first there may be, over all calls.

/// Tenths of a try: each call brings two, each further try costs ten.
#[derive(Debug)]
pub(super) struct Budget {
    tenths: u32,
}

/// At most so much is saved up: ten tries.
const MOST: u32 = 100;
const EARNED: u32 = 2;
const COST: u32 = 10;

impl Budget {
    pub(super) fn full() -> Self {
        Self { tenths: MOST }
    }

    /// There is a call.
    pub(super) fn earn(&mut self) {
        self.tenths = (self.tenths + EARNED).min(MOST);
    }

    /// Takes one try; false if there is none left.
    pub(super) fn spend(&mut self) -> bool {
        match self.tenths.checked_sub(COST) {
            Some(rest) => {
                self.tenths = rest;
                true
            }
            None => false,
        }
    }
}
