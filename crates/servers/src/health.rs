//! Health probes: named checks, answered as controller-runtime and the API server answer them.

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
use crate::listen::{self, Answer, not_found, text};

/// How long a check may take.
const CHECK: Duration = Duration::from_secs(5);

type BoxError = Box<dyn Error + Send + Sync>;
type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// Named checks: all of them at a path, each one below it. There is always one, `ping`.
///
/// `/healthz` answers `ok`, and with `?verbose` what each check said; if one fails it answers 500,
/// and which ones, but not why: that is said at the path of the check, such as `/healthz/database`,
/// and in the log. `?exclude=database` leaves a check out. A check that takes longer than 5 s has
/// failed.
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
    /// `ping` alone, which is well as long as the process answers.
    pub fn new() -> Self {
        let checks = BTreeMap::new();
        Self { checks }.check("ping", || async { Ok::<_, BoxError>(()) })
    }

    /// Adds a check; one of the same name is replaced.
    pub fn check<E, Fut>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<BoxError> + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().map(|said| said.map_err(Into::into)).boxed());
        self.checks.insert(name.into(), check);
        self
    }

    /// The names of the checks, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.checks.keys().map(String::as_str)
    }

    /// Answers for what is left of the path behind that of these checks.
    async fn answer(&self, path: &str, query: &str) -> Answer {
        let name = path.trim_matches('/');
        if name.is_empty() {
            return self.all(query).await;
        }
        let Some(check) = self.checks.get(name) else {
            return not_found();
        };
        match run(check).await {
            Ok(()) => text(StatusCode::OK, "ok"),
            Err(error) => {
                let said = format!("internal server error: {error}\n");
                text(StatusCode::INTERNAL_SERVER_ERROR, said)
            }
        }
    }

    async fn all(&self, query: &str) -> Answer {
        let parameters = || form_urlencoded::parse(query.as_bytes());
        let is_verbose = parameters().any(|(name, _)| name == "verbose");
        let excluded = parameters().filter(|(name, _)| name == "exclude");
        let excluded: BTreeSet<_> = excluded.map(|(_, value)| value.into_owned()).collect();
        let checks = self.checks.iter().map(async |(name, check)| {
            if excluded.contains(name) {
                return (name, None);
            }
            (name, Some(run(check).await))
        });
        let mut said = String::new();
        let mut failed = Vec::new();
        for (name, outcome) in join_all(checks).await {
            said.push_str(&match outcome {
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
                "health checks cannot be excluded, because there are none"
            );
            said.push_str(&format!(
                "warn: some health checks cannot be excluded: no matches for {unknown}\n"
            ));
        }
        if !failed.is_empty() {
            info!(failed = failed.join(", "), "healthz check failed");
            said.push_str("healthz check failed\n");
            return text(StatusCode::INTERNAL_SERVER_ERROR, said);
        }
        if !is_verbose {
            return text(StatusCode::OK, "ok");
        }
        said.push_str("healthz check passed\n");
        text(StatusCode::OK, said)
    }
}

/// Runs a check; the error is its chain of causes in one line.
async fn run(check: &Check) -> Result<(), String> {
    match timeout(CHECK, check()).await {
        Ok(result) => result.map_err(|error| one_line(&*error)),
        Err(_) => Err(format!("no answer within {} s", CHECK.as_secs())),
    }
}

/// What a [`HealthServer`] serves, and where.
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
    /// Where to listen.
    pub address: SocketAddr,
    /// Whether the process works, or had better be started again: `/healthz`.
    pub healthz: Health,
    /// Whether it is ready for what others want of it: `/readyz`.
    pub readyz: Health,
}

impl HealthServerOptions {
    /// On this address, with `ping` alone.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            healthz: Health::new(),
            readyz: Health::new(),
        }
    }
}

/// Answers `/healthz` and `/readyz`, each with the paths of its checks below.
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
    /// Listens. Connections wait until it runs.
    ///
    /// # Errors
    /// When the address is in use, or not of this machine.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; requests that are under way then have 5 s to end.
    ///
    /// # Cancel safety
    /// Dropping the future ends all connections at once.
    pub async fn serve(self: Arc<Self>, stop: CancellationToken) {
        let server = self.clone();
        let handler: listen::Handler = Arc::new(move |request| {
            let server = server.clone();
            async move { server.answer(&request).await }.boxed()
        });
        info!(address = %self.address, "serving health probes");
        listen::serve(&self.listener, None, handler, stop).await;
    }

    async fn answer(&self, request: &Parts) -> Answer {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        }
        let query = request.uri.query().unwrap_or_default();
        for (prefix, health) in [("/healthz", &self.healthz), ("/readyz", &self.readyz)] {
            if let Some(path) = request.uri.path().strip_prefix(prefix)
                && (path.is_empty() || path.starts_with('/'))
            {
                return health.answer(path, query).await;
            }
        }
        not_found()
    }
}

#[cfg(test)]
mod tests;
