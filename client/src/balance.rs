//! Picking an instance to call: only those that are UP, in turns, those of the own zone first, and not those that keep
//! failing.
//!
//! * **Only UP.** Every other status is passed over, and so is an instance without a port to call ([`Endpoint::of`] has
//!   the rule).
//! * **In turns**, from a random place: whoever was picked longest ago is next. While two instances can be picked, neither
//!   is picked more than once more often than the other, whatever comes and goes besides.
//! * **Own zone first**, with spill-over as soon as its instances would get too much: [`Zones`].
//! * **Outliers** are left out for a while, by what callers report ([`Feedback`]): after 5 failures in a row, 30 seconds times
//!   how often it happened, at most 5 minutes, at most half of the instances ([`Outliers`]). When the time is over they
//!   take part again; the next failure leaves them out for longer, the next success clears them.
//! * **Rather any than none.** An instance that is left out is still picked when nobody else is there, or when everybody
//!   else has been tried for the same call.
//!
//! What is reported on an instance is forgotten when it leaves the list, is not UP any more, or is called elsewhere.

#[cfg(feature = "http")]
mod balancer;
mod outliers;
mod rotation;
mod target;
mod zones;

#[cfg(feature = "http")]
pub use balancer::{Absence, Balancer, NoInstance, Pick};
pub use outliers::Outliers;
pub use rotation::{BalanceConfig, Feedback, Figures, Listed, Picked, Rotation};
pub use target::{Addressing, Endpoint, Target};
pub use zones::Zones;
