//! Types that a schema declares, with the sizes on which estimated costs depend.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use opkit_apimachinery::schema::{AdditionalProperties, Schema, SchemaType};

use super::escape::escape;
use super::with_object_meta;
use crate::cost::{Range, SizeEstimator};
use crate::types::Type;

/// Maximum size of a request in bytes, as in Kubernetes.
const REQUEST_SIZE_MAX: u64 = 3 * 1024 * 1024;

/// A type that a schema declares.
#[derive(Debug, Clone)]
pub(crate) struct DeclType {
    kind: Kind,
    /// Maximum number of items, properties or bytes.
    elements_max: u64,
    /// Minimum size of a value as JSON, in bytes.
    size_min: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    Simple(Type),
    List(Arc<DeclType>),
    /// A map with text keys.
    Map(Arc<DeclType>),
    /// An object with its fields by their names in expressions.
    Object(BTreeMap<String, Arc<DeclType>>),
}

impl DeclType {
    /// Returns the type of a schema, or `None` if expressions cannot use it. `is_root` adds the
    /// fields of a resource.
    pub(crate) fn of(schema: &Schema, is_root: bool) -> Option<Self> {
        if schema.int_or_string {
            let elements_max = match schema.max_length {
                Some(length) => length.saturating_mul(4),
                None => REQUEST_SIZE_MAX - 2,
            };
            return Some(Self::simple(Type::Dyn, elements_max, 1));
        }
        let extended;
        let schema = match is_root {
            true => {
                extended = with_object_meta(schema);
                &extended
            }
            false => schema,
        };
        match schema.type_? {
            SchemaType::Array => {
                let items = schema.items.as_deref()?;
                let items = Self::of(items, items.embedded_resource)?;
                let estimated = (REQUEST_SIZE_MAX - 2) / (items.size_min + 1);
                Some(Self {
                    elements_max: schema.max_items.unwrap_or(estimated),
                    kind: Kind::List(Arc::new(items)),
                    size_min: 2,
                })
            }
            SchemaType::Object => Self::object(schema),
            SchemaType::String => Some(Self::string(schema)),
            SchemaType::Boolean => Some(Self::simple(Type::Bool, 0, 4)),
            SchemaType::Number => Some(Self::simple(Type::Double, 0, 1)),
            SchemaType::Integer => Some(Self::simple(Type::Int, 0, 1)),
            _ => None,
        }
    }

    fn simple(found: Type, elements_max: u64, size_min: u64) -> Self {
        Self {
            kind: Kind::Simple(found),
            elements_max,
            size_min,
        }
    }

    fn object(schema: &Schema) -> Option<Self> {
        if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
            let values = Self::of(values, values.embedded_resource)?;
            let estimated = (REQUEST_SIZE_MAX - 2) / (values.size_min + 6);
            return Some(Self {
                elements_max: schema.max_properties.unwrap_or(estimated),
                kind: Kind::Map(Arc::new(values)),
                size_min: 2,
            });
        }
        let mut fields = BTreeMap::new();
        let mut size_min = 2_u64;
        for (name, property) in &schema.properties {
            let Some(found) = Self::of(property, property.embedded_resource) else {
                continue;
            };
            if schema.required.contains(name) && property.default.is_none() {
                size_min = size_min.saturating_add(name.len() as u64 + found.size_min + 4);
            }
            if let Some(name) = escape(name) {
                fields.insert(name, Arc::new(found));
            }
        }
        Some(Self {
            kind: Kind::Object(fields),
            elements_max: 0,
            size_min,
        })
    }

    fn string(schema: &Schema) -> Self {
        let longest = REQUEST_SIZE_MAX - 2;
        match schema.format.as_deref() {
            Some("byte") => {
                let elements_max = schema.max_length.unwrap_or(longest);
                Self::simple(Type::Bytes, elements_max, 2)
            }
            Some("duration") => Self::simple(Type::Duration, 32, 3),
            Some("date") => Self::simple(Type::Timestamp, 12, 12),
            Some("date-time") => Self::simple(Type::Timestamp, 32, 21),
            _ => {
                let values = schema.enum_.as_deref().unwrap_or_default();
                let lengths = values
                    .iter()
                    .filter_map(|value| value.as_str())
                    .map(str::len);
                let elements_max = match schema.max_length {
                    Some(length) => length.saturating_mul(4),
                    None if values.is_empty() => longest,
                    None => lengths.max().unwrap_or_default() as u64,
                };
                Self::simple(Type::String, elements_max, 2)
            }
        }
    }

    /// Returns the maximum number of values of this type in one request.
    pub(crate) fn cardinality(&self) -> u64 {
        REQUEST_SIZE_MAX / self.size_min.saturating_add(1)
    }

    /// Returns the type for the checker, and declares the object types inside of it. The name of an
    /// object type is the path to it.
    pub(crate) fn declare(
        &self,
        name: &str,
        objects: &mut HashMap<Arc<str>, HashMap<String, Type>>,
    ) -> Type {
        match &self.kind {
            Kind::Simple(found) => found.clone(),
            Kind::List(items) => Type::list(items.declare(&format!("{name}.@idx"), objects)),
            Kind::Map(values) => {
                let values = values.declare(&format!("{name}.@elem"), objects);
                Type::map(Type::String, values)
            }
            Kind::Object(fields) => {
                let declared: HashMap<String, Type> = fields
                    .iter()
                    .map(|(field, found)| {
                        let found = found.declare(&format!("{name}.{field}"), objects);
                        (field.clone(), found)
                    })
                    .collect();
                let name: Arc<str> = Arc::from(name);
                objects.insert(name.clone(), declared);
                Type::Object(name)
            }
        }
    }
}

impl SizeEstimator for DeclType {
    fn size(&self, path: &[String]) -> Option<Range> {
        let mut current = self;
        let mut parts = path.iter().skip(1).peekable();
        while let Some(part) = parts.next() {
            current = match (&current.kind, part.as_str()) {
                (Kind::List(items), "@items" | "@values") => items,
                (Kind::Map(values), "@items" | "@values") => values,
                // The keys of a map have no declared size, and no parts.
                (Kind::Map(_), "@keys") => {
                    return parts.peek().is_none().then_some(Range::fixed(0));
                }
                (Kind::Object(fields), name) => fields.get(name)?,
                _ => return None,
            };
        }
        Some(Range {
            min: 0,
            max: current.elements_max,
        })
    }
}
