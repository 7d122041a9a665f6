//! What can go wrong in this room, one enum per family of operations.

use thiserror::Error;

use crate::identity::GroupVersionKind;
use crate::scheme::Format;

/// A schema that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A keyword holds a value of the wrong shape.
    #[error("schema at {path:?}: {keyword} must be {expected}")]
    Keyword {
        /// Where in the schema document, as keywords and property names joined by dots.
        path: String,
        /// The keyword, for example `minLength`.
        keyword: &'static str,
        /// What the keyword takes.
        expected: &'static str,
    },
    /// A regular expression that does not compile.
    #[error("schema at {path:?}: pattern {pattern:?} does not compile: {reason}")]
    Pattern {
        /// Where in the schema document.
        path: String,
        /// The expression as written.
        pattern: String,
        /// What the expression compiler says.
        reason: String,
    },
}

/// A patch that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch document itself is wrong: HTTP 400.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well formed but does not fit the object (a failed `test`, a missing
    /// path): HTTP 422. Kubernetes keeps the reason to itself and answers `the server rejected
    /// our request due to an error in our request`.
    #[error("{0}")]
    Unprocessable(String),
}

impl PatchError {
    /// Whether the patch document itself is wrong (HTTP 400 rather than 422).
    pub fn is_malformed(&self) -> bool {
        matches!(self, Self::Malformed(_))
    }
}

/// A selector that cannot be parsed. The text is the one Kubernetes answers with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SelectorError {
    pub(crate) message: String,
}

impl SelectorError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// A shard selector that cannot be parsed. The text is the one Kubernetes answers with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ShardError {
    message: String,
}

impl ShardError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// A protobuf body that cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The bytes are no envelope.
    #[error("the body does not begin with the bytes \"k8s\\0\" of Kubernetes' protobuf")]
    NoMagic,
    /// The envelope says that its content is neither protobuf nor JSON.
    #[error("cannot read an object encoded as {what:?}")]
    Encoding {
        /// The content type or content encoding.
        what: String,
    },
    /// No built-in kind has this name.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The bytes do not read as the message of their kind.
    #[error("{field} {reason}")]
    Malformed {
        /// The message, and the field of it where that is known: `core.v1.PodSpec.containers`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are sound, but what they hold does not fit the type that is read.
    #[error("{field}: {reason}")]
    Mismatch {
        /// The message and its field; empty while it is not known.
        field: String,
        /// What the type says about it.
        reason: String,
    },
    /// A value that the message of its kind cannot hold.
    #[error("cannot write {field} as protobuf: it {reason}")]
    Unwritable {
        /// The message and its field: `core.v1.PodSpec.containers`.
        field: String,
        /// What is wrong with the value.
        reason: String,
    },
    /// An object does not say what it is.
    #[error("cannot write an object as protobuf that has no {field}")]
    NoTypeMeta {
        /// `apiVersion` or `kind`.
        field: &'static str,
    },
    /// The table of messages in this crate is broken.
    #[error("internal: a line of the table of messages makes no sense: {line:?}")]
    Table {
        /// The line.
        line: String,
    },
}

impl ProtobufError {
    /// Whether the kind is not in the table: JSON may be able to carry it.
    pub fn is_unknown_kind(&self) -> bool {
        matches!(self, Self::UnknownKind { .. })
    }

    /// Says where a type did not fit, unless a field further in has already said so.
    pub(crate) fn located(mut self, message: &str, name: &str) -> Self {
        if let Self::Mismatch { field, .. } = &mut self
            && field.is_empty()
        {
            *field = format!("{message}.{name}");
        }
        self
    }
}

impl serde::de::Error for ProtobufError {
    fn custom<T: std::fmt::Display>(reason: T) -> Self {
        Self::Mismatch {
            field: String::new(),
            reason: reason.to_string(),
        }
    }
}

/// A text that names no kind and no resource.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Neither `version` nor `group/version`.
    #[error("{text:?} is not a group and a version, such as \"apps/v1\"")]
    GroupVersion {
        /// What was read.
        text: String,
    },
    /// Neither `name` nor `name.group`.
    #[error("{text:?} is not a name and a group, such as \"deployments.apps\"")]
    GroupName {
        /// What was read.
        text: String,
    },
    /// Not `group/version, Kind=name` or `group/version, Resource=name`.
    #[error("{text:?} is not a group, a version and a name, such as \"apps/v1{between}NAME\"")]
    GroupVersionName {
        /// What was read.
        text: String,
        /// What stands between the version and the name.
        between: &'static str,
    },
    /// A field that cannot be in the path of a resource.
    #[error("the {field} {text:?} cannot be in the path of a resource: it {reason}")]
    Segment {
        /// The field: `group`, `version`, `namespace`, `resource`, `name` or `subresource`.
        field: &'static str,
        /// Its value.
        text: String,
        /// Why a server would not read the field back.
        reason: &'static str,
    },
}

/// A kind or a type that a scheme cannot handle, or an object that is not what it should be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// A kind was registered with two types.
    #[error("{gvk} cannot be {refused}: it is {registered}")]
    TwoTypes {
        /// The kind.
        gvk: GroupVersionKind,
        /// The type that it has.
        registered: &'static str,
        /// The type that it should also have had.
        refused: &'static str,
    },
    /// A kind was not registered.
    #[error("no type is registered for {gvk}")]
    UnknownKind {
        /// The kind.
        gvk: GroupVersionKind,
    },
    /// A type was not registered.
    #[error("the type {type_name} is not registered")]
    UnknownType {
        /// The type.
        type_name: &'static str,
    },
    /// An object does not say what it is.
    #[error("an object has no {field}")]
    NoTypeMeta {
        /// `apiVersion` or `kind`.
        field: &'static str,
    },
    /// An object's `apiVersion` is not a group and a version.
    #[error("an object has an apiVersion that is none")]
    ApiVersion {
        /// What is wrong with it.
        #[source]
        cause: IdentityError,
    },
    /// The bytes do not read.
    #[error("an object does not read as {format}")]
    Unreadable {
        /// What the bytes look like.
        format: Format,
        /// What is wrong with them.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A field that the type does not have.
    #[error("{gvk} has no field {field}")]
    UnknownField {
        /// The kind.
        gvk: GroupVersionKind,
        /// The field: `spec.tools[1].size`.
        field: String,
    },
    /// A value that does not fit the type.
    #[error("{gvk} does not fit its type{}{field}", if .field.is_empty() { "" } else { " at " })]
    Field {
        /// The kind.
        gvk: GroupVersionKind,
        /// The field; empty for the object itself.
        field: String,
        /// What the type says.
        #[source]
        cause: serde_json::Error,
    },
    /// An object is of another type than it was asked for.
    #[error("{gvk} is not a {expected}")]
    OtherType {
        /// The kind.
        gvk: GroupVersionKind,
        /// The type that was asked for.
        expected: &'static str,
    },
    /// An object cannot be written.
    #[error("cannot write a {what} as {format}")]
    Unwritable {
        /// The kind.
        what: String,
        /// The format.
        format: Format,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No function leads from one version to another.
    #[error("there is no conversion from {from} to {to}")]
    NoConversion {
        /// The version that there is.
        from: Box<GroupVersionKind>,
        /// The version that was asked for.
        to: Box<GroupVersionKind>,
    },
    /// A conversion has failed.
    #[error("cannot convert {from} to {to}")]
    Conversion {
        /// The version that there is.
        from: Box<GroupVersionKind>,
        /// The version that was asked for.
        to: Box<GroupVersionKind>,
        /// What the function says.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A server-side apply that was refused.
///
/// Prints as Kubernetes does:
/// `Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Others own fields that the configuration sets to other values: HTTP 409.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration cannot be applied at all: HTTP 400.
    #[error("{0}")]
    Invalid(String),
    /// The configuration does not fit the schema: HTTP 500 in Kubernetes.
    #[error("{0}")]
    Schema(String),
}

/// One field that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The owner's name.
    pub manager: String,
    /// How the owner wrote the field: `Apply` or `Update`.
    pub operation: String,
    /// The version the owner wrote.
    pub api_version: String,
    /// The subresource the owner wrote through; empty for the object itself.
    pub subresource: String,
    /// When the owner last wrote.
    pub time: Option<String>,
    /// The field, such as `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// The text of this conflict's cause: `conflict with "kubectl" using apps/v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.owner())
    }

    fn owner(&self) -> String {
        let mut owner = crate::golang::quote(&self.manager);
        if !self.subresource.is_empty() {
            owner.push_str(" with subresource ");
            owner.push_str(&crate::golang::quote(&self.subresource));
        }
        if self.operation == "Update" {
            owner.push_str(" using ");
            owner.push_str(&self.api_version);
        }
        owner
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            only.message(),
            only.field
        );
    }
    let mut lines: Vec<String> = Vec::new();
    let mut owner = None;
    for conflict in conflicts {
        if owner.replace(conflict.owner()) != Some(conflict.owner()) {
            lines.push(format!("conflicts with {}:", conflict.owner()));
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}
