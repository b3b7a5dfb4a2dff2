//! What an agent counts, and why it wants to be called.

/// Why an agent wants to be called at a time.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Reason {
    /// The instance is to be registered.
    Register,
    /// The lease is to be renewed.
    Renew,
    /// The owner is to be asked for the health, or was asked and said nothing.
    Health,
    /// Leaving has taken long enough.
    Leave,
    /// The registry is to be read.
    Fetch,
}

/// Counts since the agent was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Registrations that were taken.
    pub registrations: u64,
    /// Registrations that failed.
    pub registrations_failed: u64,
    /// Renewals that were taken.
    pub renewals: u64,
    /// Renewals of an instance that the server did not know.
    pub renewals_missing: u64,
    /// Renewals that failed.
    pub renewals_failed: u64,
    /// Cancels that failed.
    pub cancels_failed: u64,
    /// Changes of content that had to wait because there were too many.
    pub delayed_changes: u64,
    /// Full lists taken over.
    pub full: u64,
    /// Full lists of which the server said that what is held is current.
    pub unchanged: u64,
    /// Deltas taken over.
    pub delta: u64,
    /// Answers of feeds taken over.
    pub feed: u64,
    /// Reads that failed.
    pub fetches_failed: u64,
    /// Deltas after which what was held had another hash than the server.
    pub hash_mismatches: u64,
    /// Deltas whose hash was not compared because instances could not be understood.
    pub hash_skipped: u64,
    /// Empty lists that were not taken over.
    pub held_empty: u64,
    /// Cursors that a feed did not know any more.
    pub feed_gone: u64,
    /// Times that another server was chosen than the one before.
    pub switches: u64,
    /// Answers to nothing that was asked, or to what nobody waits for any more.
    pub stray_answers: u64,
}
