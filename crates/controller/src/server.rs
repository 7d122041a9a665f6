//! The servers of an operator: health probes, metrics, and [`HttpServer`] for other short
//! responses.
//!
//! They listen before the manager runs, so that an address in use is an error of the start, and are
//! [runnables](crate::AnyRunnable) of the first group: they answer while the caches fill, and until
//! everything else has ended. What they accept is bounded: connections, the time to send a request,
//! its size. None reads the body of a request.

mod auth;
mod certificates;
mod error;
mod health;
mod http;
mod listen;
mod metrics;
mod process;

pub use self::error::ServerError;
pub use self::health::{Health, HealthServer, HealthServerOptions};
pub use self::http::HttpServer;
pub use self::metrics::{MetricsServer, MetricsServerOptions};
