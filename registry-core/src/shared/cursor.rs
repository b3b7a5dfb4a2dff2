//! Where a reader is who follows the changes.

use core::fmt;
use core::hash::BuildHasher as _;

use crate::hash::Keyed;

/// A place in the changes of one registry since its start, for readers to keep and hand back: `<boot>.<version>`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Cursor {
    boot: u64,
    version: u64,
}

impl Cursor {
    pub(super) const fn new(boot: u64, version: u64) -> Self {
        Self { boot, version }
    }

    /// Reads what [`Display`](fmt::Display) wrote, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let (boot, version) = text.split_once('.')?;
        let cursor = Self {
            boot: u64::from_str_radix(boot, 16).ok()?,
            version: version.parse().ok()?,
        };
        let written = alloc::format!("{cursor}");
        (written == text).then_some(cursor)
    }

    /// Which start of which registry it is of.
    pub fn boot(self) -> u64 {
        self.boot
    }

    /// The version up to which everything was seen.
    pub fn version(self) -> u64 {
        self.version
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.boot, self.version)
    }
}

/// A number that differs between starts as their seeds do, without telling the seed.
pub(super) fn boot(seed: [u64; 2]) -> u64 {
    Keyed::new(seed).hash_one("boot")
}

#[cfg(test)]
mod tests {
    use super::Cursor;
    use alloc::string::ToString as _;

    #[test]
    fn reads_what_it_wrote_and_nothing_else() {
        let cursor = Cursor::new(0xabc, 7);
        assert_eq!(cursor.to_string(), "0000000000000abc.7");
        assert_eq!(Cursor::parse("0000000000000abc.7"), Some(cursor));
        for other in [
            "",
            ".",
            "7",
            "abc.7",
            "0000000000000ABC.7",
            "0000000000000abc.07",
            "0000000000000abc.+7",
        ] {
            assert_eq!(Cursor::parse(other), None, "{other}");
        }
    }
}
