//! Exit codes of commands that have printed their result.

use std::fmt;
use std::process::ExitCode;

/// Error of a command whose printed result means a failure, so that no other message follows.
#[derive(Debug)]
pub(crate) struct Unsuccessful;

impl fmt::Display for Unsuccessful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the printed result is a failure")
    }
}

impl std::error::Error for Unsuccessful {}

/// Returns the exit code of an error whose reason is printed already.
pub(crate) fn silent(error: &anyhow::Error) -> Option<ExitCode> {
    error.is::<Unsuccessful>().then_some(ExitCode::FAILURE)
}
