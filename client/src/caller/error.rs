//! Why a call has no answer.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::balance::{Endpoint, NoInstance};

/// Why a call has no answer. Answers of any status are none of these.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The host is neither an application nor a virtual address of the registry, as it is known.
    Unknown {
        /// The host.
        name: String,
        /// How old that knowledge is; `None` if nothing has been read yet.
        age: Option<Duration>,
    },
    /// The name is known, but nobody can be called. Nothing was sent.
    Nobody(NoInstance),
    /// The error of the last try.
    Failed {
        /// As the service gave it.
        error: E,
        /// Who was called; `None` for requests whose host is no name.
        endpoint: Option<Endpoint>,
        /// How many were tried.
        tries: usize,
    },
    /// The last try took too long.
    TimedOut {
        /// Who was called.
        endpoint: Endpoint,
        /// How many were tried.
        tries: usize,
    },
}

impl<E> CallError<E> {
    /// Of a request that was passed through.
    pub(super) fn passed(error: E) -> Self {
        Self::Failed {
            error,
            endpoint: None,
            tries: 1,
        }
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, age: None } => {
                write!(f, "{name} is not known: nothing has been read from a server yet")
            }
            Self::Unknown { name, age: Some(age) } => write!(
                f,
                "{name} is neither an application nor a virtual address of the registry, as it was {} s ago",
                age.as_secs()
            ),
            Self::Nobody(none) => write!(f, "{none}"),
            Self::Failed {
                error,
                endpoint: Some(endpoint),
                tries,
            } => write!(f, "{endpoint}, of {tries} tried: {error}"),
            Self::Failed {
                error,
                endpoint: None,
                ..
            } => write!(f, "{error}"),
            Self::TimedOut { endpoint, tries } => {
                write!(f, "{endpoint}, of {tries} tried, did not answer in time")
            }
        }
    }
}

impl<E: Error + 'static> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Nobody(none) => Some(none),
            Self::Failed { error, .. } => Some(error),
            Self::Unknown { .. } | Self::TimedOut { .. } => None,
        }
    }
}
