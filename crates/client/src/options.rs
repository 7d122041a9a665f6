//! Options of lists, watches, writes and deletions. All clients of this crate take the same
//! options.

mod delete;
mod list;
mod patch;
mod write;

pub use self::delete::{DeleteOptions, Propagation};
pub use self::list::{ListOptions, VersionMatch};
pub use self::patch::Patch;
pub use self::write::{FieldValidation, WriteOptions};
