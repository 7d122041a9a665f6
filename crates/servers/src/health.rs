//! Health probes with named checks. The responses are those of controller-runtime and of the API
//! server.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use http::request::Parts;
use http::{Method, StatusCode};
use opkit_client::one_line;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::ServerError;
use crate::listen::{self, HttpResponse, not_found, text};

/// Time limit of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

type BoxError = Box<dyn Error + Send + Sync>;
type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// Set of named health checks. There is always a check `ping`, which succeeds.
///
/// If all checks succeed, `/healthz` returns `ok`, or one line for each check with `?verbose`. If a
/// check fails, `/healthz` returns status 500 and the names of the failed checks. The reasons are
/// in the log and in the response of the path of the check, such as `/healthz/database`.
/// `?exclude=database` skips a check. A check that takes longer than 5 s fails.
///
/// # Examples
/// ```
/// use opkit_servers::Health;
///
/// let health = Health::new().check("database", || async {
///     std::net::TcpStream::connect("127.0.0.1:1").map(drop)
/// });
/// assert_eq!(health.names().collect::<Vec<_>>(), ["database", "ping"]);
/// ```
#[derive(Clone)]
pub struct Health {
    checks: BTreeMap<String, Check>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.checks.keys()).finish()
    }
}

impl Health {
    /// Creates a set with the check `ping` only, which succeeds as long as the process responds.
    pub fn new() -> Self {
        let checks = BTreeMap::new();
        Self { checks }.check("ping", || async { Ok::<_, BoxError>(()) })
    }

    /// Adds a check. A check with the same name is replaced.
    pub fn check<E, Fut>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<BoxError> + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        let check: Check =
            Arc::new(move || check().map(|result| result.map_err(Into::into)).boxed());
        self.checks.insert(name.into(), check);
        self
    }

    /// Returns the names of the checks, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.checks.keys().map(String::as_str)
    }

    /// Returns the response for `path`, which is the name of a check, or is empty for all checks.
    async fn respond(&self, path: &str, query: &str) -> HttpResponse {
        let name = path.trim_matches('/');
        if name.is_empty() {
            return self.respond_all(query).await;
        }
        let Some(check) = self.checks.get(name) else {
            return not_found();
        };
        match run_check(check).await {
            Ok(()) => text(StatusCode::OK, "ok"),
            Err(error) => {
                let body = format!("internal server error: {error}\n");
                text(StatusCode::INTERNAL_SERVER_ERROR, body)
            }
        }
    }

    /// Runs all checks that the query does not exclude, and returns the response.
    async fn respond_all(&self, query: &str) -> HttpResponse {
        let parameters = || form_urlencoded::parse(query.as_bytes());
        let is_verbose = parameters().any(|(name, _)| name == "verbose");
        let excluded = parameters().filter(|(name, _)| name == "exclude");
        let excluded: BTreeSet<_> = excluded.map(|(_, value)| value.into_owned()).collect();
        let checks = self.checks.iter().map(async |(name, check)| {
            if excluded.contains(name) {
                return (name, None);
            }
            (name, Some(run_check(check).await))
        });
        let mut body = String::new();
        let mut failed = Vec::new();
        for (name, outcome) in join_all(checks).await {
            body.push_str(&match outcome {
                None => format!("[+]{name} excluded: ok\n"),
                Some(Ok(())) => format!("[+]{name} ok\n"),
                Some(Err(error)) => {
                    failed.push(format!("{name}: {error}"));
                    format!("[-]{name} failed: reason withheld\n")
                }
            });
        }
        let unknown = excluded
            .iter()
            .filter(|name| !self.checks.contains_key(*name));
        let unknown: Vec<_> = unknown.map(|name| format!("{name:?}")).collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(",");
            debug!(
                unknown,
                "there are no health checks with the names to exclude"
            );
            body.push_str(&format!(
                "warn: some health checks cannot be excluded: no matches for {unknown}\n"
            ));
        }
        if !failed.is_empty() {
            info!(failed = failed.join(", "), "healthz check failed");
            body.push_str("healthz check failed\n");
            return text(StatusCode::INTERNAL_SERVER_ERROR, body);
        }
        if !is_verbose {
            return text(StatusCode::OK, "ok");
        }
        body.push_str("healthz check passed\n");
        text(StatusCode::OK, body)
    }
}

/// Runs a check. The error is the chain of causes in one line.
async fn run_check(check: &Check) -> Result<(), String> {
    match timeout(CHECK_TIMEOUT, check()).await {
        Ok(result) => result.map_err(|error| one_line(&*error)),
        Err(_) => Err(format!("no response within {} s", CHECK_TIMEOUT.as_secs())),
    }
}

/// Address and checks of a [`HealthServer`].
///
/// # Examples
/// ```
/// let mut options = opkit_servers::HealthServerOptions::new("127.0.0.1:0".parse().unwrap());
/// options.readyz = options.readyz.check("queue", || async { Ok::<_, std::io::Error>(()) });
/// assert_eq!(options.readyz.names().count(), 2);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HealthServerOptions {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Checks of `/healthz`, the liveness probe. If a check fails, the process should be restarted.
    pub healthz: Health,
    /// Checks of `/readyz`, the readiness probe. If a check fails, the process should get no
    /// requests.
    pub readyz: Health,
}

impl HealthServerOptions {
    /// Creates options for `address`, with the check `ping` only.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            healthz: Health::new(),
            readyz: Health::new(),
        }
    }
}

/// HTTP server of `/healthz` and `/readyz`, and of one path below them for each check.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use opkit_servers::{HealthServer, HealthServerOptions, ServerError};
/// use tokio_util::sync::CancellationToken;
///
/// async fn serve_probes(stop: CancellationToken) -> Result<(), ServerError> {
///     let options = HealthServerOptions::new(([0, 0, 0, 0], 8081).into());
///     let server = HealthServer::listen(options).await?;
///     println!("probes at http://{}", server.address());
///     Arc::new(server).serve(stop).await;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct HealthServer {
    listener: TcpListener,
    address: SocketAddr,
    healthz: Health,
    readyz: Health,
}

impl HealthServer {
    /// Binds the address. Connections are accepted once [`serve`](Self::serve) is called.
    ///
    /// # Errors
    /// Returns an error if the address is in use or does not belong to this machine.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn listen(options: HealthServerOptions) -> Result<Self, ServerError> {
        let (listener, address) = listen::bind("health probes", options.address).await?;
        Ok(Self {
            listener,
            address,
            healthz: options.healthz,
            readyz: options.readyz,
        })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled. Requests in progress then have 5 s to complete.
    ///
    /// # Cancel safety
    /// Dropping the future closes all connections immediately.
    pub async fn serve(self: Arc<Self>, stop: CancellationToken) {
        let server = self.clone();
        let handler = listen::without_body(move |request| {
            let server = server.clone();
            async move { server.respond(&request).await }
        });
        info!(address = %self.address, "serving health probes");
        listen::serve(&self.listener, None, handler, stop).await;
    }

    /// Returns the response to a request.
    async fn respond(&self, request: &Parts) -> HttpResponse {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        }
        let query = request.uri.query().unwrap_or_default();
        for (prefix, health) in [("/healthz", &self.healthz), ("/readyz", &self.readyz)] {
            if let Some(path) = request.uri.path().strip_prefix(prefix)
                && (path.is_empty() || path.starts_with('/'))
            {
                return health.respond(path, query).await;
            }
        }
        not_found()
    }
}

#[cfg(test)]
mod tests;
