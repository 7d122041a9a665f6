//! Errors of the calls of `Context`.

use std::sync::Arc;

use opkit_cache::ObjectError;
use opkit_client::{Kind, ObjectKey, RequestError};

/// An error of `Context::apply`, `adopt`, `create_once` or `apply_unowned`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The reconciled object is already deleted, so it cannot own a child.
    #[error("cannot apply {} {key} for {owner}, which is deleted", kind.kind)]
    OwnerGone {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// Kind and key of the reconciled object, as text.
        owner: String,
    },
    /// The controller does not declare the kind of the child.
    #[error(
        "cannot apply {} {key}: controller {controller} does not {} the kind {}, so it would not be watched or pruned; declare it with .{}::<{}>()",
        kind.kind,
        if *is_owned { "own" } else { "declare" },
        kind.kind,
        if *is_owned { "owns" } else { "applies_unowned" },
        kind.kind
    )]
    NotDeclared {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// Name of the controller.
        controller: String,
        /// Whether the call was one that sets an owner reference on the child (not
        /// `apply_unowned`).
        is_owned: bool,
    },
    /// The reconciled object is being deleted, so a child cannot be recorded on it.
    #[error("cannot apply {} {key} for {owner}, which is being deleted", kind.kind)]
    OwnerDeleting {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// Kind and key of the reconciled object, as text.
        owner: String,
    },
    /// The child is in another namespace, and the operator's `cross_namespace` function does not
    /// grant that.
    #[error(
        "{owner} may not apply {} {key} in another namespace: declare .cross_namespace::<{}>(..) with a function that grants it",
        kind.kind, kind.kind
    )]
    NotGranted {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// Kind and key of the reconciled object, as text.
        owner: String,
    },
    /// The annotation that records the children of the reconciled object cannot be parsed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An object with the child's name exists and is not controlled by the reconciled object.
    #[error(
        "{} {key} exists and {} {owner}{}",
        kind.kind,
        if *is_owned { "is not controlled by" } else { "does not have the annotations of a child of" },
        controller(controlled_by)
    )]
    NotOurs {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// Kind and key of the reconciled object, as text.
        owner: String,
        /// Whether the call was one that sets an owner reference on the child (not
        /// `apply_unowned`).
        is_owned: bool,
        /// The object that controls the existing object, if any.
        controlled_by: Option<String>,
    },
    /// The child is being deleted.
    #[error("cannot apply {} {key} for {owner}: it is being deleted; it is created again after that", kind.kind)]
    Deleting {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// Kind and key of the reconciled object, as text.
        owner: String,
    },
    /// The child does not have the requested `resourceVersion`.
    #[error("cannot apply {} {key} at resourceVersion {asked}: {}", kind.kind, version(found))]
    Version {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// The `resourceVersion` that the user requires.
        asked: String,
        /// The current `resourceVersion` of the child; `None` if the child does not exist.
        found: Option<String>,
    },
    /// The child cannot be owned because of its namespace or scope.
    #[error("{owner} cannot own {} {key}: {why}", kind.kind)]
    Scope {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// Kind and key of the reconciled object, as text.
        owner: String,
        /// Description of the problem.
        why: &'static str,
    },
    /// The child has no name.
    #[error("{owner} cannot apply a {} without a name", kind.kind)]
    Unnamed {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Kind and key of the reconciled object, as text.
        owner: String,
    },
    /// The child is a Secret with `stringData`, which cannot be applied.
    #[error(
        "cannot apply Secret {key} with stringData: the server converts it to data; set data instead"
    )]
    StringData {
        /// Key of the Secret.
        key: ObjectKey,
    },
    /// The child cannot be encoded as JSON, or the response cannot be decoded.
    #[error("cannot apply {} {key}: it does not fit its Rust type", kind.kind)]
    Json {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// The JSON error.
        #[source]
        cause: serde_json::Error,
    },
    /// A request to the server failed.
    #[error("cannot apply {} {key} as field manager {manager:?}", kind.kind)]
    Request {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// The field manager of the request.
        manager: String,
        /// The error of the request, which names the request.
        #[source]
        cause: RequestError,
    },
}

/// The annotation that records the children of an object cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the annotation {annotation} of {owner}, which records its children")]
#[non_exhaustive]
pub struct RecordError {
    /// Kind and key of the object with the annotation, as text.
    pub owner: String,
    /// Name of the annotation.
    pub annotation: String,
    /// The JSON error.
    #[source]
    pub cause: serde_json::Error,
}

fn controller(by: &Option<String>) -> String {
    match by {
        Some(by) => format!(" but by {by}"),
        None => String::new(),
    }
}

fn version(found: &Option<String>) -> String {
    match found {
        Some(found) => format!("it is at {found}"),
        None => "it does not exist".to_owned(),
    }
}

impl ApplyError {
    /// Reports whether the child changed since it was read, or does not have the required version.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Version { found, .. } => found.is_some(),
            Self::Request { cause, .. } => cause.is_conflict(),
            _ => false,
        }
    }

    /// Reports whether the child, its namespace or its kind does not exist.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Version { found, .. } => found.is_none(),
            Self::Request { cause, .. } => cause.is_not_found(),
            _ => false,
        }
    }

    /// Reports whether the child is being deleted.
    pub fn is_deleting(&self) -> bool {
        matches!(self, Self::Deleting { .. })
    }

    /// Reports whether an object with the child's name exists that is not a child of the reconciled
    /// object.
    pub fn is_not_ours(&self) -> bool {
        matches!(self, Self::NotOurs { .. })
    }
}

/// An error of `Context::update_status`, `Context::delete` or `Context::prune`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A status cannot be encoded as JSON, or the response cannot be decoded.
    #[error("cannot update the status of {} {key}: it does not fit its Rust type", kind.kind)]
    Json {
        /// Kind of the object.
        kind: Box<Kind>,
        /// Key of the object.
        key: ObjectKey,
        /// The JSON error.
        #[source]
        cause: serde_json::Error,
    },
    /// The object was deleted, and another object with the same name was created.
    #[error("cannot update the status of {} {key}: it was deleted and created again", kind.kind)]
    Replaced {
        /// Kind of the object.
        kind: Box<Kind>,
        /// Key of the object.
        key: ObjectKey,
    },
    /// The object was not read from the server: it has no UID, so it cannot be distinguished from
    /// another object with the same name.
    #[error("cannot delete {} {key}: it has no UID, so it was not read from the server", kind.kind)]
    NotRead {
        /// Kind of the object.
        kind: Box<Kind>,
        /// Key of the object.
        key: ObjectKey,
    },
    /// The annotation that records the children of the reconciled object cannot be parsed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A child without an owner reference cannot be deleted with its owner, because the controller
    /// no longer declares the kind of the child.
    #[error(
        "cannot delete {kind} {key} with {owner}: the kind is no longer declared; declare it with .applies_unowned::<{kind}>(), or remove the child from the annotation {annotation} of {owner}"
    )]
    UndeclaredChild {
        /// Kind and key of the owner, as text.
        owner: String,
        /// Kind of the child.
        kind: String,
        /// Key of the child.
        key: ObjectKey,
        /// Name of the annotation that records the child.
        annotation: String,
    },
    /// A child that is recorded on the reconciled object was read from the server but cannot be
    /// decoded.
    #[error("cannot read {} {key}", kind.kind)]
    Child {
        /// Kind of the child.
        kind: Box<Kind>,
        /// Key of the child.
        key: ObjectKey,
        /// The JSON error.
        #[source]
        cause: serde_json::Error,
    },
    /// A request to the server failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl WriteError {
    /// Reports whether the object changed since it was read.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Request(cause) if cause.is_conflict())
    }

    /// Reports whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Request(cause) if cause.is_not_found())
    }
}

/// An error of the methods `get` and `list` of `Context`, `Live`, `Reads` and `MapContext`, and of
/// `fetch` and `fetch_list` of `Context`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The controller does not declare the kind.
    #[error(
        "controller {controller} does not cache the kind {}: declare it with .owns::<{}>() or .watches::<{}>(..), or read from the server with .live()",
        kind.kind, kind.kind, kind.kind
    )]
    NotDeclared {
        /// Name of the controller.
        controller: String,
        /// The kind that is not declared.
        kind: Box<Kind>,
    },
    /// The controller reads the kind from the server, but the method reads only the cache.
    #[error(
        "controller {controller} does not cache the kind {}, which it reads from the server: use .fetch(..).await or .fetch_list(..).await",
        kind.kind
    )]
    Uncached {
        /// Name of the controller.
        controller: String,
        /// The kind.
        kind: Box<Kind>,
    },
    /// Neither the controller nor the operator declares where the kind is read.
    #[error(
        "controller {controller} does not declare the kind {}: declare it with .uncached::<{}>() to read it from the server, with .owns::<{}>() or .watches::<{}>(..) to cache it",
        kind.kind, kind.kind, kind.kind, kind.kind
    )]
    NotReadable {
        /// Name of the controller.
        controller: String,
        /// The kind that is not declared.
        kind: Box<Kind>,
    },
    /// Nothing in the operator declares the kind.
    #[error(
        "no controller caches the kind {0}: declare it with Operator::kinds::<({0},)>(), in a controller with .owns::<{0}>() or .watches::<{0}>(..), in a webhook with .reads::<{0}>()",
        kind.kind
    )]
    NotCached {
        /// The kind that is not declared.
        kind: Box<Kind>,
    },
    /// The initial list of the kind has not been received.
    #[error("the cache of the kind {} is not filled yet: wait with .synced().await", kind.kind)]
    NotSynced {
        /// The kind whose cache is not filled.
        kind: Box<Kind>,
    },
    /// The operator has stopped, so the cache may be out of date.
    #[error("the cache of the kind {} has stopped with the operator", kind.kind)]
    Stopped {
        /// The kind whose cache has stopped.
        kind: Box<Kind>,
    },
    /// The key has no namespace, and the reconciled object is cluster-scoped.
    #[error("cannot read {} {name} without a namespace: use (namespace, name) as the key", kind.kind)]
    NoNamespace {
        /// Kind of the object.
        kind: Box<Kind>,
        /// Name of the object.
        name: String,
    },
    /// The object is in another namespace, and the operator's `cross_namespace` function does not
    /// grant the reference.
    #[error(
        "{from} may not refer to {} {key} in another namespace: declare .cross_namespace::<{}>(..) with a function that grants it",
        kind.kind, kind.kind
    )]
    NotGranted {
        /// Kind of the object.
        kind: Box<Kind>,
        /// Key of the object.
        key: ObjectKey,
        /// Kind and key of the referring object, as text.
        from: String,
    },
    /// The object exists but cannot be decoded as its Rust type.
    #[error(transparent)]
    Unreadable(#[from] Arc<ObjectError>),
    /// The selection names an index, but the server has no indexes; only the cache has.
    #[error("cannot list {} live by the index {index:?}: the server has no indexes, use labels", kind.kind)]
    LiveIndex {
        /// Kind of the objects.
        kind: Box<Kind>,
        /// Name of the index.
        index: String,
    },
    /// A request to the server failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}
