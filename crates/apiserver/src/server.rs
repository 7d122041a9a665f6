//! Start, listening and shutdown of the server.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::{AdmissionMetrics, AdmissionPlugin, AdmissionPolicies, AdmissionWebhooks};
use crate::aggregator::Aggregator;
use crate::audit::{Audit, AuditOptions};
use crate::authentication::{Authentication, AuthenticationOptions, Identity, Peer};
use crate::authority::Authority;
use crate::authorization::{AuthorizationMode, Authorizer};
use crate::clock::Clock;
use crate::controllers::Scope;
use crate::denials::DeniedRequests;
use crate::error::{StartError, TokenError};
use crate::front::{Endpoint, Front, Limits, ServingCertificate};
use crate::impersonation::Impersonation;
use crate::kinds::Catalog;
use crate::random::RandomNames;
use crate::registry::{Registry, ServiceRanges, Unmodelled, Write};
use crate::schemas::Schemas;
use crate::service::{Service, ServiceState};
use crate::service_resolver::{LocalService, ServiceAddress, ServiceResolver};
use crate::status::{ApiError, ApiResult};
use crate::store::Store;
use crate::target::Target;
use crate::webhook::WebhookClients;
use crate::workloads::pod::NODE;
use crate::{aggregator, bootstrap, controllers, object, openapi};

/// Maximum time that [`Server::shutdown`] waits for open connections to close.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The options of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Seed of random names and UIDs. `None` uses a random seed.
    pub seed: Option<u64>,
    /// Maximum number of past events that are kept for each resource. A watch can start no earlier
    /// than at the oldest event.
    pub history: usize,
    /// Whether lists and watches use the parameter `shardSelector` or ignore it. In Kubernetes 1.36
    /// this option is the feature gate `ShardedListAndWatch`, which is off by default.
    pub sharded_list_and_watch: bool,
    /// The options of authentication.
    pub authentication: AuthenticationOptions,
    /// The authorizers, in the order in which they are asked. A request is denied if none of them
    /// allows it.
    pub authorization: Vec<AuthorizationMode>,
    /// Whether the controllers of a cluster run: garbage collection, namespaces, ServiceAccounts,
    /// workloads, Pods and endpoints. Without them, the server does only the work of kube-apiserver
    /// itself, as in a test with envtest: nothing becomes ready, and a namespace that is deleted
    /// stays `Terminating`.
    pub controllers: bool,
    /// The enabled admission plugins. By default those of
    /// [`AdmissionPlugin::enabled_by_default`].
    pub admission_plugins: Vec<AdmissionPlugin>,
    /// Range of the cluster IPs of Services in CIDR notation. Two ranges of different IP families,
    /// separated by a comma, are a dual-stack cluster.
    pub service_cluster_ip_range: String,
    /// Range of the node ports of Services.
    pub service_node_port_range: RangeInclusive<u16>,
    /// The audit log. `None` writes no audit events.
    pub audit: Option<AuditOptions>,
    /// The programs that serve in place of the Pods of Services, for requests that the API server
    /// sends to a Service: those for the group versions of an APIService.
    pub service_addresses: Vec<ServiceAddress>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: None,
            history: 10_000,
            sharded_list_and_watch: true,
            authentication: AuthenticationOptions::default(),
            authorization: vec![AuthorizationMode::Rbac],
            controllers: true,
            admission_plugins: AdmissionPlugin::enabled_by_default(),
            service_cluster_ip_range: "10.96.0.0/12".to_owned(),
            service_node_port_range: 30_000..=32_767,
            audit: None,
            service_addresses: Vec::new(),
        }
    }
}

/// An embedded Kubernetes control plane: an API server in memory, and controllers.
///
/// # Examples
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use opkit_apiserver::{Options, Server};
/// use tower::ServiceExt;
///
/// let server = Server::start(Options::default()).unwrap();
/// let request = http::Request::get("/readyz").body(String::new()).unwrap();
/// let response = server.service().oneshot(request).await.unwrap();
/// assert_eq!(response.status(), 200);
/// server.shutdown().await;
/// # });
/// ```
#[derive(Debug)]
pub struct Server {
    pub(crate) shared: Arc<ServiceState>,
    tasks: TaskTracker,
}

impl Server {
    /// Starts a server with the objects that every cluster has, such as the namespace `default`.
    /// Must be called on a tokio runtime, which runs the controllers until [`Server::shutdown`] or
    /// until the server is dropped.
    ///
    /// # Errors
    /// [`StartError::Option`] if an option is not valid or the audit log cannot be opened,
    /// [`StartError::ServiceRange`] if a range for Services is not valid, and
    /// [`StartError::InitialObject`] if one of the objects that every cluster has is not valid.
    pub fn start(options: Options) -> Result<Self, StartError> {
        let authority = Arc::new(Authority::create("opkit-ca")?);
        // As in Kubernetes: if everything is allowed, anonymous requests are not.
        let is_open = options.authorization == [AuthorizationMode::AlwaysAllow];
        let anonymous = options.authentication.anonymous && !is_open;
        let authentication = Authentication::new(&options.authentication, anonymous, &authority)?;
        let range = options.service_cluster_ip_range;
        let services = ServiceRanges::parse(&range, options.service_node_port_range)
            .map_err(|cause| StartError::ServiceRange { range, cause })?;
        let registry = Arc::new(Registry {
            authority,
            authentication,
            authorizer: Authorizer::new(&options.authorization)?,
            impersonation: Impersonation::default(),
            catalog: Catalog::builtin(),
            schemas: Schemas::default(),
            store: Store::new(options.history),
            clock: Clock::start(),
            sharded_list_and_watch: options.sharded_list_and_watch,
            unmodelled: Unmodelled::default(),
            services,
            admission_plugins: options.admission_plugins,
            quotas: Arc::default(),
            root_ca: OnceLock::new(),
            controllers: options.controllers,
            aggregator: Aggregator::new()?,
            resolver: ServiceResolver::new(options.service_addresses),
            webhooks: WebhookClients::default(),
            admission_webhooks: AdmissionWebhooks::new(),
            policies: AdmissionPolicies::new(),
            metrics: AdmissionMetrics::new(),
            random: options
                .seed
                .map_or_else(RandomNames::from_entropy, RandomNames::from_seed),
        });
        let scope = match options.controllers {
            true => Scope::Cluster,
            false => Scope::ApiServer,
        };
        for (group, plural, object) in initial_objects(scope, &registry) {
            create(&registry, group, plural, object).map_err(|error| {
                StartError::InitialObject {
                    resource: plural,
                    cause: error.message(),
                }
            })?;
        }
        bootstrap::create(&registry)?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        // Audit IDs have their own source, so that they do not change the UIDs of a seed.
        let seed = options.seed.map(|seed| !seed);
        let ids = seed.map_or_else(RandomNames::from_entropy, RandomNames::from_seed);
        let audit = Audit::start(options.audit.as_ref(), ids, registry.clock, &tasks, &stop)?;
        tasks.spawn(controllers::run(registry.clone(), scope, stop.clone()));
        tasks.spawn(aggregator::run(registry.clone(), stop.clone()));
        Ok(Self {
            shared: Arc::new(ServiceState {
                registry,
                openapi: openapi::Cache::default(),
                denied: DeniedRequests::default(),
                audit,
                address: OnceLock::new(),
                stop,
            }),
            tasks,
        })
    }

    /// Returns the API as a service for callers in this process, which act as the administrator.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service_of(Identity::admin())
    }

    /// Returns the API as a service for callers in this process, which act as this user. The group
    /// `system:authenticated` is added to `groups`.
    #[must_use]
    pub fn service_as(&self, user: &str, groups: &[&str]) -> Service {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.service_of(Identity::authenticated(user, groups))
    }

    /// Returns the API as a service for callers in this process, which act as a ServiceAccount. The
    /// ServiceAccount need not exist.
    #[must_use]
    pub fn service_as_service_account(&self, namespace: &str, name: &str) -> Service {
        self.service_of(Identity::service_account(namespace, name))
    }

    /// Returns the API as a service whose requests are authenticated by their bearer tokens, like
    /// those of a client over HTTPS without a certificate. Tokens are those of [`Self::token_for`],
    /// [`Self::service_account_token`] and the options.
    #[must_use]
    pub fn remote_service(&self) -> Service {
        Service {
            shared: self.shared.clone(),
            peer: self
                .shared
                .registry
                .authentication
                .peer(None, Arc::default()),
            source: None,
        }
    }

    fn service_of(&self, identity: Identity) -> Service {
        Service {
            shared: self.shared.clone(),
            peer: Peer::Known(Arc::new(identity)),
            source: None,
        }
    }

    /// Creates a bearer token for a user, which is valid until the server stops. The group
    /// `system:authenticated` is added to `groups`. [`Endpoint::kubeconfig_with_token`] returns a
    /// kubeconfig with the token.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn token_for(&self, user: &str, groups: &[&str]) -> Result<String, StartError> {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let identity = Identity::authenticated(user, groups);
        self.shared.registry.authentication.issue_token(identity)
    }

    /// Creates a token for a ServiceAccount, which is valid for an hour or for another time in
    /// seconds. [`Endpoint::kubeconfig_with_token`] returns a kubeconfig with the token.
    ///
    /// # Errors
    /// If there is no such ServiceAccount, or the lifetime is less than 10 minutes.
    pub fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        expiration_seconds: Option<u32>,
    ) -> Result<String, TokenError> {
        let registry = &self.shared.registry;
        let mut request = json!({"spec": {}});
        if let Some(seconds) = expiration_seconds {
            object::set(&mut request, &["spec", "expirationSeconds"], json!(seconds));
        }
        let created = registry.builtin("", "serviceaccounts").and_then(|kind| {
            let target = Target::new(&kind, namespace, name).subresource("token");
            registry.request_token(&target, request, &mut Write::by("kube-apiserver"))
        });
        let created = created.map_err(|error| TokenError {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            cause: error.message(),
        })?;
        Ok(object::text(&created, &["status", "token"]).to_owned())
    }

    /// Serves the API over HTTPS at `address`, with certificates that are created for this address.
    ///
    /// # Errors
    /// If the server cannot listen on the address, or the certificates cannot be created.
    pub async fn listen(&self, address: SocketAddr) -> Result<Endpoint, StartError> {
        self.listen_within(address, Limits::default(), None).await
    }

    /// Serves the API over HTTPS at `address` with a certificate that the caller provides. Returns
    /// the address on which the server listens.
    ///
    /// # Errors
    /// If the server cannot listen on the address, or the certificate or its key is not valid.
    pub async fn listen_with(
        &self,
        address: SocketAddr,
        certificate: &ServingCertificate,
    ) -> Result<SocketAddr, StartError> {
        let endpoint = self.listen_within(address, Limits::default(), Some(certificate));
        Ok(endpoint.await?.address())
    }

    pub(crate) async fn listen_within(
        &self,
        address: SocketAddr,
        limits: Limits,
        certificate: Option<&ServingCertificate>,
    ) -> Result<Endpoint, StartError> {
        let front = Front::bind(address, limits, certificate, &self.shared).await?;
        let endpoint = front.endpoint();
        self.shared.address.get_or_init(|| endpoint.address());
        let registry = &self.shared.registry;
        registry.resolver.set_own_address(endpoint.address());
        let fail = |error: ApiError| StartError::InitialObject {
            resource: "endpoints",
            cause: error.message(),
        };
        registry
            .publish_address(endpoint.address())
            .await
            .map_err(fail)?;
        registry
            .publish_root_ca(registry.authority.pem())
            .await
            .map_err(fail)?;
        let tasks = self.tasks.clone();
        self.tasks.spawn(front.run(self.shared.clone(), tasks));
        Ok(endpoint)
    }

    /// Sets the address at which a program serves the requests of this server to a Service, as
    /// [`Options::service_addresses`] does. An earlier address of the Service is replaced.
    pub fn set_service_address(&self, address: ServiceAddress) {
        self.shared.registry.resolver.set_given(address);
    }

    /// Lets `service` serve the requests of this server to the Service `name`, such as calls of
    /// webhooks, without a socket. The Service need not exist. `None` ends that.
    pub fn serve_service(
        &self,
        namespace: &str,
        name: &str,
        service: Option<Arc<dyn LocalService>>,
    ) {
        let resolver = &self.shared.registry.resolver;
        resolver.set_local(namespace, name, service);
    }

    /// Returns a warning for each feature that a written object relies on and that this control
    /// plane does not have. The client that wrote the object got the same warning in the response.
    #[must_use]
    pub fn unmodelled(&self) -> Vec<String> {
        self.shared.registry.unmodelled.reported()
    }

    /// Returns a sentence for each request of this user that was denied so far. Requests that
    /// differ only in the name of their object have the same sentence.
    #[must_use]
    pub fn denied(&self, user: &str) -> Vec<String> {
        self.shared.denied.of(user)
    }

    /// Ends every watch and connection and stops the controllers.
    ///
    /// # Cancel safety
    /// The first poll starts the shutdown. If the future is dropped after the first poll, the
    /// server still stops, but the caller does not wait for the end.
    pub async fn shutdown(&self) {
        self.shared.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(SHUTDOWN_GRACE, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(tasks = self.tasks.len(), "connections are still open");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

fn create(registry: &Registry, group: &str, plural: &str, object: Value) -> ApiResult<()> {
    let kind = registry.builtin(group, plural)?;
    let target = Target::new(&kind, object::namespace(&object), "");
    let status = object::at(&object, &["status"]).clone();
    let created = registry.create_directly(&target, object, "kube-apiserver")?;
    if !status.is_null() && kind.subresource("status").is_some() {
        let target = Target::new(&kind, object::namespace(&created), object::name(&created))
            .subresource("status");
        registry.modify_directly(&target, "kubelet", |live| {
            let mut new = live.clone();
            object::set(&mut new, &["status"], status.clone());
            Ok(new)
        })?;
    }
    Ok(())
}

/// Returns the objects that every new cluster has, each with its group and plural resource name.
/// Without the controllers of a cluster there is no node.
fn initial_objects(scope: Scope, registry: &Registry) -> Vec<(&'static str, &'static str, Value)> {
    let mut objects: Vec<_> = ["default", "kube-system", "kube-public", "kube-node-lease"]
        .into_iter()
        .map(|name| {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
                "status": {"phase": "Active"},
            });
            ("", "namespaces", namespace)
        })
        .collect();
    for (name, value, purpose) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to \
             another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "description": purpose,
        });
        objects.push(("scheduling.k8s.io", "priorityclasses", class));
    }
    for (group, version) in Catalog::builtin_api_services() {
        let api_service = controllers::desired_api_service(group, version, "onstart");
        objects.push(("apiregistration.k8s.io", "apiservices", api_service));
    }
    let range = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"}, "spec": {"cidrs": registry.services.cidrs()},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": registry.clock.now_rfc3339(),
        }]},
    });
    objects.push(("networking.k8s.io", "servicecidrs", range));
    let address = registry.services.first_address().to_string();
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": address, "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    });
    objects.push(("", "services", service));
    if scope == Scope::ApiServer {
        return objects;
    }
    let capacity = json!({"cpu": "8", "memory": "16Gi", "pods": "1000"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}},
        "status": {
            "capacity": capacity, "allocatable": capacity,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "the embedded control plane runs no containers",
            }],
            "addresses": [{"type": "Hostname", "address": NODE}],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "opkit://0",
                "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "v1.36.3",
                "machineID": "", "operatingSystem": "linux", "osImage": "opkit", "systemUUID": "",
            },
        },
    });
    objects.push(("", "nodes", node));
    objects
}
