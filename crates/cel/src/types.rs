//! Types of expressions.

use std::fmt;
use std::sync::Arc;

/// Type of an expression or a variable.
///
/// # Examples
/// ```
/// use opkit_cel::Type;
///
/// let labels = Type::map(Type::String, Type::String);
/// assert_eq!(labels.to_string(), "map(string, string)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// A value whose type is known at run time only.
    Dyn,
    /// The type of `null`.
    Null,
    /// A boolean.
    Bool,
    /// A signed number of 64 bits.
    Int,
    /// An unsigned number of 64 bits.
    Uint,
    /// A floating-point number of 64 bits.
    Double,
    /// A text.
    String,
    /// A sequence of bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A length of time.
    Duration,
    /// A list of one type of items.
    List(Arc<Self>),
    /// A map with its types of keys and values.
    Map(Arc<Self>, Arc<Self>),
    /// A value that may be absent.
    Optional(Arc<Self>),
    /// The type of a type.
    Type(Arc<Self>),
    /// An object with fields, by the name of its type.
    Object(Arc<str>),
    /// A type without fields, by its name.
    Opaque(Arc<str>),
    /// A parameter of a generic function.
    Param(Arc<str>),
    /// The type of an expression with an error.
    Error,
}

/// Names of Kubernetes' own types, as declarations write them.
const NAMED: [(&str, &str); 9] = [
    ("authorizer", "kubernetes.authorization.Authorizer"),
    ("decision", "kubernetes.authorization.Decision"),
    ("format", "kubernetes.NamedFormat"),
    ("groupcheck", "kubernetes.authorization.GroupCheck"),
    ("pathcheck", "kubernetes.authorization.PathCheck"),
    ("quantity", "kubernetes.Quantity"),
    ("resourcecheck", "kubernetes.authorization.ResourceCheck"),
    ("semver", "kubernetes.Semver"),
    ("url", "kubernetes.URL"),
];

impl Type {
    /// Returns the type of a list.
    pub fn list(items: Self) -> Self {
        Self::List(Arc::new(items))
    }

    /// Returns the type of a map.
    pub fn map(keys: Self, values: Self) -> Self {
        Self::Map(Arc::new(keys), Arc::new(values))
    }

    /// Returns the type of a value that may be absent.
    pub fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// Returns the type of the variable `authorizer`, whose functions ask for permissions.
    pub fn authorizer() -> Self {
        Self::object("kubernetes.authorization.Authorizer")
    }

    /// Returns the type of a variable whose functions ask for permissions on one resource.
    pub fn resource_check() -> Self {
        Self::object("kubernetes.authorization.ResourceCheck")
    }

    /// Returns the type of an operation of a JSON patch in a mutating policy.
    pub fn json_patch() -> Self {
        Self::object(crate::checker::JSON_PATCH)
    }

    /// Returns the type of the configuration that a mutating policy applies.
    pub fn apply_configuration() -> Self {
        Self::object(crate::checker::OBJECT)
    }

    pub(crate) fn object(name: &str) -> Self {
        Self::Object(Arc::from(name))
    }

    pub(crate) fn opaque(name: &str) -> Self {
        Self::Opaque(Arc::from(name))
    }

    pub(crate) fn param(name: &str) -> Self {
        Self::Param(Arc::from(name))
    }

    /// Parses a type in the notation of the tables of declarations. An upper-case letter is a
    /// parameter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((name, inner)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) {
            let mut parts = split_arguments(inner).into_iter().map(Self::parse);
            let first = parts.next()??;
            return Some(match name {
                "list" => Self::list(first),
                "map" => Self::map(first, parts.next()??),
                "optional" => Self::optional(first),
                "type" => Self::Type(Arc::new(first)),
                _ => return None,
            });
        }
        Some(match text {
            "bool" => Self::Bool,
            "bytes" => Self::Bytes,
            "double" => Self::Double,
            "duration" => Self::Duration,
            "dyn" => Self::Dyn,
            "int" => Self::Int,
            "string" => Self::String,
            "timestamp" => Self::Timestamp,
            "uint" => Self::Uint,
            "ip" => Self::opaque("net.IP"),
            "cidr" => Self::opaque("net.CIDR"),
            _ if text.len() == 1 => Self::param(text),
            _ => Self::object(NAMED.iter().find(|(short, _)| *short == text)?.1),
        })
    }

    /// Returns the types inside of this type.
    pub(crate) fn parameters(&self) -> Vec<&Self> {
        match self {
            Self::List(inner) | Self::Optional(inner) | Self::Type(inner) => vec![inner],
            Self::Map(key, value) => vec![key, value],
            _ => Vec::new(),
        }
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Returns the type inside of an optional type, or the type itself, and whether it was
    /// optional.
    pub(crate) fn unwrap_optional(&self) -> (&Self, bool) {
        match self {
            Self::Optional(inner) => (inner, true),
            other => (other, false),
        }
    }

    /// Returns the name of the type at run time, without the types inside of it.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Object(name) | Self::Opaque(name) | Self::Param(name) => name,
            Self::Dyn => "dyn",
            Self::Error => "!error!",
        }
    }
}

/// Splits a list of types at the commas that are not inside of parentheses.
pub(crate) fn split_arguments(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(text.get(start..index));
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..).filter(|rest| !rest.trim().is_empty()));
    parts
}

impl fmt::Display for Type {
    /// Writes the type as error messages of the checker do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(keys, values) => write!(f, "map({keys}, {values})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Type(inner) => write!(f, "type({inner})"),
            other => f.write_str(other.runtime_name()),
        }
    }
}
