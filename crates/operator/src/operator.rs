//! The operator as a value.

mod check;
mod run;
mod state;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use opkit_controller::metrics::Labelled;
use opkit_controller::{
    AnyController, AnyRunnable, Error, EventApi, Health, InformerOptions, LeaderElectionOptions,
    MapContext, MetricsRegistry, Object, Reference, Result,
};
use opkit_manifests::{PolicyRule, Rbac};

pub use self::run::{RunOptions, ServerAddresses};
use self::state::Setup;
pub use self::state::{MakeState, MakeStateWith};
use crate::arguments::{ArgsType, Flags};
use crate::namespaces;
use crate::rbac::Declared;

type Connect = Box<dyn FnOnce() -> BoxFuture<'static, Result<kube::Client>> + Send>;
type RegisterMetrics = Box<dyn FnOnce(&MetricsRegistry) + Send>;

/// Everything an operator is: the kinds it defines, the controllers it runs, and what they need.
///
/// Making one connects to nothing: `manifests` and every test make one as well.
///
/// # Examples
/// ```
/// # use opkit_operator as opkit;
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
    controllers: Vec<AnyController>,
    namespaces: Vec<String>,
    rules: Vec<PolicyRule>,
    /// The types of its own flags.
    args: Vec<ArgsType>,
    states: Vec<state::Declared>,
    setup: Vec<Setup>,
    metrics: Vec<RegisterMetrics>,
    healthz: Health,
    readyz: Health,
    event_api: EventApi,
    leader_election: Option<LeaderElectionOptions>,
    /// Further clusters, and how to connect to each.
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
    /// An operator of this name. The name is part of the field manager of what it applies, so
    /// renaming an operator makes it a stranger to its children's fields.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            crds: Vec::new(),
            controllers: Vec::new(),
            namespaces: Vec::new(),
            rules: Vec::new(),
            args: Vec::new(),
            states: Vec::new(),
            setup: Vec::new(),
            metrics: Vec::new(),
            healthz: Health::new(),
            readyz: Health::new(),
            event_api: EventApi::default(),
            leader_election: None,
            clusters: Vec::new(),
        }
    }

    /// Names a kind that this operator defines: `manifests` prints its CRD.
    pub fn crd<K: CustomResourceExt + Object>(mut self) -> Self {
        self.crds.push(K::crd());
        self
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: impl Into<AnyController>) -> Self {
        self.controllers.push(controller.into());
        self
    }

    /// Adds a task that runs beside the controllers; see [`Runnable`](opkit_controller::Runnable).
    pub fn runnable(mut self, runnable: impl Into<AnyRunnable>) -> Self {
        let runnable = runnable.into();
        self.setup
            .push(Box::new(move |manager| manager.runnable(runnable)));
        self
    }

    /// Adds flags of the operator's own to its command line: the fields of `A`, which derives
    /// [`clap::Args`]. They are in `--help` beside those of every operator, may have environment
    /// variables (`#[arg(env = "..")]`), and are given to the functions of
    /// [`state`](Operator::state) and [`state_with`](Operator::state_with) that take an `A`. May be
    /// called for several types.
    ///
    /// The derive names `clap::..`: bring it into scope with `use opkit::clap;`. A required flag is
    /// required by `run`, not by `manifests` and `version`. A flag, environment variable or id that
    /// another argument has is an error with its name before anything else happens, and so are
    /// positional arguments and subcommands.
    ///
    /// In a test the values are given to `ControlPlane::start_with`, in other programs to
    /// [`RunOptions::args`].
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
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

    /// Sets the state of the controllers that read an `S`: of those whose reconcile takes a
    /// `Context<S>` or, in kube's shape, an `Arc<S>`. States of several types may be set.
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
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
        self.setup
            .push(Box::new(move |manager| manager.state(Arc::new(value))));
        self
    }

    /// As [`state_value`](Operator::state_value), of what `make` returns: an
    /// `async fn() -> Result<S, E>`, or with the operator's own [flags](Operator::args) an
    /// `async fn(MyArgs) -> Result<S, E>`. It is called once, when the operator runs, before
    /// anything else; an error ends the operator.
    pub fn state<M>(mut self, make: impl MakeState<M>) -> Self {
        self.states.push(state::Declared::once(make));
        self
    }

    /// As [`state`](Operator::state), created with a client of the cluster, the caches and a
    /// recorder of events: `make` is an `async fn(StateContext) -> Result<S, E>`, or with the
    /// operator's own [flags](Operator::args) an `async fn(StateContext, MyArgs) -> Result<S, E>`.
    /// A closure names the types of its arguments.
    ///
    /// With leader election, `make` is called again for each term in which this process leads, with
    /// a client that refuses to write once that term is over: a task that the state has spawned
    /// cannot write in a later term. Controllers and runnables that need no leadership read a state
    /// of their own, created once, whose client always writes.
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
    /// use opkit::{EventRecorder, Operator, Result, StateContext};
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

    /// Lets objects that a controller reconciles refer to objects of kind `C` in other namespaces,
    /// and have children of kind `C` there
    /// ([`apply_unowned`](opkit_controller::Context::apply_unowned)), where `grant` returns true;
    /// [`Reference::is_applied`] is which of both. Without it such references are refused:
    /// otherwise whoever may write an object in one namespace could read, through the operator,
    /// what is in another, or write there.
    pub fn cross_namespace<C: Object>(
        mut self,
        grant: impl Fn(&Reference, &MapContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.setup
            .push(Box::new(|manager| manager.cross_namespace::<C>(grant)));
        self
    }

    /// Caches the kind `K` as `options` say: some of its objects, or without some of their fields.
    pub fn cache<K: Object>(mut self, options: InformerOptions) -> Self {
        self.setup
            .push(Box::new(|manager| manager.cache::<K>(options)));
        self
    }

    /// Adds a permission for calls that opkit cannot know of, such as those through
    /// `Context::client`.
    pub fn rule(mut self, rule: PolicyRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Watches only these namespaces, unless `--namespace` or `WATCH_NAMESPACE` says otherwise.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Elects a leader by the Lease of this name: of several replicas, one works at a time. The
    /// Lease is in the namespace of the pod. Outside of a pod, or where the pod's service account
    /// is not mounted, `--leader-election-namespace` names it; without it the operator does not
    /// start, unless `--leader-elect=false` turns the election off.
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
    /// use std::time::Duration;
    /// use opkit::{LeaderElectionOptions, Operator};
    ///
    /// let lease = "map-operator.opkit.dev";
    /// let operator = Operator::new("map-operator").leader_election(lease);
    ///
    /// // Or with timings of one's own.
    /// let seconds = Duration::from_secs;
    /// let slow = LeaderElectionOptions::new(lease).timings(seconds(60), seconds(40), seconds(5));
    /// let operator = operator.leader_election(slow);
    /// # drop(operator);
    /// ```
    pub fn leader_election(mut self, lease: impl Into<LeaderElectionOptions>) -> Self {
        self.leader_election = Some(lease.into());
        self
    }

    /// Runs the controllers against a further cluster as well; `connect` is called once, when the
    /// operator runs. [`Context::cluster`](opkit_controller::Context::cluster) and
    /// [`Request::cluster`](opkit_controller::Request) are the name for its objects. The operator's
    /// CRDs and roles have to be there too; the lease is in the first cluster alone.
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
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

    /// Adds a metric of the operator's own to what `/metrics` serves.
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
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

    /// Registers metrics of one's own, which `/metrics` shows beside opkit's.
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
    /// use opkit::Operator;
    /// use opkit::prometheus_client::metrics::info::Info;
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

    /// Adds a check to `/healthz`: whether this process works, or had better be started again. It
    /// is served where `--health-probe-bind-address` says, below `/healthz` under its name as well;
    /// 5 s without an answer are a failure. There is always `ping`, and with leader election
    /// `leaderElection`, which fails when the lease is neither renewed nor given up.
    ///
    /// # Examples
    /// ```
    /// # use opkit_operator as opkit;
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
        self.healthz = self.healthz.check(name, check);
        self
    }

    /// As [`health_check`](Operator::health_check), for `/readyz`: whether this process is ready
    /// for what others want of it. There is always `ping`, and `caches`, which fails until the
    /// caches are filled.
    pub fn ready_check<E, Fut>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.readyz = self.readyz.check(name, check);
        self
    }

    /// Posts events in this API; `events.k8s.io/v1` by default.
    pub fn event_api(mut self, api: EventApi) -> Self {
        self.event_api = api;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The CRDs of the kinds that this operator defines.
    pub fn crds(&self) -> Vec<CustomResourceDefinition> {
        self.crds.clone()
    }

    /// The controllers.
    pub fn controllers(&self) -> &[AnyController] {
        &self.controllers
    }

    /// The permissions that follow from what is declared: to read what is watched, to write
    /// children, and of the reconciled kinds their status and finalizers.
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
            rules: &self.rules,
            event_api: self.event_api,
        }
    }

    /// Who may do what, for an operator that is run with these flags.
    fn rbac(&self, flags: &Flags) -> Rbac {
        let elects = flags.leader_elect.unwrap_or(self.leader_election.is_some());
        let declared = self.leader_election.as_ref();
        let declared = declared.and_then(|election| election.namespace.clone());
        Rbac::new(&self.name, self.rules())
            .namespaces(namespaces::chosen(&flags.namespace, &self.namespaces))
            .leader_election(elects)
            .leader_election_namespace(flags.leader_election_namespace.clone().or(declared))
            .metrics_auth(flags.protects_metrics())
    }
}

#[cfg(test)]
mod tests;
