//! Something that is measured: by criterion, which takes the time, and by `cargo xtask instructions`, which counts.

/// What is done again and again.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// How many of what it is named after one run does.
    pub(crate) items: u64,
    /// With how many instances its time is taken.
    pub(crate) instances: &'static [usize],
    /// Makes what it needs for so many instances.
    pub(crate) prepare: fn(usize) -> Run,
}

/// Does it once, and fails if that did not go as it should.
pub(crate) type Run = Box<dyn FnMut()>;

/// Sizes of a registry.
pub(crate) const FLEETS: &[usize] = &[10_000, 100_000];
