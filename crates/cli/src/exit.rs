//! Exit codes of commands that have printed their result.

use std::fmt;
use std::process::ExitCode;

/// Error of a command whose printed result means a failure, so that no other message follows.
#[derive(Debug)]
pub(crate) struct Unsuccessful;

/// Exit code of a command whose printed result is no failure, but for which a script asked for a
/// code of its own.
#[derive(Debug)]
pub(crate) struct Printed(pub(crate) u8);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the printed result has the exit code {}", self.0)
    }
}

impl std::error::Error for Printed {}

impl fmt::Display for Unsuccessful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the printed result is a failure")
    }
}

impl std::error::Error for Unsuccessful {}

/// Returns the exit code of an error whose reason is printed already.
pub(crate) fn silent(error: &anyhow::Error) -> Option<ExitCode> {
    let printed = error.downcast_ref::<Printed>();
    let printed = printed.map(|Printed(code)| ExitCode::from(*code));
    printed.or_else(|| error.is::<Unsuccessful>().then_some(ExitCode::FAILURE))
}
