//! Values at run time.
//!
//! Objects are views of JSON: nothing is copied until an expression computes a new value.

mod compare;
mod equality;
mod json;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use opkit_apimachinery::schema::Schema;
use serde_json::{Map as JsonMap, Value as Json};

use crate::library::authz::{Authorized, Decision, ResourceCheck};
use crate::library::formats::Format;
use crate::library::net::Cidr;
use crate::library::quantity::Amount;
use crate::library::semver::Semver;
use crate::library::time::Timestamp;
use crate::library::urls::Url;
use crate::types::Type;

pub(crate) use compare::{compare, compare_numbers};
pub(crate) use equality::{equal, find_by_keys};
pub(crate) use json::from_json;

/// Result of an expression.
///
/// # Examples
/// ```
/// use opkit_cel::{Bindings, Budget, Environment};
///
/// let program = Environment::new().compile("[1, 2].map(x, x * 2)")?;
/// let value = program.evaluate(&Bindings::new(), &mut Budget::new(1_000))?;
/// assert_eq!(value.to_json(), Some(serde_json::json!([2, 4])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value<'a> {
    /// The value `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(Text<'a>),
    /// A sequence of bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// A value that may be absent.
    Optional(Option<Arc<Self>>),
    /// A type.
    Type(Type),
    /// A value of one of Kubernetes' own types.
    Object(Object<'a>),
}

/// A text, borrowed from an object or computed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Text<'a> {
    /// A text in an object.
    Borrowed(&'a str),
    /// A computed text.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// A list: a view of a JSON array, or computed items.
#[derive(Debug, Clone)]
pub struct List<'a> {
    pub(crate) items: Items<'a>,
    pub(crate) kind: ListKind<'a>,
}

#[derive(Debug, Clone)]
pub(crate) enum Items<'a> {
    Json {
        items: &'a [Json],
        /// Schema of the items. `None` in an untyped object.
        schema: Option<&'a Schema>,
    },
    Values(Arc<Vec<Value<'a>>>),
}

/// How two lists are compared and added, from `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListKind<'a> {
    Atomic,
    Set,
    /// The items are identified by these fields.
    Map(&'a [String]),
}

/// A map: a view of a JSON object, or computed entries.
#[derive(Debug, Clone)]
pub struct Map<'a> {
    pub(crate) entries: Entries<'a>,
}

#[derive(Debug, Clone)]
pub(crate) enum Entries<'a> {
    Json {
        fields: &'a JsonMap<String, Json>,
        /// Schema of the object. `None` in an untyped object.
        schema: Option<&'a Schema>,
    },
    Values(Arc<BTreeMap<Key, (Value<'a>, Value<'a>)>>),
}

/// Key of a computed map. Numbers that are equal are the same key, whatever their types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Number(i128),
    /// Bits of a double without an integral value.
    Double(u64),
    String(Arc<str>),
}

/// A value of one of Kubernetes' own types.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Object<'a> {
    /// A URL.
    Url(Arc<Url>),
    /// A quantity.
    Quantity(Amount),
    /// An IP address.
    Ip(std::net::IpAddr),
    /// A network.
    Cidr(Cidr),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A named format of strings.
    Format(&'static Format),
    /// The variable `authorizer`.
    Authorizer(Authorized<'a>),
    /// A path whose permissions can be checked.
    PathCheck(Authorized<'a>, Arc<str>),
    /// An API group whose permissions can be checked.
    GroupCheck(Authorized<'a>, Arc<str>),
    /// A resource whose permissions can be checked.
    ResourceCheck(Authorized<'a>, Arc<ResourceCheck>),
    /// The result of a check.
    Decision(Arc<Decision>),
    /// An object literal of a mutating policy.
    Literal(Arc<ObjectLiteral<'a>>),
}

/// An object literal of a mutating policy, such as `Object.spec{replicas: 3}`.
#[derive(Debug, Clone)]
pub struct ObjectLiteral<'a> {
    pub(crate) type_name: Arc<str>,
    pub(crate) fields: BTreeMap<Arc<str>, Value<'a>>,
}

impl<'a> ObjectLiteral<'a> {
    /// Returns the name of the type, such as `Object.spec` or `JSONPatch`.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Returns the value of a field.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.get(name)
    }

    /// Checks that each object in a field has the type with the name of the field.
    ///
    /// # Errors
    /// Returns the first field with an object of another type.
    pub fn check_types(&self) -> Result<(), String> {
        for (name, value) in &self.fields {
            check_types(&format!("{}.{name}", self.type_name), value)?;
        }
        Ok(())
    }
}

/// Checks the types of the object literals in the value of a field whose type is `wanted`.
fn check_types(wanted: &str, value: &Value<'_>) -> Result<(), String> {
    match value {
        Value::Object(Object::Literal(literal)) => {
            if *literal.type_name != *wanted {
                return Err(format!(
                    "unexpected type name {:?}, expected {wanted:?}, which matches field name path \
                     from root Object type",
                    &*literal.type_name
                ));
            }
            literal.check_types()
        }
        Value::List(list) => {
            let mut items = list.iter().flatten();
            items.try_for_each(|item| check_types(wanted, &item))
        }
        Value::Map(map) => {
            let mut values = map
                .keys()
                .into_iter()
                .filter_map(|key| map.find(&key).ok()?);
            values.try_for_each(|value| check_types(wanted, &value))
        }
        _ => Ok(()),
    }
}

/// Why the evaluation of an expression ended without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An error, which `||` and `&&` may absorb.
    Error(String),
    /// The budget is exceeded. Nothing absorbs this fault.
    Budget,
}

pub(crate) type Outcome<'a> = Result<Value<'a>, Fault>;

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Error(message.into())
    }

    /// Returns the error of a function that has no overload for its arguments.
    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }
}

impl<'a> Value<'a> {
    /// Returns a text.
    pub(crate) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// Returns a list of computed items.
    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(List {
            items: Items::Values(Arc::new(items)),
            kind: ListKind::Atomic,
        })
    }

    /// Returns a list of texts.
    pub(crate) fn texts<T: Into<Arc<str>>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::list(texts.into_iter().map(Self::text).collect())
    }

    pub(crate) fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Arc::new))
    }

    /// Returns the boolean, if the value is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the text, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the name of the type.
    pub(crate) fn type_name(&self) -> String {
        self.type_value().runtime_name().to_owned()
    }

    /// Returns the type, without the types of items, keys and values.
    pub(crate) fn type_value(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Type(_) => Type::Type(Arc::new(Type::Dyn)),
            Self::Object(object) => object.type_value(),
        }
    }

    /// Returns the number of code points, bytes, items or fields, on which costs depend. The size
    /// of other values is 1.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Object(Object::Ip(ip)) => match ip {
                std::net::IpAddr::V4(_) => 4,
                std::net::IpAddr::V6(_) => 16,
            },
            Self::Object(Object::Cidr(cidr)) => usize::from(cidr.bits.div_ceil(8)),
            _ => 1,
        };
        size as u64
    }

    /// Reports whether the value is the zero value of its type, for `optional.ofNonZeroValue`.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Duration(nanos) => *nanos == 0,
            Self::Timestamp(time) => time.is_zero(),
            // cel-go knows the zero value of computed lists and maps only.
            Self::List(list) => matches!(list.items, Items::Values(_)) && list.len() == 0,
            Self::Map(map) => matches!(map.entries, Entries::Values(_)) && map.len() == 0,
            _ => false,
        }
    }
}

impl<'a> List<'a> {
    /// Returns the items. An item that does not fit the schema of the list is left out.
    pub fn items(&self) -> Vec<Value<'a>> {
        self.iter().flatten().collect()
    }

    pub(crate) fn len(&self) -> usize {
        match &self.items {
            Items::Json { items, .. } => items.len(),
            Items::Values(values) => values.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Outcome<'a>> {
        match &self.items {
            Items::Json { items, schema } => items.get(index).map(|item| from_json(item, *schema)),
            Items::Values(values) => values.get(index).cloned().map(Ok),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Outcome<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the items, or the first error.
    pub(crate) fn values(&self) -> Result<Vec<Value<'a>>, Fault> {
        self.iter().collect()
    }
}

impl<'a> Map<'a> {
    pub(crate) fn new(entries: Vec<(Value<'a>, Value<'a>)>) -> Result<Self, Fault> {
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            map.insert(Key::of(&key)?, (key, value));
        }
        Ok(Self {
            entries: Entries::Values(Arc::new(map)),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.entries {
            Entries::Json { fields, .. } => fields.len(),
            Entries::Values(entries) => entries.len(),
        }
    }

    /// Returns the value of a key.
    pub(crate) fn find(&self, key: &Value<'a>) -> Result<Option<Value<'a>>, Fault> {
        match &self.entries {
            Entries::Json { fields, schema } => match key {
                Value::String(name) => json::find(fields, *schema, name),
                _ if schema.is_none() => Ok(None),
                _ => Err(Fault::no_such_overload()),
            },
            Entries::Values(entries) => {
                let Ok(key) = Key::of(key) else {
                    return Ok(None);
                };
                Ok(entries.get(&key).map(|(_, value)| value.clone()))
            }
        }
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match &self.entries {
            Entries::Json { fields, schema } => json::keys(fields, *schema),
            Entries::Values(entries) => entries.values().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl Key {
    pub(crate) fn of(value: &Value<'_>) -> Result<Self, Fault> {
        match value {
            Value::Bool(value) => Ok(Self::Bool(*value)),
            Value::Int(value) => Ok(Self::Number(i128::from(*value))),
            Value::Uint(value) => Ok(Self::Number(i128::from(*value))),
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 2e19 => {
                Ok(Self::Number(*value as i128))
            }
            Value::Double(value) => Ok(Self::Double(value.to_bits())),
            Value::String(text) => Ok(Self::String(Arc::from(&**text))),
            other => Err(Fault::new(format!(
                "unsupported key type: {}",
                other.type_name()
            ))),
        }
    }
}

impl Object<'_> {
    fn type_value(&self) -> Type {
        match self {
            Self::Ip(_) => Type::opaque("net.IP"),
            Self::Cidr(_) => Type::opaque("net.CIDR"),
            Self::Url(_) => Type::object("kubernetes.URL"),
            Self::Quantity(_) => Type::object("kubernetes.Quantity"),
            Self::Semver(_) => Type::object("kubernetes.Semver"),
            Self::Format(_) => Type::object("kubernetes.NamedFormat"),
            Self::Authorizer(_) => Type::authorizer(),
            Self::PathCheck(..) => Type::object("kubernetes.authorization.PathCheck"),
            Self::GroupCheck(..) => Type::object("kubernetes.authorization.GroupCheck"),
            Self::ResourceCheck(..) => Type::object("kubernetes.authorization.ResourceCheck"),
            Self::Decision(_) => Type::object("kubernetes.authorization.Decision"),
            Self::Literal(literal) => Type::object(&literal.type_name),
        }
    }
}

impl fmt::Display for Value<'_> {
    /// Writes the value as Go's `%v` does, which is how keys appear in error messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Uint(value) => write!(f, "{value}"),
            Self::Double(value) => f.write_str(&crate::library::convert::format_double(*value)),
            Self::String(text) => f.write_str(text),
            other => f.write_str(&other.type_name()),
        }
    }
}
