//! Marker traits for the verbs of a [`TypedClient`](crate::TypedClient).
//!
//! A type that represents a set of verbs implements one trait for each verb. The derive
//! `TypedClient` of `opkit` declares such a type; [`All`] has all verbs. The traits have no effect
//! at run time.

/// Set of all verbs and of the subresources `status` and `scale`.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{TypedClient, verbs};
/// type ConfigMaps = TypedClient<ConfigMap, verbs::All>;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct All;

/// Allows reading one object.
#[diagnostic::on_unimplemented(
    message = "this client may not `get`",
    label = "the verb `get` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `get` there if the operator needs it"
)]
pub trait Get {}

impl Get for All {}

/// Allows listing a collection.
#[diagnostic::on_unimplemented(
    message = "this client may not `list`",
    label = "the verb `list` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `list` there if the operator needs it"
)]
pub trait List {}

impl List for All {}

/// Allows watching a collection.
#[diagnostic::on_unimplemented(
    message = "this client may not `watch`",
    label = "the verb `watch` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `watch` there if the operator needs it"
)]
pub trait Watch {}

impl Watch for All {}

/// Allows creating an object.
#[diagnostic::on_unimplemented(
    message = "this client may not `create`",
    label = "the verb `create` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `create` there if the operator needs it"
)]
pub trait Create {}

impl Create for All {}

/// Allows replacing an object.
#[diagnostic::on_unimplemented(
    message = "this client may not `update`",
    label = "the verb `update` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `update` there if the operator needs it"
)]
pub trait Update {}

impl Update for All {}

/// Allows patching and applying an object.
#[diagnostic::on_unimplemented(
    message = "this client may not `patch`",
    label = "the verb `patch` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `patch` there if the operator needs it"
)]
pub trait Patch {}

impl Patch for All {}

/// Allows deleting an object.
#[diagnostic::on_unimplemented(
    message = "this client may not `delete`",
    label = "the verb `delete` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `delete` there if the operator needs it"
)]
pub trait Delete {}

impl Delete for All {}

/// Allows deleting the objects of a collection.
#[diagnostic::on_unimplemented(
    message = "this client may not `deletecollection`",
    label = "the verb `deletecollection` is not among those of `{Self}`",
    note = "a client has the verbs that `#[client(verbs(...))]` lists: add `deletecollection` there if the operator needs it"
)]
pub trait DeleteCollection {}

impl DeleteCollection for All {}

/// Allows writing the subresource `status`.
#[diagnostic::on_unimplemented(
    message = "this client has no `status`",
    label = "the subresource `status` is not among those of `{Self}`",
    note = "a client has the subresource that `#[kube(status...)]` declares, unless `#[client(no_status)]` takes it away"
)]
pub trait Status {}

impl Status for All {}

/// Allows reading and writing the subresource `scale`.
#[diagnostic::on_unimplemented(
    message = "this client has no `scale`",
    label = "the subresource `scale` is not among those of `{Self}`",
    note = "a client has the subresource that `#[kube(scale...)]` declares, unless `#[client(no_scale)]` takes it away"
)]
pub trait Scale {}

impl Scale for All {}
