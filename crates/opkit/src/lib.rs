//! The operator SDK for Rust.
//!
//! An operator is a kind (kube's derive), an async function that reconciles it, and an [`Operator`]
//! that composes both (the example needs a cluster to run):
//!
//! ```no_run
//! use k8s_openapi::api::apps::v1::Deployment;
//! use opkit::prelude::*;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// A fleet of identical robots.
//! #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
//! #[kube(group = "robot.opkit.dev", version = "v1", kind = "Robot", namespaced, shortname = "rb", status = "RobotStatus")]
//! #[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.readyReplicas"))]
//! #[kube(printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"))]
//! #[serde(rename_all = "camelCase")]
//! pub struct RobotSpec {
//!     /// Image that every robot runs.
//!     pub image: String,
//!     /// How many robots to keep.
//!     #[serde(default = "one")]
//!     #[schemars(range(min = 0, max = 100))]
//!     pub replicas: i32,
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
//! /// Brings one robot to what its spec asks for. Called on every change of the robot or its deployment; safe to repeat.
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
//! # #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
//! # pub struct RobotStatus { ready_replicas: i32, conditions: Conditions }
//! # fn one() -> i32 { 1 }
//! # fn desired_deployment(robot: &Robot) -> Deployment { Deployment::default() }
//! ```
//!
//! `examples/robot-operator` is a whole one. What a function of [`Context`] promises is written at
//! that function.

pub use k8s_openapi;
pub use kube;
/// The derive of a schema with validations in CEL, for kinds by kube's derive.
pub use kube::KubeSchema;
/// Kubernetes' object rules: identity, schemes, selectors, patches, protobuf.
pub use opkit_apimachinery as apimachinery;
/// Informers, stores, indexes, listers, and the client that reads through them.
pub use opkit_cache as cache;
/// The clients, discovery, the HTTP stack and the effect seam.
pub use opkit_client as client;
/// Makes a typed client for a custom resource, with no other verbs than those that are listed.
///
/// # Examples
/// ```
/// use opkit::prelude::*;
/// use opkit::client::{Client, ListOptions, RequestError};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, opkit::TypedClient, Serialize, Deserialize, JsonSchema, Clone, Debug)]
/// #[kube(group = "robot.opkit.dev", version = "v1", kind = "Robot", namespaced)]
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
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, opkit::TypedClient, Serialize, Deserialize, JsonSchema, Clone, Debug)]
/// # #[kube(group = "robot.opkit.dev", version = "v1", kind = "Robot", namespaced)]
/// # #[client(verbs(get, list, watch))]
/// # pub struct RobotSpec { size: i32 }
/// async fn remove(client: Client, robot: Robot) -> Result<(), RequestError> {
///     RobotClient::new(client).delete(&robot).await.map(drop)
/// }
/// ```
///
/// Nor does a status that kube does not declare, or that `no_status` takes away ("this client has no
/// `status`"):
///
/// ```compile_fail,E0277
/// # use opkit::prelude::*;
/// # use opkit::client::{Client, RequestError};
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
/// # pub struct RobotStatus { ready: bool }
/// # #[derive(CustomResource, opkit::TypedClient, Serialize, Deserialize, JsonSchema, Clone, Debug)]
/// # #[kube(group = "robot.opkit.dev", version = "v1", kind = "Robot", namespaced, status = "RobotStatus")]
/// #[client(no_status)]
/// # pub struct RobotSpec { size: i32 }
/// async fn write(client: Client, robot: Robot) -> Result<Robot, RequestError> {
///     RobotClient::new(client).update_status(&robot).await
/// }
/// ```
pub use opkit_derive::TypedClient;
pub use opkit_derive::{kind, main, reconcile, schema, status, test};
#[cfg(feature = "test")]
pub use opkit_envtest::{BinariesError, Capability, ControlPlane, TestError, golden};
pub use opkit_operator::{
    Action, AnyController, AnyRunnable, ApplyError, CancellationToken, Cause, Cleanup, Condition,
    ConditionStatus, Conditions, Context, Controller, DynamicObject, Error, EventApi,
    EventRecorder, EventType, EverySource, HotLoop, InformerOptions, Kind, LeaderElectionOptions,
    Leadership, Live, MakeState, MakeStateWith, ManagerError, MapContext, MetricsRegistry,
    MissingPermissions, Object, ObjectKey, Operator, OperatorError, Outcome, Permission,
    PolicyRule, Quantity, QuantityError, QuantityExt, ReadError, Readiness, Reads, Reconcile,
    ReconcileLog, ReconcileRecord, RecordError, Reference, Request, Result, RunContext, RunOptions,
    Runnable, Scope, Selection, ServerAddresses, Source, StateContext, Stored, Trigger,
    TriggerError, Triggers, Write, WriteError, clap, event, finalizer, limiter, metrics, predicate,
    prometheus_client, trigger,
};

pub use schemars;
pub use serde;
pub use serde_json;

/// What an operator's modules name; `use opkit::prelude::*`.
pub mod prelude {
    pub use std::collections::BTreeMap;
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub use kube::{CustomResource, KubeSchema, ResourceExt};
    pub use opkit_derive::TypedClient;

    pub use crate::EventType::{Normal, Warning};
    pub use crate::{
        Action, Cleanup, Condition, ConditionStatus, Conditions, Context, Controller, Error,
        EventType, MapContext, ObjectKey, Operator, PolicyRule, Quantity, QuantityExt, Readiness,
        Reference, Request, Result, RunContext, Runnable, Selection, StateContext, predicate,
    };
    #[cfg(feature = "test")]
    pub use crate::{Capability, ControlPlane};
}

/// What generated code names. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use opkit_client::{TypedClient, verbs};
    #[cfg(feature = "test")]
    pub use opkit_envtest::run as test;
    pub use opkit_operator::entry::main;
    pub use opkit_operator::{kinds, signature};
    pub use {k8s_openapi, kube, schemars, serde};
}
