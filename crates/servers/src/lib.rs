//! HTTP servers of an operator, and the registry of its metrics.
//!
//! - [`HealthServer`] serves `/healthz` and `/readyz` with named checks.
//! - [`MetricsServer`] serves `/metrics`, with TLS and access control unless it is on loopback.
//! - [`HttpServer`] serves other short responses, such as debug information.
//! - [`HttpsServer`] serves requests with bodies, such as those of webhooks, over TLS.
//! - [`metrics`] has the registry, and counters, gauges and histograms with labels.
//!
//! A server binds its address when it is created, so that an address in use is an error at
//! start-up, and serves until its `CancellationToken` is cancelled. The number of connections, the
//! time to send a request and the size of its header are limited. Only an [`HttpsServer`] reads the
//! bodies of requests, within limits. The crate does not depend on controllers: a manager runs the
//! servers.
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//! use opkit_servers::{HealthServer, HealthServerOptions, ServerError};
//! use tokio_util::sync::CancellationToken;
//!
//! async fn serve_probes(stop: CancellationToken) -> Result<(), ServerError> {
//!     let mut options = HealthServerOptions::new(([0, 0, 0, 0], 8081).into());
//!     options.readyz = options.readyz.check("disk", || async {
//!         std::fs::metadata("/data").map(drop)
//!     });
//!     let server = HealthServer::listen(options).await?;
//!     Arc::new(server).serve(stop).await;
//!     Ok(())
//! }
//! ```

mod auth;
mod certificates;
mod error;
mod health;
mod http_server;
mod https_server;
mod listen;
pub mod metrics;
mod metrics_server;
mod process;

pub use certificates::ServerCertificate;
pub use error::ServerError;
pub use health::{Health, HealthServer, HealthServerOptions};
/// Crate of the requests and responses of [`HttpServer`].
pub use http;
pub use http_server::HttpServer;
pub use https_server::{BodyError, HttpsServer};
pub use metrics_server::{MetricsServer, MetricsServerOptions};
