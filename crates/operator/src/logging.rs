//! Logging to standard error and, with the feature `otlp`, traces to a collector.

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::OperatorError;
use crate::arguments::LogFormat;
#[cfg(feature = "otlp")]
use crate::telemetry::Telemetry;

/// Handle of the log output and, if configured, of the trace exporter.
#[derive(Debug)]
pub(crate) struct Logging {
    #[cfg(feature = "otlp")]
    telemetry: Option<Telemetry>,
}

impl Logging {
    /// Sends the spans that are still buffered.
    pub(crate) async fn stop(self) {
        #[cfg(feature = "otlp")]
        if let Some(telemetry) = self.telemetry {
            telemetry.shut_down().await;
        }
    }
}

/// Starts logging for the operator with this name. A subscriber that is already installed, for
/// example by a test, stays.
#[cfg_attr(
    not(feature = "otlp"),
    expect(unused_variables, reason = "only traces carry the operator's name")
)]
pub(crate) fn start(
    operator: &str,
    level: &str,
    format: LogFormat,
) -> Result<Logging, OperatorError> {
    // kube's client logs each failed connection as an error; our errors report it already.
    let directives = match level.contains('=') {
        true => level.to_owned(),
        false => format!("{level},kube_client::client::builder=off"),
    };
    let filter: Targets = directives
        .parse()
        .map_err(|cause| OperatorError::LogLevel {
            level: level.to_owned(),
            cause,
        })?;
    #[cfg(feature = "otlp")]
    if let Some(telemetry) = Telemetry::from_env(operator)? {
        telemetry.start(filter, format);
        return Ok(Logging {
            telemetry: Some(telemetry),
        });
    }
    let logs = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(std::io::stderr);
    let _ = match format {
        LogFormat::Text => {
            let logs = logs.with_ansi(is_terminal()).finish();
            logs.with(filter).try_init()
        }
        LogFormat::Json => {
            let logs = logs.json().flatten_event(true).finish();
            logs.with(filter).try_init()
        }
    };
    Ok(Logging {
        #[cfg(feature = "otlp")]
        telemetry: None,
    })
}

pub(crate) fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}
