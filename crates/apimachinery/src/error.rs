//! Error types of this crate, one enum per family of operations.

use thiserror::Error;

use crate::identity::GroupVersionKind;
use crate::scheme::Format;

/// A schema that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A keyword has a value of the wrong type.
    #[error("schema at {path:?}: {keyword} must be {expected}")]
    Keyword {
        /// Location in the schema document: keywords and property names joined by dots.
        path: String,
        /// Name of the keyword, such as `minLength`.
        keyword: &'static str,
        /// Description of the values that the keyword accepts.
        expected: &'static str,
    },
    /// A `pattern` is not a valid regular expression.
    #[error("schema at {path:?}: pattern {pattern:?} does not compile: {reason}")]
    Pattern {
        /// Location in the schema document: keywords and property names joined by dots.
        path: String,
        /// The regular expression as written in the schema.
        pattern: String,
        /// Message of the regular expression compiler.
        reason: String,
    },
}

/// A patch that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch document is not valid. The API server responds with HTTP 400.
    #[error("{0}")]
    Malformed(String),
    /// The patch is valid but cannot be applied to the object, such as when a `test` fails or a
    /// path is missing. The API server responds with HTTP 422. Kubernetes does not send the reason:
    /// its response is `the server rejected our request due to an error in our request`.
    #[error("{0}")]
    Unprocessable(String),
}

/// An object that cannot be converted to another version.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// The value is not a JSON object.
    #[error("only objects can be converted to another version")]
    NotAnObject,
    /// The object is of a kind for which there are no conversions.
    #[error("there is no conversion for kind {kind:?} of {api_version:?}")]
    UnknownKind {
        /// API group and version.
        api_version: String,
        /// Kind.
        kind: String,
    },
    /// The kind does not have the version.
    #[error("{kind} of {group} has no version {version:?}; its versions are {versions}")]
    UnknownVersion {
        /// API group.
        group: String,
        /// Kind.
        kind: String,
        /// Missing version.
        version: String,
        /// Versions of the kind.
        versions: String,
    },
    /// The object does not fit the Rust type of its version.
    #[error("{object} does not fit the type of version {version}")]
    Decode {
        /// Namespace and name of the object.
        object: String,
        /// Version of the object.
        version: String,
        /// Error of serde.
        #[source]
        cause: serde_json::Error,
    },
}

/// A selector that cannot be parsed. The message of the error is that of Kubernetes' response.
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

/// A shard selector that cannot be parsed. The message of the error is that of Kubernetes'
/// response.
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

/// A protobuf body that cannot be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The bytes do not start with the prefix of Kubernetes' protobuf envelope.
    #[error("the body does not begin with the bytes \"k8s\\0\" of Kubernetes' protobuf")]
    NoMagic,
    /// The envelope declares content that is neither protobuf nor JSON.
    #[error("cannot read an object encoded as {what:?}")]
    Encoding {
        /// The content type or content encoding that the envelope declares.
        what: String,
    },
    /// There is no built-in kind with this name in this group and version.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// Group and version of the kind, such as `apps/v1`.
        api_version: String,
        /// Name of the kind, such as `Deployment`.
        kind: String,
    },
    /// The bytes cannot be decoded as the protobuf message of the object's kind.
    #[error("{field} {reason}")]
    Malformed {
        /// Name of the message and, if known, of the field, such as `core.v1.PodSpec.containers`.
        field: String,
        /// Description of the defect.
        reason: String,
    },
    /// The bytes are a valid message, but a value does not fit the Rust type.
    #[error("{field}: {reason}")]
    Mismatch {
        /// Name of the message and the field, such as `core.v1.PodSpec.containers`; empty until the
        /// field is known.
        field: String,
        /// Message of the type's `Deserialize` implementation.
        reason: String,
    },
    /// A value cannot be encoded in the protobuf message of the object's kind.
    #[error("cannot write {field} as protobuf: it {reason}")]
    Unwritable {
        /// Name of the message and the field, such as `core.v1.PodSpec.containers`.
        field: String,
        /// Description of the defect.
        reason: String,
    },
    /// An object has no `apiVersion` or no `kind`.
    #[error("cannot write an object without {field} as protobuf")]
    NoTypeMeta {
        /// Name of the missing field: `apiVersion` or `kind`.
        field: &'static str,
    },
    /// A line in this crate's table of protobuf messages is not valid.
    #[error("internal: invalid line in the table of messages: {line:?}")]
    Table {
        /// The line as written in the table.
        line: String,
    },
}

impl ProtobufError {
    /// Adds the names of the message and the field to a `Mismatch`, unless an inner field was
    /// already added.
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

/// A text that is not a valid name of a kind or a resource.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The text is neither `version` nor `group/version`.
    #[error("{text:?} is not a group and a version, such as \"apps/v1\"")]
    GroupVersion {
        /// The text that was parsed.
        text: String,
    },
    /// The text is neither `name` nor `name.group`.
    #[error("{text:?} is not a name and a group, such as \"deployments.apps\"")]
    GroupName {
        /// The text that was parsed.
        text: String,
    },
    /// The text is not `group/version, Kind=name` or `group/version, Resource=name`.
    #[error("{text:?} is not a group, a version and a name, such as \"apps/v1{separator}NAME\"")]
    GroupVersionName {
        /// The text that was parsed.
        text: String,
        /// Separator between the version and the name.
        separator: &'static str,
    },
    /// A field is not valid in the path of a resource.
    #[error("the {field} {text:?} cannot be in the path of a resource: it {reason}")]
    Segment {
        /// Name of the field: `group`, `version`, `namespace`, `resource`, `name` or `subresource`.
        field: &'static str,
        /// Value of the field.
        text: String,
        /// The violated rule, such as `may not contain '/'`.
        reason: &'static str,
    },
}

/// Error of a scheme: an unregistered kind or type, or an object that cannot be decoded, encoded or
/// converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// A kind was registered with two different types.
    #[error("cannot register {gvk} as {refused}: it is registered as {registered}")]
    TwoTypes {
        /// The kind that was already registered.
        gvk: GroupVersionKind,
        /// Name of the Rust type that is registered for the kind.
        registered: &'static str,
        /// Name of the Rust type that could not be registered.
        refused: &'static str,
    },
    /// A kind was not registered.
    #[error("no type is registered for {gvk}")]
    UnknownKind {
        /// The kind that is not registered.
        gvk: GroupVersionKind,
    },
    /// A type was not registered.
    #[error("the type {type_name} is not registered")]
    UnknownType {
        /// Name of the Rust type that is not registered.
        type_name: &'static str,
    },
    /// An object has no `apiVersion` or no `kind`.
    #[error("the object has no {field}")]
    NoTypeMeta {
        /// Name of the missing field: `apiVersion` or `kind`.
        field: &'static str,
    },
    /// The `apiVersion` of an object is not a group and a version.
    #[error("the object has an invalid apiVersion")]
    ApiVersion {
        /// The parse error.
        #[source]
        cause: IdentityError,
    },
    /// The bytes cannot be decoded.
    #[error("cannot decode the object from {format}")]
    Unreadable {
        /// The detected format of the bytes.
        format: Format,
        /// The decoding error.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object has a field that the Rust type of its kind does not have.
    #[error("{gvk} has no field {field}")]
    UnknownField {
        /// The kind of the object.
        gvk: GroupVersionKind,
        /// Path of the field, such as `spec.tools[1].size`.
        field: String,
    },
    /// A value in an object does not fit the Rust type of the object's kind.
    #[error("{gvk} does not fit its type{}{field}", if .field.is_empty() { "" } else { " at " })]
    Field {
        /// The kind of the object.
        gvk: GroupVersionKind,
        /// Path of the field, such as `spec.tools[1].size`; empty if the whole object does not fit.
        field: String,
        /// The decoding error.
        #[source]
        cause: serde_json::Error,
    },
    /// An object has a different Rust type than the requested one.
    #[error("{gvk} is not a {expected}")]
    OtherType {
        /// The kind of the object.
        gvk: GroupVersionKind,
        /// Name of the requested Rust type.
        expected: &'static str,
    },
    /// An object cannot be encoded.
    #[error("cannot encode {what} as {format}")]
    Unwritable {
        /// The kind of the object.
        what: String,
        /// The requested format.
        format: Format,
        /// The encoding error.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No conversion function is registered between the two versions of a kind.
    #[error("there is no conversion from {from} to {to}")]
    NoConversion {
        /// Kind and version of the object.
        from: Box<GroupVersionKind>,
        /// The requested kind and version.
        to: Box<GroupVersionKind>,
    },
    /// A conversion function failed.
    #[error("cannot convert {from} to {to}")]
    Conversion {
        /// Kind and version of the object.
        from: Box<GroupVersionKind>,
        /// The requested kind and version.
        to: Box<GroupVersionKind>,
        /// Error of the conversion function.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A server-side apply that was rejected.
///
/// The message is the same as in Kubernetes, such as `Apply failed with 1 conflict: conflict with
/// "kubectl" using apps/v1: .spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Other managers own fields that the configuration sets to different values. The API server
    /// responds with HTTP 409.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration, or the managed fields of the live object, are not valid. The API server
    /// responds with HTTP 400.
    #[error("{0}")]
    Invalid(String),
    /// The configuration does not fit the schema. The API server of Kubernetes responds with HTTP
    /// 500.
    #[error("{0}")]
    Schema(String),
}

/// A field that an apply would change although another manager owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// Name of the manager that owns the field.
    pub manager: String,
    /// Operation with which the owner wrote the field: `Apply` or `Update`.
    pub operation: String,
    /// API version in which the owner wrote the field.
    pub api_version: String,
    /// Subresource through which the owner wrote the field; empty for the object itself.
    pub subresource: String,
    /// Time of the owner's last write.
    pub time: Option<String>,
    /// Path of the field, such as `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// Returns the message of this conflict without the field, such as `conflict with "kubectl"
    /// using apps/v1`.
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
