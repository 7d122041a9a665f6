//! The functions that users write: their signatures, their results, and the policy for their
//! errors.

mod action;
pub(crate) mod error_policy;
pub(crate) mod function;
pub(crate) mod kube_finalizer;
pub(crate) mod retries;
pub mod signature;

pub use self::action::{Action, Cleanup};
pub use self::function::{Reconcile, WithContext, WithState};
