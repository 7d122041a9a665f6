//! The HTTP servers of an operator: [health probes](HealthServer), [metrics](MetricsServer), and
//! [`HttpServer`] for other short responses; and the [registry of metrics](metrics).
//!
//! A server listens when it is created, so that an address in use is an error at the start, and
//! serves until its token is cancelled. Connections, the time to send a request and its size are
//! bounded. No server reads the body of a request. This crate does not know controllers: a manager
//! runs the servers.

mod auth;
mod certificates;
mod error;
mod health;
mod http_server;
mod listen;
pub mod metrics;
mod metrics_server;
mod process;

pub use error::ServerError;
pub use health::{Health, HealthServer, HealthServerOptions};
pub use http_server::HttpServer;
pub use metrics_server::{MetricsServer, MetricsServerOptions};
