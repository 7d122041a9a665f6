//! The operator SDK for Rust: one library and one command, with an embedded Kubernetes API server.
//!
//! An operator is a kind, an async function that reconciles it, and an [`Operator`] that composes
//! both (the example needs a cluster to run):
//!
//! ```no_run
//! use opkit::k8s_openapi::api::apps::v1::Deployment;
//! use opkit::prelude::*;
//!
//! /// A fleet of identical robots.
//! #[opkit::kind(
//!     group = "robot.opkit.dev", version = "v1", namespaced, status = RobotStatus, shortname = "rb",
//!     scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.readyReplicas")
//! )]
//! #[opkit(printcolumn("Ready", condition = "Ready"))]
//! pub struct RobotSpec {
//!     /// Image that every robot runs.
//!     pub image: String,
//!     /// Number of robots to run.
//!     #[opkit(default = 1, min = 0, max = 100)]
//!     pub replicas: i32,
//! }
//!
//! /// Observed state of a fleet.
//! #[opkit::status]
//! pub struct RobotStatus {
//!     pub ready_replicas: i32,
//!     pub observed_generation: Option<i64>,
//!     pub conditions: Conditions,
//! }
//!
//! #[opkit::main]
//! async fn main() -> opkit::Result {
//!     operator().run().await
//! }
//!
//! pub fn operator() -> Operator {
//!     Operator::new("robot-operator")
//!         .crd::<Robot>()
//!         .controller(Controller::new(reconcile).owns::<Deployment>())
//! }
//!
//! /// Brings one robot to the state in its spec. Called on every change of the robot or its deployment; safe to repeat.
//! async fn reconcile(robot: Arc<Robot>, cx: Context) -> Result<Action> {
//!     let deployment = cx.apply(desired_deployment(&robot)).await?;
//!
//!     cx.update_status(&robot, |status| {
//!         status.ready_replicas = deployment.ready_replicas();
//!         status.conditions.set(Condition::new("Ready", deployment.is_ready()).reason("DeploymentRollout"));
//!     })
//!     .await?;
//!     Ok(Action::await_change())
//! }
//! # fn desired_deployment(robot: &Robot) -> Deployment { Deployment::default() }
//! ```
//!
//! # I want to ...
//!
//! | I want to | method |
//! |---|---|
//! | declare a kind | [`#[opkit::kind]`](macro@kind), [`#[opkit::schema]`](macro@schema), [`#[opkit::status]`](macro@status), [`Operator::crd`] |
//! | serve several versions of a kind | [`#[opkit::version]`](macro@version), [`guides::versions`] |
//! | keep a child as I describe it | [`Controller::owns`], [`Context::apply`] |
//! | delete children that I no longer apply | [`Context::prune`] |
//! | create an object once, such as a Secret with a password | [`Context::create_once`] |
//! | apply an object in another namespace, or a cluster-scoped one | [`Controller::applies_unowned`], [`Context::apply_unowned`], [`Operator::cross_namespace`] |
//! | take over an object that another client created | [`Context::adopt`] |
//! | read other objects | [`Context::get`], [`Context::list`]; without the cache [`Context::live`] |
//! | read objects of a kind that is not worth a cache | [`Controller::uncached`], [`Context::fetch`] |
//! | reconcile when an object that the spec names changes | [`Controller::references`] |
//! | reconcile when anything else changes | [`Controller::watches`], [`Controller::watches_metadata`] |
//! | ignore some changes | [`Controller::primary`], [`Controller::owns_with`] with [`Source::only`](controller::Source::only) and a [`predicate`] |
//! | handle creates, updates and deletes differently | [`Source::on_create`](controller::Source::on_create), [`on_update`](controller::Source::on_update), [`on_delete`](controller::Source::on_delete) |
//! | wait for a child to be ready | [`Readiness::is_ready`], then [`Action::await_change`]: its change triggers the next reconcile |
//! | reconcile again later, or periodically | [`Action::requeue`]; all objects [`Controller::resync`] |
//! | react to a change outside of the cluster | [`trigger`](controller::trigger), [`Controller::watches_stream`] |
//! | clean up outside of the cluster | [`Controller::finalizer`], [`Cleanup`] |
//! | report progress | [`Context::update_status`], [`Condition`], [`Context::event`] |
//! | retry errors in different ways | [`Error::retry_after`], [`Error::terminal`], [`Controller::error_policy`] |
//! | share a connection among reconciles | [`Operator::state`], [`Context::state`] |
//! | declare my own flags | [`Operator::args`], [`clap`] |
//! | declare my own metrics | [`Operator::metric`], [`metrics`] |
//! | set defaults that a schema cannot express, or refuse objects | [`Operator::webhook`], [`Webhook`], [`Admission`] |
//! | run a task beside the controllers | [`Operator::runnable`], [`Runnable`] |
//! | read the cache, record events or follow the leadership there | [`RunContext`], [`StateContext`]; more kinds with [`Operator::kinds`] |
//! | serve pages | [`servers::HttpServer`] |
//! | run several replicas | [`Operator::leader_election`], [`leaderelection`] |
//! | reconcile objects of several clusters | [`Operator::cluster`], [`Context::cluster`] |
//! | limit how often failing objects are retried | [`Controller::max_retries`], [`Context::attempt`] |
//! | limit how fast failing objects are retried | [`Controller::backoff`], [`Controller::rate_limiter`], [`limiter`](controller::limiter) |
//! | reconcile objects of a kind known at run time | [`Controller::dynamic`] |
//! | find out which part of a reconcile function's signature is wrong | [`#[opkit::reconcile]`](macro@reconcile) |
//! | test it | [`#[opkit::test]`](macro@test), `testing::ControlPlane` (feature `test`) |
//! | check CRDs and samples without a control plane | `testing::check` (feature `test`) |
//! | print CRDs and roles | the binary's `manifests` |
//!
//! # Parts for a loop of one's own
//!
//! A program without an [`Operator`] can use the parts that opkit consists of, alone or together;
//! [`guides::cache`] has an example of each, and the repository's example `hand-written-controller`
//! is a controller that consists of them.
//!
//! | part | type | in client-go |
//! |---|---|---|
//! | list and watch the API, or any two functions | [`cache::ListWatch`] | `ListWatch` |
//! | keep a store of one's own in step | [`cache::Reflector`], [`cache::ReflectorStore`] | `Reflector`, `Store` |
//! | store with indexes that the program fills | [`cache::Indexer`] | `Indexer` |
//! | changes, compressed per key | [`cache::DeltaQueue`] | `DeltaFIFO` |
//! | shared informers, listers, handlers | [`cache::InformerFactory`], [`cache::Lister`], [`cache::Listener`] | `SharedInformerFactory`, listers |
//! | queue without duplicates, rate limiters | [`workqueue::Queue`], [`workqueue::RateLimiter`] | `workqueue` |
//! | leader election | [`leaderelection::LeaderElector`] | `leaderelection` |
//! | events | [`events::event_recorder`] | `record.EventBroadcaster` |
//!
//! The documentation of each method states its guarantees.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `v1_33` to `v1_37` | the Kubernetes version of the API's types; choose one, here or on k8s-openapi |
//! | `apply-types` | `apply_types!`: apply configurations of built-in kinds |
//! | `test` | `#[opkit::test]` and `ControlPlane`; for dev-dependencies |
//! | `otlp` | traces over OTLP, sent to the endpoint in `OTEL_EXPORTER_OTLP_ENDPOINT` |
//! | `oidc` | refreshes the ID tokens of a kubeconfig with `auth-provider: oidc` |
//! | `ws` | exec, attach and port-forward over WebSockets |
//!
//! # Guides
//!
//! | guide | |
//! |---|---|
//! | [`guides::kinds`] | kinds, their schemas and the CRDs that follow from them |
//! | [`guides::versions`] | several versions of a kind, conversion, migration of stored objects |
//! | [`guides::controller`] | sources, reconciles, children, finalizers, states, leader election |
//! | [`guides::webhooks`] | admission webhooks and policies, and what schemas and CEL rules do without them |
//! | [`guides::testing`] | tests on the embedded control plane and on real Kubernetes |
//! | [`guides::envtest`] | the embedded API server for test suites in Go and other languages |
//! | [`guides::observability`] | logs, metrics, traces, health, and `opkit explain` |
//! | [`guides::client`] | requests without a controller |
//! | [`guides::cache`] | informers and listers without a controller |
//! | [`guides::coming_from_client_go`] | what replaces each generator and tag of code-generator |
//! | [`guides::coming_from_kube_rs`] | what replaces kube's derive, controllers and reflectors |
//! | [`guides::coming_from_kubebuilder`] | what replaces each command, make target, marker and type |
//!
//! Complete operators are in the repository's `examples`: `robot-operator` (a Deployment),
//! `database-operator` (six kinds of children, flags, metrics, a finalizer with a Job),
//! `shop-operator` (children in order), `bucket-operator` (a resource outside of the cluster),
//! `catalog-operator` (a web server that reads the cache),
//! `namespace-operator` (a built-in kind), `secret-operator` (references to other namespaces),
//! `demo-operator` (kube's derive).

#[cfg(all(doc, not(doctest)))]
pub mod guides;

pub use k8s_openapi;
pub use kube;
/// Derive of a schema with CEL validations, for kinds of kube's derive.
pub use kube::KubeSchema;
/// Generates apply configurations of built-in kinds and of the types of their fields.
///
/// A kind is a name, or a path as in k8s-openapi if several groups or versions have the name:
/// `apply_types!(Deployment, autoscaling::v2::HorizontalPodAutoscaler)`. For the kind `Deployment`,
/// the macro generates `DeploymentApply`, `DeploymentSpecApply`, `PodSpecApply` and so on, in which
/// all fields are optional. A field that is not set is not applied, so that another field manager
/// can own it. Only what is named is generated, because it takes time to compile: 150 structs for
/// `Deployment`. The fields are those of Kubernetes 1.36.
///
/// # Examples
/// ```
/// use opkit::client::{ApplyConfiguration, Client, RequestError};
/// use opkit::k8s_openapi::api::core::v1::Service;
///
/// opkit::apply_types!(Service);
///
/// /// Sets the session affinity, and leaves all other fields to their managers.
/// async fn pin(client: Client) -> Result<Service, RequestError> {
///     let mine = ServiceApply::new("shop").spec(ServiceSpecApply::new().session_affinity("ClientIP"));
///     client.apply_configuration(&mine).await
/// }
///
/// let service = Service::default();
/// assert!(ServiceApply::extract(&service, "me")?.spec.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[cfg(feature = "apply-types")]
pub use opkit_apply_types::apply_types;
/// Informers, stores, indexes, listers, and the client that reads through them.
pub use opkit_cache as cache;
/// Clients, discovery, the HTTP stack, and the interface that intercepts requests.
pub use opkit_client as client;
pub use opkit_controller::{
    Action, Cleanup, Condition, ConditionStatus, Conditions, Context, Controller, Error,
    MapContext, ObjectKey, Quantity, QuantityExt, Readiness, Reference, Request, Result,
    RunContext, Runnable, Selection, StateContext, predicate,
};
/// Generates a typed client for a custom resource, with only the listed verbs.
///
/// # Examples
/// ```
/// use opkit::prelude::*;
/// use opkit::client::{Client, ListOptions, RequestError};
///
/// #[opkit::kind(group = "robot.opkit.dev", version = "v1", namespaced)]
/// #[derive(opkit::TypedClient)]
/// #[client(verbs(get, list, watch))]
/// pub struct RobotSpec {
///     size: i32,
/// }
///
/// async fn count(client: Client) -> Result<usize, RequestError> {
///     Ok(RobotClient::new(client).list_all(&ListOptions::new()).await?.items.len())
/// }
/// ```
///
/// A verb that is not listed does not compile ("this client may not `delete`"):
///
/// ```compile_fail,E0277
/// # use opkit::prelude::*;
/// # use opkit::client::{Client, RequestError};
/// # #[opkit::kind(group = "robot.opkit.dev", version = "v1", namespaced)]
/// # #[derive(opkit::TypedClient)]
/// # #[client(verbs(get, list, watch))]
/// # pub struct RobotSpec { size: i32 }
/// async fn remove(client: Client, robot: Robot) -> Result<(), RequestError> {
///     RobotClient::new(client).delete(&robot).await.map(drop)
/// }
/// ```
///
/// Access to a status that the kind does not declare, or that `no_status` removes, does not compile
/// either ("this client has no `status`"):
///
/// ```compile_fail,E0277
/// # use opkit::prelude::*;
/// # use opkit::client::{Client, RequestError};
/// # #[opkit::status]
/// # #[allow(deprecated)]
/// # pub struct RobotStatus { ready: bool }
/// # #[opkit::kind(group = "robot.opkit.dev", version = "v1", namespaced, status = RobotStatus)]
/// # #[derive(opkit::TypedClient)]
/// #[client(no_status)]
/// # pub struct RobotSpec { size: i32 }
/// async fn write(client: Client, robot: Robot) -> Result<Robot, RequestError> {
///     RobotClient::new(client).update_status(&robot).await
/// }
/// ```
pub use opkit_derive::TypedClient;
pub use opkit_derive::{kind, main, reconcile, schema, status, test, version};
pub use opkit_events::EventType;
pub use opkit_operator::{Operator, PolicyRule, clap};
pub use opkit_webhook::{Admission, AdmissionRequest, Webhook, WebhookContext};
/// The work queue, its rate limiters and metrics, for a loop of one's own.
pub use opkit_workqueue as workqueue;

pub use schemars;
pub use serde;
pub use serde_json;

/// Names and versions of kinds, conversion between versions, the registry of types, conditions and
/// quantities.
pub mod apimachinery {
    pub use opkit_apimachinery::{conditions, conversion, identity, quantity, scheme, selector};
}

/// Controllers: sources, reconcile functions, their context, and the log of reconciles.
pub mod controller {
    pub use opkit_controller::{
        Action, AnyController, ApplyError, Cause, Cleanup, Context, Controller, EverySource,
        HotLoop, Live, MapContext, Outcome, ReadError, Reads, Reasons, Reconcile, ReconcileLog,
        ReconcileRecord, RecordError, Reference, Request, Source, Trigger, TriggerError, Triggers,
        UndeclaredReads, Write, WriteError, event, finalizer, limiter, predicate, trigger,
    };
}

/// Events that an operator records on objects, and the poster of a program without an operator.
pub mod events {
    pub use opkit_events::{
        EventApi, EventMetrics, EventPoster, EventRecorder, EventType, ObjectReference, Reporter,
        event_recorder,
    };
}

/// Leader election among the replicas of an operator, or of a program without one.
pub mod leaderelection {
    pub use opkit_leaderelection::{
        LeaderElectionError, LeaderElectionMetrics, LeaderElectionOptions, LeaderElector,
        LeaderWatchdog, LeaderWork, Leadership, WorkGuard,
    };
}

/// Registry of metrics, and counters, gauges and histograms with labels.
pub mod metrics {
    pub use opkit_operator::prometheus_client;
    pub use opkit_servers::metrics::{Counter, Gauge, Histogram, Labelled, MetricsRegistry};
}

/// The operator: options of a run, runnables, states, and the errors that end a run.
pub mod operator {
    pub use opkit_controller::{
        AnyRunnable, Kinds, ManagerError, MissingPermissions, Permission, RunContext, Runnable,
        StateContext, until_signal,
    };
    pub use opkit_operator::{
        CancellationToken, FailedReconcile, MakeState, MakeStateWith, ObjectName, Operator,
        OperatorError, OperatorPlan, PlannedEffect, PlannedObject, PolicyRule, Rbac,
        ReconciledKind, RunOptions, ServerAddresses, ShardKey,
    };
}

/// Manifests of an operator: the model that [`Operator::manifests`] returns, and the settings of
/// one cluster.
pub mod manifests {
    pub use opkit_operator::{Model, ModelObject, Part, Settings};
}

/// A small HTTP server for an operator's own pages, and the crate of its requests and responses.
pub mod servers {
    pub use opkit_servers::{HttpServer, ServerError, http};
}

/// Webhooks: admission, authentication and authorization, and admission policies.
pub mod webhook {
    pub use opkit_operator::{
        CertificatePeriods, MutatingPolicy, OwnCertificateOptions, PolicyResource,
        ValidatingPolicy, WebhookCertificates, WebhookManifests,
    };
    pub use opkit_webhook::{
        Admission, AdmissionObject, AdmissionRequest, AnyWebhook, Authentication, Authorization,
        CertificateError, CertificateSource, Defaulted, FailurePolicy, LiveError, LiveReads,
        Operation, ReinvocationPolicy, RuleScope, SideEffects, Webhook, WebhookContext,
        WebhookRouter,
    };
}

/// Control planes for tests, checks of an operator without a control plane, and golden files.
#[cfg(feature = "test")]
pub mod testing {
    pub use opkit_envtest::{
        AuthServer, BinariesError, Capability, ControlPlane, DeniedRequest, TestError, check,
        fixtures, golden,
    };
}

/// Names that the modules of an operator use; `use opkit::prelude::*`.
pub mod prelude {
    pub use std::collections::BTreeMap;
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub use kube::{CustomResource, KubeSchema, ResourceExt};
    pub use opkit_derive::TypedClient;

    pub use crate::EventType::{Normal, Warning};
    #[cfg(feature = "test")]
    pub use crate::testing::{Capability, ControlPlane};
    pub use crate::{
        Action, Admission, AdmissionRequest, Cleanup, Condition, ConditionStatus, Conditions,
        Context, Controller, Error, EventType, MapContext, ObjectKey, Operator, PolicyRule,
        Quantity, QuantityExt, Readiness, Reference, Request, Result, RunContext, Runnable,
        Selection, StateContext, Webhook, WebhookContext, predicate,
    };
}

/// Names that generated code uses. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use opkit_client::{ApplyConfiguration, TypedClient, verbs};
    pub use opkit_controller::signature;
    #[cfg(feature = "test")]
    pub use opkit_envtest::run as test;
    pub use opkit_operator::CONVERSIONS;
    pub use opkit_operator::entry::main;
    pub use opkit_operator::kinds;
    pub use {k8s_openapi, kube, schemars, serde, serde_json};
}
