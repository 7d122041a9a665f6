//! Aggregated API servers: requests for the group versions of an APIService with a Service go to
//! that Service.
//!
//! One task keeps a [`Route`] for each such APIService: it checks whether the API server responds,
//! writes the condition `Available`, and downloads the discovery document and the index of OpenAPI
//! documents. A request is forwarded with the headers and the certificate of a front proxy, by
//! which the aggregated API server knows the user.

mod availability;
mod documents;
mod front_proxy;
mod proxy;
mod transport;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::error::StartError;
use crate::object;
use crate::registry::Registry;
use documents::Documents;
pub(crate) use front_proxy::{FRONT_PROXY, FrontProxy};
pub(crate) use proxy::{Origin, forward};
use transport::Transport;

/// The resource name of APIServices.
pub(crate) const API_SERVICES: &str = "apiservices.apiregistration.k8s.io";
/// Time between two checks of an API server that is available.
const RESYNC: Duration = Duration::from_secs(30);
/// Time until the first repeated check of an API server that is not available. Each further pause
/// is twice as long, up to [`RESYNC`].
const RETRY: Duration = Duration::from_millis(100);

/// Group and version.
type GroupVersion = (String, String);
type Routes = BTreeMap<GroupVersion, Arc<Route>>;

/// The aggregated API servers of a server.
#[derive(Debug)]
pub(crate) struct Aggregator {
    front_proxy: FrontProxy,
    routes: RwLock<Arc<Routes>>,
    /// Whether there is a route, so that other servers do not lock `routes` for each request.
    has_routes: AtomicBool,
    changed: Notify,
}

/// The way to the aggregated API server of one group version.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    /// The `spec` of the APIService.
    spec: Value,
    service: ServiceReference,
    transport: Result<Transport, String>,
    is_available: bool,
    pub(crate) documents: Documents,
}

/// The Service that an APIService names.
#[derive(Clone, Debug)]
struct ServiceReference {
    namespace: String,
    name: String,
    port: u16,
}

impl Aggregator {
    pub(crate) fn new() -> Result<Self, StartError> {
        Ok(Self {
            front_proxy: FrontProxy::create()?,
            routes: RwLock::default(),
            has_routes: AtomicBool::new(false),
            changed: Notify::new(),
        })
    }

    /// Returns the certificates with which the server forwards requests.
    pub(crate) fn front_proxy(&self) -> &FrontProxy {
        &self.front_proxy
    }

    /// Checks all aggregated API servers soon, because of a change of an object of `resource`.
    /// Does nothing for a resource on which no route depends.
    pub(crate) fn on_change(&self, resource: &str) {
        let is_relevant = match resource {
            API_SERVICES => true,
            "services" | "endpointslices.discovery.k8s.io" => self.has_routes(),
            _ => false,
        };
        if is_relevant {
            self.changed.notify_one();
        }
    }

    /// Returns the route of a request, or `None` if this server responds itself. `path` is the path
    /// of the request, split at its slashes.
    pub(crate) fn route(&self, path: &[&str]) -> Option<Arc<Route>> {
        if !self.has_routes() {
            return None;
        }
        let (group, version) = match *path {
            ["api", version, ..] => ("", version),
            ["apis", group, version, ..] | ["openapi", "v3", "apis", group, version] => {
                (group, version)
            }
            _ => return None,
        };
        let key = (group.to_owned(), version.to_owned());
        self.routes.read().get(&key).cloned()
    }

    /// Returns all routes, sorted by group and version.
    pub(crate) fn routes(&self) -> Vec<Arc<Route>> {
        match self.has_routes() {
            true => self.routes.read().values().cloned().collect(),
            false => Vec::new(),
        }
    }

    fn has_routes(&self) -> bool {
        self.has_routes.load(Ordering::Acquire)
    }

    fn set(&self, routes: Routes) {
        let has_routes = !routes.is_empty();
        *self.routes.write() = Arc::new(routes);
        self.has_routes.store(has_routes, Ordering::Release);
    }
}

impl Route {
    /// Returns the route for an APIService. The transport and the documents of `previous` are kept
    /// while the `spec` is the same.
    fn new(api_service: &Value, front_proxy: &FrontProxy, previous: Option<&Self>) -> Self {
        let spec = object::at(api_service, &["spec"]);
        let previous = previous.filter(|previous| previous.spec == *spec);
        let port = object::int(spec, &["service", "port"]);
        Self {
            group: object::text(spec, &["group"]).to_owned(),
            version: object::text(spec, &["version"]).to_owned(),
            group_priority: object::int(spec, &["groupPriorityMinimum"]),
            version_priority: object::int(spec, &["versionPriority"]),
            spec: spec.clone(),
            service: ServiceReference {
                namespace: object::text(spec, &["service", "namespace"]).to_owned(),
                name: object::text(spec, &["service", "name"]).to_owned(),
                port: u16::try_from(port).unwrap_or(443),
            },
            transport: match previous {
                Some(previous) => previous.transport.clone(),
                None => transport::create(api_service, front_proxy.client()),
            },
            is_available: availability::is_available(api_service),
            documents: previous.map_or_else(Documents::default, |route| route.documents.clone()),
        }
    }

    /// Returns the path of the group version, such as `/apis/metrics.k8s.io/v1beta1`.
    fn path(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    /// Returns the name of the APIService.
    fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Route")
            .field("api_service", &self.name())
            .field("service", &self.service)
            .field("is_available", &self.is_available)
            .finish_non_exhaustive()
    }
}

/// Keeps the routes of a server up to date until `stop` is cancelled.
pub(crate) async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    let aggregator = &registry.aggregator;
    let mut retry = RETRY;
    loop {
        let synced = tokio::select! {
            synced = sync(&registry) => synced,
            () = stop.cancelled() => return,
        };
        let pause = match synced {
            Synced::Nothing | Synced::AllAvailable => {
                retry = RETRY;
                RESYNC
            }
            Synced::SomeUnavailable => {
                let pause = retry;
                retry = RESYNC.min(retry.saturating_mul(2));
                pause
            }
        };
        tokio::select! {
            () = aggregator.changed.notified() => {}
            // Without routes there is nothing to check, and no timer that would wake a test with a
            // paused clock.
            () = tokio::time::sleep(pause), if synced != Synced::Nothing => {}
            () = stop.cancelled() => return,
        }
    }
}

/// The result of a check of all routes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Synced {
    /// There are no routes.
    Nothing,
    AllAvailable,
    SomeUnavailable,
}

/// Checks all aggregated API servers at the same time.
async fn sync(registry: &Registry) -> Synced {
    let aggregator = &registry.aggregator;
    let (api_services, _) = registry.store.list(API_SERVICES, None);
    let previous = aggregator.routes.read().clone();
    let mut routes = Routes::new();
    for api_service in &api_services {
        if object::at(api_service, &["spec", "service"]).is_null() {
            continue;
        }
        let spec = object::at(api_service, &["spec"]);
        let key = (
            object::text(spec, &["group"]).to_owned(),
            object::text(spec, &["version"]).to_owned(),
        );
        let known = previous.get(&key).map(AsRef::as_ref);
        let route = Route::new(api_service, &aggregator.front_proxy, known);
        routes.insert(key, Arc::new(route));
    }
    // Requests for a new APIService get 503 until the check ends.
    aggregator.set(routes.clone());
    if routes.is_empty() {
        return Synced::Nothing;
    }
    let checks = routes.into_iter().map(async |(key, route)| {
        let condition = availability::check(registry, &route).await;
        let is_available = condition.is_true();
        let documents = match is_available {
            true => documents::download(registry, &route).await,
            false => Documents::default(),
        };
        let checked = Route {
            is_available,
            documents,
            ..Route::clone(&route)
        };
        (key, Arc::new(checked), condition)
    });
    let checked = join_all(checks).await;
    let routes = checked
        .iter()
        .map(|(key, route, _)| (key.clone(), route.clone()));
    aggregator.set(routes.collect());
    // Written last: a client that waits for the condition can use the API.
    for (_, route, condition) in &checked {
        if let Err(error) = availability::write(registry, &route.name(), condition).await {
            tracing::warn!(
                api_service = route.name(),
                ?error,
                "cannot write the condition"
            );
        }
    }
    let all_available = checked.iter().all(|(_, route, _)| route.is_available);
    match all_available {
        true => Synced::AllAvailable,
        false => Synced::SomeUnavailable,
    }
}
