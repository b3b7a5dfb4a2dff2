//! The copy on disk: what a consumer begins with when it starts and no server answers.
//!
//! ```no_run
//! use eureka_client::cache::copy::DiskCopy;
//! use eureka_client::call::Scope;
//!
//! let copy = DiskCopy::new("/var/lib/orders/registry", &Scope::All, &[]);
//! if let Some(saved) = copy.load() {
//!     println!("{} instances, as of {} ms", saved.instances.len(), saved.at.0);
//! }
//! ```
//!
//! # The file
//!
//! One line, then the registry in Eureka's own JSON, as `GET /eureka/apps` gives it:
//!
//! ```text
//! EUREKA-COPY <version> <CRC-32 of all that follows, hexadecimal> <wall time, ms> <bytes of JSON> <what is in it>
//! ```
//!
//! It is written to a file beside it, synced, and renamed, so that whoever reads finds a whole one: the old or the new.
//! Only its owner may read it (on Unix), for metadata may hold what is not for everybody. Two processes may name the same
//! path; the last one to write wins. A symbolic link is followed when reading, and *replaced* when writing, as renaming
//! does: what it pointed to stays as it is. A dead process may leave a temporary file; it is removed by a later one.
//!
//! What is foreign, damaged, of a newer version or of another scope is refused, with the reason, and stays where it is
//! until the next copy replaces it. A directory, a pipe or a device is never replaced, nor what a link to one is.

mod file;
mod header;
mod keep;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use eureka_registry_core::wire::{Codec, DecodeError, Format, ListFrame, read_applications, write_list};
use eureka_registry_core::{LeaseView, Snapshot, Wall};

use crate::call::Scope;
use header::Header;

pub use keep::keep;

/// A larger copy is neither written nor read: about 700,000 instances.
pub const BODY_MAX: u64 = 1 << 30;

/// A file that holds a copy of a registry. Everything here waits for the disk: call it where that does no harm.
#[derive(Debug)]
pub struct DiskCopy {
    path: PathBuf,
    subject: String,
    interval: Duration,
    leftovers_removed: AtomicBool,
    written: AtomicU64,
    failed: AtomicU64,
}

/// What a copy holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Saved {
    /// When a server last confirmed it.
    pub at: Wall,
    /// The instances.
    pub instances: Vec<LeaseView>,
    /// How many instances could not be understood and are missing.
    pub left_out: usize,
}

/// How often it was written, since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CopyStats {
    /// How often.
    pub written: u64,
    /// How often that failed.
    pub failed: u64,
}

/// Why there is no copy to begin with, or none was written. A copy that was there is still there.
#[derive(Debug)]
#[non_exhaustive]
pub enum CopyError {
    /// The disk said no, to what.
    Disk(&'static str, io::Error),
    /// The path names a directory, a pipe, or another thing that is no file.
    NoFile,
    /// The file is something else, or its first line is damaged.
    Foreign,
    /// It was written by a newer version of this crate.
    Version(u64),
    /// It is of another scope, or of other regions: which.
    Subject(String),
    /// It is longer or shorter than it says.
    Length {
        /// What its first line says.
        told: u64,
        /// What is there.
        found: u64,
    },
    /// The check sum does not fit.
    Checksum,
    /// More than [`BODY_MAX`].
    TooLarge(u64),
    /// Undamaged, but not to be read.
    Body(DecodeError),
}

impl DiskCopy {
    /// The copy at this path, of what `scope` and `regions` (as in [`Call::Fetch`](crate::call::Call::Fetch)) name. Touches
    /// nothing.
    pub fn new(path: impl Into<PathBuf>, scope: &Scope, regions: &[Arc<str>]) -> Self {
        Self {
            path: path.into(),
            subject: header::subject(scope, regions),
            interval: keep::INTERVAL,
            leftovers_removed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// The same, written at most every so often by [`keep()`]; 30 seconds otherwise.
    #[must_use]
    pub fn every(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds, if there is one to be used; what is refused is logged as a warning.
    pub fn load(&self) -> Option<Saved> {
        match self.read() {
            Ok(None) => None,
            Ok(Some(saved)) => {
                if saved.left_out > 0 {
                    tracing::warn!(
                        path = %self.path.display(),
                        left_out = saved.left_out,
                        "instances in the registry copy were not understood and are missing"
                    );
                }
                Some(saved)
            }
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the registry copy is not used");
                None
            }
        }
    }

    /// What it holds; `None` if there is no file.
    pub fn read(&self) -> Result<Option<Saved>, CopyError> {
        let Some((header, body)) = file::read(&self.path, &self.subject)? else {
            return Ok(None);
        };
        let list = read_applications(Format::Json, &body).map_err(CopyError::Body)?;
        Ok(Some(Saved {
            at: header.saved,
            instances: list.instances,
            left_out: list.left_out,
        }))
    }

    /// Replaces it by `snapshot`, which a server confirmed at `saved`.
    pub fn write(&self, saved: Wall, snapshot: &Snapshot) -> Result<(), CopyError> {
        let result = self.try_write(saved, snapshot);
        let counter = if result.is_ok() {
            &self.written
        } else {
            &self.failed
        };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// How often it was written.
    pub fn stats(&self) -> CopyStats {
        CopyStats {
            written: self.written.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    fn try_write(&self, saved: Wall, snapshot: &Snapshot) -> Result<(), CopyError> {
        if !self.leftovers_removed.swap(true, Ordering::Relaxed) {
            file::remove_leftovers(saved, &self.path);
        }
        let instances: Vec<Arc<LeaseView>> = snapshot.instances().cloned().collect();
        let frame = ListFrame {
            version: "1",
            hash: &snapshot.hash(),
            tell_empty: false,
        };
        let body = write_list(Codec::Json, &frame, &instances);
        let length = body.len() as u64;
        if length > BODY_MAX {
            return Err(CopyError::TooLarge(length));
        }
        let header = Header { saved, length };
        file::replace(saved, &self.path, &[&header.line(&self.subject, &body), &body])
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(what, error) => write!(f, "cannot {what}: {error}"),
            Self::NoFile => f.write_str("not a file"),
            Self::Foreign => f.write_str("not a registry copy, or its first line is damaged"),
            Self::Version(version) => write!(f, "of a newer version ({version})"),
            Self::Subject(subject) => write!(f, "a copy of something else ({subject})"),
            Self::Length { told, found } => {
                write!(f, "damaged: it says that {told} bytes follow, and {found} do")
            }
            Self::Checksum => f.write_str("damaged: its check sum does not fit"),
            Self::TooLarge(length) => write!(f, "larger than {BODY_MAX} bytes ({length})"),
            Self::Body(error) => write!(f, "not to be read: {error}"),
        }
    }
}

impl std::error::Error for CopyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk(_, error) => Some(error),
            Self::Body(error) => Some(error),
            Self::NoFile
            | Self::Foreign
            | Self::Version(_)
            | Self::Subject(_)
            | Self::Length { .. }
            | Self::Checksum
            | Self::TooLarge(_) => None,
        }
    }
}
