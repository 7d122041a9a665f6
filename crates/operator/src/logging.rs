//! Logs, to standard error.

use tracing_subscriber::EnvFilter;

use crate::OperatorError;
use crate::arguments::LogFormat;

/// Starts logging. A subscriber that is there already, as in a test, stays.
pub(crate) fn start(level: &str, format: LogFormat) -> Result<(), OperatorError> {
    // kube's client logs each failed connection as an error, which our errors say as well.
    let directives = match level.contains('=') {
        true => level.to_owned(),
        false => format!("{level},kube_client::client::builder=off"),
    };
    let filter = EnvFilter::try_new(directives).map_err(|cause| OperatorError::LogLevel {
        level: level.to_owned(),
        cause,
    })?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let _ = match format {
        LogFormat::Text => logs
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    Ok(())
}
