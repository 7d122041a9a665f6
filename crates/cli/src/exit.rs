//! Exit codes of commands that have printed their result, of wrong usage, and of interruptions.

use std::fmt;
use std::process::ExitCode;

use tokio::signal::unix::SignalKind;

/// Error of a command whose printed result means a failure, so that no other message follows.
#[derive(Debug)]
pub(crate) struct Unsuccessful;

/// Exit code of a command whose printed result is no failure, but for which a script asked for a
/// code of its own.
#[derive(Debug)]
pub(crate) struct Printed(pub(crate) u8);

/// Error of a command that a signal has ended.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) SignalKind);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Error of arguments that do not go together, which clap cannot check.
#[derive(Debug)]
pub(crate) struct WrongUsage(pub(crate) &'static str);

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for WrongUsage {}

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

/// Returns the exit code that a shell reports for a program that a signal has ended.
pub(crate) fn interrupted(error: &anyhow::Error) -> Option<ExitCode> {
    let Interrupted(signal) = error.downcast_ref::<Interrupted>()?;
    let code = u8::try_from(signal.as_raw_value()).unwrap_or_default();
    Some(ExitCode::from(code.saturating_add(128)))
}
