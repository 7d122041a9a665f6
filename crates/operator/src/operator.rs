//! The [`Operator`] value.

mod check;
mod model;
mod plan;
mod run;
mod state;
mod webhooks;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use opkit_apimachinery::conversion::KindVersions;
use opkit_client::Kind;
use opkit_controller::metrics::Labelled;
use opkit_controller::{
    AnyController, AnyRunnable, Error, EventApi, Health, InformerOptions, Kinds,
    LeaderElectionOptions, MapContext, MetricsRegistry, Object, ReadDeclarations, Reference,
    Result, ShardKey, UndeclaredReads,
};
use opkit_manifests::{PolicyRule, Rbac, kinds};

pub use self::run::{RunOptions, ServerAddresses};
use self::state::Setup;
pub use self::state::{MakeState, MakeStateWith};
pub use self::webhooks::{CONVERSIONS, OwnCertificateOptions, WebhookCertificates};
pub(crate) use self::webhooks::{WEBHOOK_PORT, check_host};
use crate::arguments::ArgsType;
use crate::namespaces;
use crate::rbac::Declared;

type Connect = Box<dyn FnOnce() -> BoxFuture<'static, Result<kube::Client>> + Send>;
type RegisterMetrics = Box<dyn FnOnce(&MetricsRegistry) + Send>;

/// Complete description of an operator: the kinds that the operator defines, the controllers that
/// it runs, and the dependencies of the controllers.
///
/// Creating an operator does not connect to a cluster, so the `manifests` command and tests can
/// create an operator too.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{Action, Context, Controller, Operator, Result};
///
/// struct App {
///     prices: std::collections::HashMap<String, u32>,
/// }
///
/// impl App {
///     async fn connect() -> Result<App> {
///         Ok(App { prices: [("robot".to_owned(), 7)].into() })
///     }
/// }
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context<App>) -> Result<Action> {
///     println!("robots cost {:?}", cx.state().prices.get("robot"));
///     Ok(Action::await_change())
/// }
/// let operator = Operator::new("map-operator")
///     .state(App::connect)
///     .controller(Controller::new(reconcile))
///     .leader_election("map-operator.opkit.dev");
/// assert_eq!(operator.name(), "map-operator");
/// ```
pub struct Operator {
    name: String,
    crds: Vec<CustomResourceDefinition>,
    /// Versions of the kinds that have more than one.
    versions: Vec<KindVersions>,
    controllers: Vec<AnyController>,
    namespaces: Vec<String>,
    /// Whether the operator is limited to the namespace in which it runs.
    namespaced: bool,
    /// Changes the Deployment that `manifests` prints.
    deployment: Vec<model::ChangeDeployment>,
    rules: Vec<PolicyRule>,
    /// Kinds that are cached for reading only.
    kinds: Vec<Kind>,
    /// Kinds that all controllers read from the server.
    uncached: Vec<Kind>,
    /// Types that declare the operator's own flags.
    args: Vec<ArgsType>,
    states: Vec<state::Declared>,
    /// Type names of the states that were set as values.
    state_values: Vec<&'static str>,
    /// States that replace the others while the operator plans.
    plan_states: Vec<state::Declared>,
    setup: Vec<Setup>,
    runnables: Vec<AnyRunnable>,
    webhooks: webhooks::Webhooks,
    metrics: Vec<RegisterMetrics>,
    healthz: Health,
    readyz: Health,
    event_api: EventApi,
    leader_election: Option<LeaderElectionOptions>,
    /// How replicas divide the objects among them; `None` if one replica reconciles them all.
    sharding: Option<ShardKey>,
    /// Period in which controllers without a period of their own resync.
    resync: Option<Duration>,
    /// Names of additional clusters, and the functions that connect to them.
    clusters: Vec<(Arc<str>, Connect)>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator")
            .field("name", &self.name)
            .field("controllers", &self.controllers)
            .finish_non_exhaustive()
    }
}

impl Operator {
    /// Creates an operator with this name. The name is part of the operator's field manager: after
    /// an operator is renamed, the fields that it applied earlier belong to another field manager.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            crds: Vec::new(),
            versions: Vec::new(),
            controllers: Vec::new(),
            namespaces: Vec::new(),
            namespaced: false,
            deployment: Vec::new(),
            rules: Vec::new(),
            kinds: Vec::new(),
            uncached: Vec::new(),
            args: Vec::new(),
            states: Vec::new(),
            state_values: Vec::new(),
            plan_states: Vec::new(),
            setup: Vec::new(),
            runnables: Vec::new(),
            webhooks: webhooks::Webhooks::default(),
            metrics: Vec::new(),
            healthz: Health::new(),
            readyz: Health::new(),
            event_api: EventApi::default(),
            leader_election: None,
            sharding: None,
            resync: None,
            clusters: Vec::new(),
        }
    }

    /// Adds a kind that this operator defines; `manifests` prints its CRD. If the kind has several
    /// versions, then the operator serves their conversion.
    pub fn crd<K: CustomResourceExt + Object>(mut self) -> Self {
        let (mut crd, collected) = kinds::versions::collect(K::crd);
        if let Some(serving) = collected.serving {
            self.webhooks.serve_conversions(serving);
            let (namespace, name) = self.webhook_service();
            let (namespace, name) = (namespace.as_str(), name.as_str());
            let service = kinds::versions::WebhookService { namespace, name };
            kinds::versions::set_conversion(&mut crd, service);
        }
        self.crds.push(crd);
        self.versions.extend(collected.kinds);
        self
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: impl Into<AnyController>) -> Self {
        self.controllers.push(controller.into());
        self
    }

    /// Adds a task that runs beside the controllers; see [`Runnable`](opkit_controller::Runnable).
    pub fn runnable(mut self, runnable: impl Into<AnyRunnable>) -> Self {
        self.runnables.push(runnable.into());
        self
    }

    /// Adds the operator's own flags to its command line: the fields of `A`, which derives
    /// [`clap::Args`]. `--help` lists these flags beside the flags of every operator. A flag may
    /// have an environment variable (`#[arg(env = "..")]`). Functions of [`state`](Operator::state)
    /// and [`state_with`](Operator::state_with) that take an `A` receive the values of the flags.
    /// May be called for several types.
    ///
    /// The derive refers to the crate `clap`: bring it into scope with `use opkit::clap;`. A
    /// required flag is required by `run`, not by `manifests` and `version`. A flag, environment
    /// variable or id that another argument has is an error, which is reported before the operator
    /// does anything. Positional arguments and subcommands are errors too.
    ///
    /// In a test, pass the values to `ControlPlane::start_with`; in other programs, to
    /// [`RunOptions::args`].
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
    /// use opkit::{Operator, Result, clap};
    ///
    /// #[derive(clap::Args)]
    /// struct Settings {
    ///     /// URL of the store
    ///     #[arg(long, env = "STORE_URL")]
    ///     store_url: String,
    /// }
    ///
    /// struct App {
    ///     store: String,
    /// }
    ///
    /// impl App {
    ///     async fn connect(settings: Settings) -> Result<App> {
    ///         Ok(App { store: settings.store_url })
    ///     }
    /// }
    ///
    /// let operator = Operator::new("bucket-operator")
    ///     .args::<Settings>()
    ///     .state(App::connect);
    /// # drop(operator);
    /// ```
    pub fn args<A: clap::Args + 'static>(mut self) -> Self {
        self.args.push(ArgsType::of::<A>());
        self
    }

    /// Sets the state of the controllers that read an `S`: those whose reconcile function takes a
    /// `Context<S>` or, with kube's signature, an `Arc<S>`. States of several types may be set.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use opkit::{Action, Context, Controller, Operator, Result};
    ///
    /// struct Prices {
    ///     robot: u32,
    /// }
    ///
    /// async fn reconcile(map: Arc<ConfigMap>, cx: Context<Prices>) -> Result<Action> {
    ///     println!("a robot costs {}", cx.state().robot);
    ///     Ok(Action::await_change())
    /// }
    /// let operator = Operator::new("map-operator")
    ///     .state_value(Prices { robot: 7 })
    ///     .controller(Controller::new(reconcile));
    /// # drop(operator);
    /// ```
    pub fn state_value<S: Send + Sync + 'static>(mut self, value: S) -> Self {
        self.state_values.push(std::any::type_name::<S>());
        self.setup
            .push(Box::new(move |manager| manager.state(Arc::new(value))));
        self
    }

    /// Sets the state that `make` returns; see [`state_value`](Operator::state_value). `make` is an
    /// `async fn() -> Result<S, E>` or, with the operator's own [flags](Operator::args), an
    /// `async fn(MyArgs) -> Result<S, E>`. `make` is called once, when the operator starts, before
    /// anything else. An error of `make` stops the operator.
    pub fn state<M>(mut self, make: impl MakeState<M>) -> Self {
        self.states.push(state::Declared::once(make));
        self
    }

    /// Sets a state that `make` creates with a client of the cluster, the caches and an event
    /// recorder. `make` is an `async fn(StateContext) -> Result<S, E>` or, with the operator's own
    /// [flags](Operator::args), an `async fn(StateContext, MyArgs) -> Result<S, E>`. A closure must
    /// name the types of its arguments.
    ///
    /// With leader election, `make` is called again for each term in which this process leads. The
    /// client of such a state refuses to write after the end of the term, so a task that the state
    /// has spawned cannot write in a later term. Controllers and runnables that run without
    /// leadership read a separate state, which is created once and whose client always writes.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; pub use opkit_controller as events; }
    /// use opkit::events::EventRecorder;
    /// use opkit::{Operator, Result, StateContext};
    ///
    /// struct App {
    ///     client: kube::Client,
    ///     recorder: EventRecorder,
    /// }
    ///
    /// impl App {
    ///     async fn connect(cx: StateContext) -> Result<App> {
    ///         Ok(App { client: cx.client(), recorder: cx.recorder() })
    ///     }
    /// }
    /// let operator = Operator::new("map-operator")
    ///     .leader_election("map-operator.opkit.dev")
    ///     .state_with(App::connect);
    /// # drop(operator);
    /// ```
    pub fn state_with<M>(mut self, make: impl MakeStateWith<M>) -> Self {
        self.states.push(state::Declared::per_term(make));
        self
    }

    /// Allows reconciled objects to refer to objects of kind `C` in other namespaces, and to have
    /// children of kind `C` in other namespaces
    /// ([`apply_unowned`](opkit_controller::Context::apply_unowned)), if `grant` returns true.
    /// [`Reference::is_applied`] distinguishes children from references. Without a grant, such
    /// references and children are refused: otherwise a user who may write an object in one
    /// namespace could, through the operator, read or write objects in another namespace.
    pub fn cross_namespace<C: Object>(
        mut self,
        grant: impl Fn(&Reference, &MapContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.setup
            .push(Box::new(|manager| manager.cross_namespace::<C>(grant)));
        self
    }

    /// Sets how the kind `K` is cached, such as only some objects, or objects without some fields.
    pub fn cache<K: Object>(mut self, options: InformerOptions) -> Self {
        if options.memory_budget.is_some() {
            // An object whose body was evicted by the budget is read from the server.
            let kind = Kind::of::<K>();
            let rule = PolicyRule::new(&kind.group, [kind.plural.to_string()], ["get"]);
            self.rules.push(match kind.namespaced {
                true => rule,
                false => rule.cluster_scoped(),
            });
        }
        self.setup
            .push(Box::new(|manager| manager.cache::<K>(options)));
        self
    }

    /// Caches kinds that are only read, by runnables, states and webhooks: a tuple of kinds. They
    /// are listed and watched in the cluster that the operator runs in, and the roles that
    /// `manifests` prints allow it. [`RunContext`](opkit_controller::RunContext) and
    /// [`StateContext`](opkit_controller::StateContext) have their listers and informers, and a
    /// client that reads them from the cache. Kinds that a controller declares need not be declared
    /// here. For objects without their content, declare `PartialObjectMeta<K>` and set
    /// `metadata_only` of its [`cache`](Operator::cache).
    ///
    /// A controller reads a kind with [`Context`](opkit_controller::Context) only if the controller
    /// itself declares it.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
    /// use k8s_openapi::api::core::v1::{ConfigMap, Service};
    /// use opkit::{AnyRunnable, Operator, RunContext, Selection};
    ///
    /// let operator = Operator::new("shop-operator")
    ///     .kinds::<(ConfigMap, Service)>()
    ///     .runnable(AnyRunnable::on_every_replica("count", |cx: RunContext| async move {
    ///         let services = cx.lister::<Service>()?;
    ///         println!("{} services", services.list(&Selection::default()).len());
    ///         Ok(())
    ///     }));
    /// assert!(operator.rules().iter().any(|rule| rule.resources.contains("services")));
    /// ```
    pub fn kinds<K: Kinds>(mut self) -> Self {
        let mut reads = ReadDeclarations::default();
        reads.all::<K>();
        self.kinds.extend(reads.kinds().cloned());
        self.setup
            .push(Box::new(move |manager| manager.reads(&reads)));
        self
    }

    /// Allows all controllers to read the kind `K` from the server, with
    /// [`Context::fetch`](opkit_controller::Context::fetch) and `fetch_list`: each read sends a
    /// request. For one controller, and for what this means:
    /// [`Controller::uncached`](opkit_controller::Controller::uncached).
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; }
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use opkit::Operator;
    ///
    /// let operator = Operator::new("map-operator")
    ///     .uncached::<Secret>()
    ///     .cached_or_live::<ConfigMap>();
    /// let rules = operator.rules();
    /// assert!(rules.iter().all(|rule| !rule.verbs.contains("watch")));
    /// ```
    pub fn uncached<K: Object>(mut self) -> Self {
        self.uncached.push(Kind::of::<K>());
        self.setup.push(Box::new(|manager| manager.uncached::<K>()));
        self
    }

    /// Allows all controllers to read the kind `K` from the cache of any of them, and from the
    /// server what is not there; see
    /// [`Controller::cached_or_live`](opkit_controller::Controller::cached_or_live).
    pub fn cached_or_live<K: Object>(mut self) -> Self {
        self.uncached.push(Kind::of::<K>());
        let declare: Setup = Box::new(|manager| manager.cached_or_live::<K>());
        self.setup.push(declare);
        self
    }

    /// Sets where [`Context::fetch`](opkit_controller::Context::fetch) and `fetch_list` read the
    /// kinds that nothing declares. By default such a read is an error.
    ///
    /// These kinds are not known before they are read: the operator needs a
    /// [`rule`](Operator::rule) for each of them, and a missing one is found only by the read.
    /// Prefer
    /// [`uncached`](Operator::uncached).
    pub fn undeclared_reads(mut self, reads: UndeclaredReads) -> Self {
        let declare: Setup = Box::new(move |manager| manager.undeclared_reads(reads));
        self.setup.push(declare);
        self
    }

    /// Adds a permission for requests that opkit cannot infer, such as requests through
    /// `Context::client`.
    pub fn rule(mut self, rule: PolicyRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Watches only these namespaces, unless `--namespace` or `WATCH_NAMESPACE` selects other ones.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Limits the operator to one namespace: the one that `--namespace` or `WATCH_NAMESPACE` names,
    /// or else the namespace in which it runs. `manifests` prints Roles instead of ClusterRoles for
    /// all namespaced resources, a Deployment that sets `WATCH_NAMESPACE` to the namespace of the
    /// pod, and webhooks for objects of that namespace only.
    ///
    /// Outside of a pod, the namespace is that of the current context of the kubeconfig.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; pub use opkit_operator as operator; }
    /// use opkit::Operator;
    /// use opkit::operator::RunOptions;
    ///
    /// let operator = Operator::new("map-operator").namespaced();
    /// let documents = operator.rbac(&RunOptions::default()).documents();
    /// assert!(documents.iter().all(|document| document["kind"] != "ClusterRole"));
    /// ```
    pub fn namespaced(mut self) -> Self {
        self.namespaced = true;
        self
    }

    /// Changes the Deployment that `manifests` prints, for settings that belong to the operator,
    /// such as its resources, volumes and environment. Image, replicas and namespace are chosen
    /// when the operator is deployed. May be called several times.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; }
    /// use k8s_openapi::api::core::v1::EnvVar;
    /// use opkit::Operator;
    ///
    /// let operator = Operator::new("map-operator").deployment(|deployment| {
    ///     let pod = deployment.spec.get_or_insert_default().template.spec.get_or_insert_default();
    ///     for container in &mut pod.containers {
    ///         let mut variable = EnvVar { name: "REGION".to_owned(), ..EnvVar::default() };
    ///         variable.value = Some("eu".to_owned());
    ///         container.env.get_or_insert_default().push(variable);
    ///     }
    /// });
    /// # drop(operator);
    /// ```
    pub fn deployment(mut self, change: impl FnOnce(&mut Deployment) + Send + 'static) -> Self {
        self.deployment.push(model::change_deployment(change));
        self
    }

    /// Elects a leader through the Lease of this name: only one of several replicas reconciles at a
    /// time. The Lease is in the pod's namespace. Outside of a pod, or if the pod's service account
    /// is not mounted, `--leader-election-namespace` must set the namespace. Without a namespace
    /// the operator does not start, unless `--leader-elect=false` turns the election off.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller as leaderelection; pub use opkit_operator::*; }
    /// use std::time::Duration;
    /// use opkit::Operator;
    /// use opkit::leaderelection::LeaderElectionOptions;
    ///
    /// let lease = "map-operator.opkit.dev";
    /// let operator = Operator::new("map-operator").leader_election(lease);
    ///
    /// // Or with other timings.
    /// let seconds = Duration::from_secs;
    /// let slow = LeaderElectionOptions::new(lease).timings(seconds(60), seconds(40), seconds(5));
    /// let operator = operator.leader_election(slow);
    /// # drop(operator);
    /// ```
    pub fn leader_election(mut self, lease: impl Into<LeaderElectionOptions>) -> Self {
        self.leader_election = Some(lease.into());
        self
    }

    /// Divides the objects of all controllers among the replicas of the operator, by namespace or
    /// by UID, instead of leaving all replicas but the leader idle. More `replicas` of the
    /// Deployment give more throughput, and less memory per replica.
    ///
    /// This takes the place of leader election, and is in force when leader election would be: with
    /// the flag `--leader-elect`, which the Deployment in the manifests has. Otherwise one process
    /// reconciles all objects, as under `opkit dev`.
    ///
    /// No object is reconciled by two replicas at the same time. A replica that joins or leaves
    /// takes or gives a share of the objects; those of a replica that has died are taken by the
    /// others when its Lease has expired. The guide to controllers has the costs of both modes.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; }
    /// use opkit::{Operator, ShardKey};
    ///
    /// let operator = Operator::new("map-operator").sharded(ShardKey::Namespace);
    /// # drop(operator);
    /// ```
    pub fn sharded(mut self, by: ShardKey) -> Self {
        self.sharding = Some(by);
        self
    }

    /// Reconciles every object of all controllers again in each `period`, even if nothing has
    /// changed; controller-runtime's `SyncPeriod`. Off by default, where controller-runtime has
    /// 10 h. A controller may have a period of its own, or none: see
    /// [`Controller::resync`](opkit_controller::Controller::resync), also for what a resync does.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; }
    /// use std::time::Duration;
    /// use opkit::Operator;
    ///
    /// let operator = Operator::new("bucket-operator").resync(Duration::from_secs(3600));
    /// # drop(operator);
    /// ```
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Runs the controllers against an additional cluster too; `connect` is called once, when the
    /// operator starts. For objects of that cluster,
    /// [`Context::cluster`](opkit_controller::Context::cluster) and
    /// [`Request::cluster`](opkit_controller::Request) return `name`. The operator's CRDs and roles
    /// must exist in that cluster too; the Lease is only in the first cluster.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
    /// use kube::config::{KubeConfigOptions, Kubeconfig};
    /// use opkit::{Operator, Result};
    ///
    /// async fn edge() -> Result<kube::Client> {
    ///     let kubeconfig = Kubeconfig::read_from("/etc/edge/kubeconfig")?;
    ///     let options = KubeConfigOptions::default();
    ///     let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    ///     Ok(kube::Client::try_from(config)?)
    /// }
    /// let operator = Operator::new("map-operator").cluster("edge", edge);
    /// # drop(operator);
    /// ```
    pub fn cluster<E, Fut>(
        mut self,
        name: impl Into<Arc<str>>,
        connect: impl FnOnce() -> Fut + Send + 'static,
    ) -> Self
    where
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<kube::Client, E>> + Send + 'static,
    {
        let connect: Connect = Box::new(|| connect().map_err(Into::into).boxed());
        self.clusters.push((name.into(), connect));
        self
    }

    /// Adds one of the operator's own metrics to the `/metrics` response.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
    /// use opkit::Operator;
    /// use opkit::metrics::Counter;
    ///
    /// let orders = Counter::new("shop_orders", "Orders taken", ["shop"]);
    /// let operator = Operator::new("shop-operator").metric(&orders);
    /// # drop(operator);
    /// orders.with(["web"]).inc();
    /// ```
    pub fn metric(self, metric: &impl Labelled) -> Self {
        let metric = metric.clone();
        self.metrics(move |registry| registry.register(&metric))
    }

    /// Registers the operator's own metrics, which `/metrics` serves beside opkit's metrics.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator as metrics; pub use opkit_operator::*; }
    /// use opkit::Operator;
    /// use opkit::metrics::prometheus_client::metrics::info::Info;
    ///
    /// let build = Info::new(vec![("commit", "5ab757c")]);
    /// let operator = Operator::new("shop-operator").metrics(|registry| {
    ///     registry.lock().register("shop_build", "The build", build);
    /// });
    /// # drop(operator);
    /// ```
    pub fn metrics(mut self, register: impl FnOnce(&MetricsRegistry) + Send + 'static) -> Self {
        self.metrics.push(Box::new(register));
        self
    }

    /// Adds a check to `/healthz`, which reports whether this process works or should be restarted.
    /// Each check is also served by its name below `/healthz`, on the address of
    /// `--health-probe-bind-address`. A check that takes longer than 5 s fails. Every operator has
    /// the check `ping`. With leader election it also has `leaderElection`, which fails if the
    /// Lease is neither renewed nor released.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use opkit::{Error, Operator, Result};
    ///
    /// let is_broken = Arc::new(AtomicBool::new(false));
    /// let seen = is_broken.clone();
    /// let operator = Operator::new("shop-operator").health_check("prices", move || {
    ///     let is_broken = seen.load(Ordering::Relaxed);
    ///     async move {
    ///         match is_broken {
    ///             true => Err(Error::msg("the price feed is broken")),
    ///             false => Ok(()),
    ///         }
    ///     }
    /// });
    /// # drop(operator);
    /// ```
    pub fn health_check<E, Fut>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.healthz = self
            .healthz
            .check(name, move || check().err_into::<Error>());
        self
    }

    /// Adds a check to `/readyz`, which reports whether this process is ready to serve. The check
    /// is also served by its name below `/readyz`, and fails if it takes longer than 5 s. Every
    /// operator has the check `ping`, and the check `caches`, which fails until the caches are
    /// filled.
    pub fn ready_check<E, Fut>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.readyz = self.readyz.check(name, move || check().err_into::<Error>());
        self
    }

    /// Sets the API in which events are created; `events.k8s.io/v1` by default.
    pub fn event_api(mut self, api: EventApi) -> Self {
        self.event_api = api;
        self
    }

    /// Returns the operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the CRDs of the kinds that this operator defines.
    pub fn crds(&self) -> Vec<CustomResourceDefinition> {
        self.crds.clone()
    }

    /// Returns the versions of the kinds that have more than one, with their conversions. The
    /// operator serves these conversions at `/convert`.
    pub fn versions(&self) -> &[KindVersions] {
        &self.versions
    }

    /// Returns the namespace and the name of the Service of the operator's webhooks.
    pub fn webhook_service(&self) -> (String, String) {
        let name = &self.name;
        (format!("{name}-system"), format!("{name}-webhook-service"))
    }

    /// Returns the controllers.
    pub fn controllers(&self) -> &[AnyController] {
        &self.controllers
    }

    /// Returns the permissions that the operator's declarations require: to read the watched kinds,
    /// to write children, and to write the status and finalizers of the reconciled kinds.
    pub fn rules(&self) -> Vec<PolicyRule> {
        self.declared().rules()
    }

    fn declared(&self) -> Declared<'_> {
        let with_status = self.crds.iter().filter(|crd| {
            let mut versions = crd.spec.versions.iter();
            versions.any(|version| {
                let parts = version.subresources.as_ref();
                parts.is_some_and(|parts| parts.status.is_some())
            })
        });
        let resource = |crd: &CustomResourceDefinition| {
            (crd.spec.names.plural.clone(), crd.spec.group.clone())
        };
        Declared {
            controllers: &self.controllers,
            with_status: with_status.map(resource).collect(),
            read: self.webhooks.reads().kinds().cloned().collect(),
            kinds: &self.kinds,
            uncached: &self.uncached,
            sharded: self.sharding.is_some(),
            rules: &self.rules,
            event_api: self.event_api,
        }
    }

    /// Returns the ServiceAccount, roles and role bindings that `manifests` prints for an operator
    /// that runs with these options.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; pub use opkit_operator as operator; }
    /// use opkit::Operator;
    /// use opkit::operator::RunOptions;
    ///
    /// let operator = Operator::new("map-operator").leader_election("map-operator.opkit.dev");
    /// let rbac = operator.rbac(&RunOptions::default());
    /// assert_eq!(rbac.service_account_name(), "map-operator-controller-manager");
    /// ```
    pub fn rbac(&self, options: &RunOptions) -> Rbac {
        let election = self.election(options);
        let lease_namespace = election.as_ref().and_then(|it| it.namespace.clone());
        let protects_metrics = options.metrics_bind_address.is_some_and(|address| {
            options
                .metrics_secure
                .unwrap_or(!address.ip().is_loopback())
        });
        let rbac = Rbac::new(&self.name, self.rules())
            .namespaces(namespaces::chosen(&options.namespaces, &self.namespaces))
            .own_namespace_only(self.namespaced)
            .leader_election(election.is_some())
            .leader_election_namespace(lease_namespace)
            .sharded(self.sharding.is_some())
            .metrics_auth(protects_metrics);
        let namespace = rbac.own_namespace();
        match self.own_certificates(options, &namespace) {
            Some(own) => rbac.webhook_certificates(own.secret(), own.rules()),
            None => rbac,
        }
    }
}

#[cfg(test)]
mod tests;
