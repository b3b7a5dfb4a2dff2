//! Hash maps keyed with a secret: application and instance names are chosen by whoever registers, and must not be able
//! to make every key collide.

use core::fmt;
use core::hash::{BuildHasher, Hasher as _};

/// The SipHash of `core`. It is deprecated in favour of one that only `std` has; the algorithm is the same.
#[allow(
    deprecated,
    reason = "core has no other keyed hasher, and std is not ours to use here"
)]
pub(crate) type Hasher = core::hash::SipHasher;

/// Builds hashers from the key of the registry. Iteration order follows from the key, so nothing visible may depend on it.
#[derive(Clone, Copy)]
pub(crate) struct Keyed {
    key: [u64; 2],
}

impl Keyed {
    /// Hashes under `key`, which is [`Config::seed`](crate::Config::seed).
    pub(crate) const fn new(key: [u64; 2]) -> Self {
        Self { key }
    }

    /// The hash of an application and an id. Between them stands what no text contains.
    pub(crate) fn hash_key(&self, app: &str, id: &str) -> u64 {
        let mut hasher = self.build_hasher();
        hasher.write(app.as_bytes());
        hasher.write_u8(0xff);
        hasher.write(id.as_bytes());
        hasher.finish()
    }
}

impl fmt::Debug for Keyed {
    /// Does not show the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyed")
    }
}

impl BuildHasher for Keyed {
    type Hasher = Hasher;

    #[allow(deprecated, reason = "see `Hasher`")]
    fn build_hasher(&self) -> Hasher {
        Hasher::new_with_keys(self.key[0], self.key[1])
    }
}

/// A hasher that is the same on every node: for digests, never for a map.
#[allow(deprecated, reason = "see `Hasher`")]
pub(crate) fn unkeyed() -> Hasher {
    Hasher::new()
}

#[cfg(test)]
mod tests {
    use super::Keyed;
    use alloc::vec::Vec;
    use core::hash::{BuildHasher as _, Hasher as _};

    #[test]
    fn is_siphash_2_4_under_the_key() {
        // The reference vector of the SipHash paper: key 00..0f, message 00..0e.
        let keyed = Keyed::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let mut hasher = keyed.build_hasher();
        hasher.write(&(0..15).collect::<Vec<u8>>());
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn another_key_gives_another_hash() {
        let of = |key| Keyed::new(key).hash_one("APP");
        assert_eq!(of([1, 2]), of([1, 2]));
        assert_ne!(of([1, 2]), of([2, 1]));
    }

    #[test]
    fn where_the_application_ends_matters() {
        let keyed = Keyed::new([1, 2]);
        assert_eq!(keyed.hash_key("AB", "c"), keyed.hash_key("AB", "c"));
        assert_ne!(keyed.hash_key("AB", "c"), keyed.hash_key("A", "Bc"));
        assert_ne!(keyed.hash_key("AB", "c"), keyed.hash_key("AB", "d"));
    }
}
