//! Why a call of `Context` failed.

use std::sync::Arc;

use opkit_cache::ObjectError;
use opkit_client::{Kind, ObjectKey, RequestError};

/// Why `Context::apply`, `adopt`, `create_once` or `apply_unowned` did not apply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The reconciled object is gone: nothing can be its child.
    #[error("cannot apply {} {key} for {owner}, which is gone", kind.kind)]
    OwnerGone {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// What was reconciled.
        owner: String,
    },
    /// The controller did not declare that it owns the kind.
    #[error(
        "cannot apply {} {key}: controller {controller} does not {} the kind {}, so nothing would watch or prune it; declare it with .{}::<{}>()",
        kind.kind,
        if *is_owned { "own" } else { "declare" },
        kind.kind,
        if *is_owned { "owns" } else { "applies_unowned" },
        kind.kind
    )]
    NotDeclared {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// The controller that applied.
        controller: String,
        /// Whether the child was to have an owner reference.
        is_owned: bool,
    },
    /// The reconciled object is being deleted, so no child can be recorded on it.
    #[error("cannot apply {} {key} for {owner}, which is being deleted", kind.kind)]
    OwnerDeleting {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// What was reconciled.
        owner: String,
    },
    /// The child is in another namespace, and nobody granted that.
    #[error(
        "{owner} may not apply {} {key} in another namespace: the operator must declare .cross_namespace::<{}>(..), and that must grant it",
        kind.kind, kind.kind
    )]
    NotGranted {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// Who applied.
        owner: String,
    },
    /// The record of children on the reconciled object cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An object of that name exists and is not controlled by the owner.
    #[error(
        "{} {key} exists and {} {owner}{}",
        kind.kind,
        if *is_owned { "is not controlled by" } else { "does not carry the marks of" },
        controller(controlled_by)
    )]
    NotOurs {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// Who applied.
        owner: String,
        /// Whether the child was to have an owner reference.
        is_owned: bool,
        /// Who controls the object, if anybody.
        controlled_by: Option<String>,
    },
    /// The child is being deleted.
    #[error("cannot apply {} {key} for {owner}: it is being deleted, and made anew once it is gone", kind.kind)]
    Deleting {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// Who applied.
        owner: String,
    },
    /// The child is not at the version at which it shall be applied.
    #[error("cannot apply {} {key} at resourceVersion {asked}: {}", kind.kind, version(found))]
    Version {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// The version that was asked for.
        asked: String,
        /// The version that it has; none if it does not exist.
        found: Option<String>,
    },
    /// The child is not where its owner is.
    #[error("{owner} cannot own {} {key}: {why}", kind.kind)]
    Scope {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// Who applied.
        owner: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The child has no name.
    #[error("{owner} cannot apply a {} without a name", kind.kind)]
    Unnamed {
        /// The kind of the child.
        kind: Box<Kind>,
        /// Who applied.
        owner: String,
    },
    /// The child has a field that cannot be applied.
    #[error("cannot apply Secret {key} with stringData: the server turns it into data; set data")]
    StringData {
        /// The secret.
        key: ObjectKey,
    },
    /// The child cannot be written as JSON, or the answer not be read.
    #[error("cannot apply {} {key}: it does not fit its Rust type", kind.kind)]
    Json {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// Where.
        #[source]
        cause: serde_json::Error,
    },
    /// A request failed.
    #[error("cannot apply {} {key} as field manager {manager:?}", kind.kind)]
    Request {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// As whom.
        manager: String,
        /// Which request, and why.
        #[source]
        cause: RequestError,
    },
}

/// The record of children on an object cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the annotation {annotation} of {owner}, which records its children")]
#[non_exhaustive]
pub struct RecordError {
    /// The object.
    pub owner: String,
    /// The annotation.
    pub annotation: String,
    /// Where.
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
    /// Whether the child changed since it was read.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Version { found, .. } => found.is_some(),
            Self::Request { cause, .. } => cause.is_conflict(),
            _ => false,
        }
    }

    /// Whether the child, its namespace or its kind does not exist.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Version { found, .. } => found.is_none(),
            Self::Request { cause, .. } => cause.is_not_found(),
            _ => false,
        }
    }

    /// Whether the child is being deleted.
    pub fn is_deleting(&self) -> bool {
        matches!(self, Self::Deleting { .. })
    }

    /// Whether the name belongs to somebody else's object.
    pub fn is_not_ours(&self) -> bool {
        matches!(self, Self::NotOurs { .. })
    }
}

/// Why `Context::update_status`, `Context::delete` or `Context::prune` did not write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A status cannot be written as JSON, or the answer not be read.
    #[error("cannot update the status of {} {key}: it does not fit its Rust type", kind.kind)]
    Json {
        /// The kind.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
        /// Where.
        #[source]
        cause: serde_json::Error,
    },
    /// The object was replaced by another of the same name.
    #[error("cannot update the status of {} {key}: it was deleted and made anew", kind.kind)]
    Replaced {
        /// The kind.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
    },
    /// The object does not come from the server, so it cannot be told from another of its name.
    #[error("cannot delete {} {key}: it was not read from the server, as it has no UID", kind.kind)]
    NotRead {
        /// The kind.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
    },
    /// The record of children on the reconciled object cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A recorded child cannot be deleted with its owner, because its kind is not declared any
    /// more.
    #[error(
        "cannot delete {kind} {key} with {owner}: the kind is not declared any more; declare it with .applies_unowned::<{kind}>(), or take the child out of the annotation {annotation} of {owner}"
    )]
    UndeclaredChild {
        /// What is being deleted.
        owner: String,
        /// The kind of the child.
        kind: String,
        /// The child.
        key: ObjectKey,
        /// The annotation that records it.
        annotation: String,
    },
    /// A recorded child cannot be read.
    #[error("cannot read {} {key}", kind.kind)]
    Child {
        /// The kind of the child.
        kind: Box<Kind>,
        /// The child.
        key: ObjectKey,
        /// Where.
        #[source]
        cause: serde_json::Error,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl WriteError {
    /// Whether the object changed since it was read.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Request(cause) if cause.is_conflict())
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Request(cause) if cause.is_not_found())
    }
}

/// Why `get` or `list`, of `Context` or of `Live`, cannot answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The controller did not say that it reads this kind.
    #[error(
        "controller {controller} does not cache the kind {}: declare it with .owns::<{}>() or .watches::<{}>(..), or ask the server with .live()",
        kind.kind, kind.kind, kind.kind
    )]
    NotDeclared {
        /// Who reads.
        controller: String,
        /// What.
        kind: Box<Kind>,
    },
    /// No controller of the operator reads this kind.
    #[error(
        "no controller caches the kind {}: declare it with .owns::<{}>() or .watches::<{}>(..)",
        kind.kind, kind.kind, kind.kind
    )]
    NotCached {
        /// The kind.
        kind: Box<Kind>,
    },
    /// The first list of a kind is not in.
    #[error("the cache of the kind {} is not filled yet: wait with .synced().await", kind.kind)]
    NotSynced {
        /// The kind.
        kind: Box<Kind>,
    },
    /// The key names no namespace, and the reconciled object has none.
    #[error("cannot read {} {name} without a namespace: give (namespace, name)", kind.kind)]
    NoNamespace {
        /// The kind.
        kind: Box<Kind>,
        /// The name.
        name: String,
    },
    /// The object is in another namespace, and nobody granted the reference.
    #[error(
        "{from} may not refer to {} {key} in another namespace: the operator must declare .cross_namespace::<{}>(..), and that must grant it",
        kind.kind, kind.kind
    )]
    NotGranted {
        /// The kind of the object.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
        /// What refers to it.
        from: String,
    },
    /// The object is there, but does not fit its Rust type.
    #[error(transparent)]
    Unreadable(#[from] Arc<ObjectError>),
    /// A selection names an index, which only the cache has.
    #[error("cannot list {} live by the index {index:?}: the server has no indexes, use labels", kind.kind)]
    LiveIndex {
        /// The kind.
        kind: Box<Kind>,
        /// The index.
        index: String,
    },
    /// The server was asked and did not answer.
    #[error(transparent)]
    Request(#[from] RequestError),
}
