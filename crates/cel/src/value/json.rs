//! JSON as values, by the schema of a custom resource or without a schema.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use opkit_apimachinery::schema::{AdditionalProperties, ListType, Schema, SchemaType};
use serde_json::{Map as JsonMap, Value as Json};

use super::{Entries, Fault, Items, Key, List, ListKind, Map, Object, Outcome, Text, Value};
use crate::crd::escape::{escape, unescape};
use crate::library::time;

/// Returns the value of JSON. With a schema, the value has the type that the schema declares.
pub(crate) fn from_json<'a>(json: &'a Json, schema: Option<&'a Schema>) -> Outcome<'a> {
    match schema {
        Some(schema) => typed(json, schema),
        None => Ok(untyped(json)),
    }
}

fn untyped(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List {
            items: Items::Json {
                items,
                schema: None,
            },
            kind: ListKind::Atomic,
        }),
        Json::Object(fields) => Value::Map(Map {
            entries: Entries::Json {
                fields,
                schema: None,
            },
        }),
    }
}

fn typed<'a>(json: &'a Json, schema: &'a Schema) -> Outcome<'a> {
    if json.is_null() {
        return match schema.nullable {
            true => Ok(Value::Null),
            false => Err(Fault::new(
                "invalid data, got null for schema with nullable=false",
            )),
        };
    }
    if schema.int_or_string {
        return match json {
            Json::String(text) => Ok(Value::String(Text::Borrowed(text))),
            Json::Number(number) if number.is_i64() => {
                Ok(Value::Int(number.as_i64().unwrap_or_default()))
            }
            _ => Err(Fault::new(
                "invalid data, expected XIntOrString value to be either a string or integer",
            )),
        };
    }
    match schema.type_ {
        Some(SchemaType::Object) => match json {
            Json::Object(fields) => Ok(Value::Map(Map {
                entries: Entries::Json {
                    fields,
                    schema: Some(schema),
                },
            })),
            _ => Err(Fault::new(
                "invalid data, expected a map for the provided schema with type=object",
            )),
        },
        Some(SchemaType::Array) => list(json, schema),
        Some(SchemaType::String) => match json {
            Json::String(text) => string(text, schema.format.as_deref().unwrap_or_default()),
            other => Err(unexpected("string", other)),
        },
        Some(SchemaType::Number) => match json {
            Json::Number(number) => Ok(Value::Double(number.as_f64().unwrap_or_default())),
            other => Err(unexpected("float", other)),
        },
        Some(SchemaType::Integer) => match json.as_i64() {
            Some(value) => Ok(Value::Int(value)),
            None => Err(unexpected("int", json)),
        },
        Some(SchemaType::Boolean) => match json {
            Json::Bool(value) => Ok(Value::Bool(*value)),
            other => Err(unexpected("bool", other)),
        },
        // The checker lets no expression select such a field. Only comparisons reach it.
        _ => Ok(untyped(json)),
    }
}

fn list<'a>(json: &'a Json, schema: &'a Schema) -> Outcome<'a> {
    let Json::Array(items) = json else {
        return Err(Fault::new(
            "invalid data, expected an array for the provided schema with type=array",
        ));
    };
    let Some(items_schema) = &schema.items else {
        return Err(Fault::new(
            "invalid array type, expected Items with a non-empty Schema",
        ));
    };
    let kind = match schema.list_type {
        Some(ListType::Set) => ListKind::Set,
        Some(ListType::Map) => ListKind::Map(&schema.list_map_keys),
        _ => ListKind::Atomic,
    };
    Ok(Value::List(List {
        items: Items::Json {
            items,
            schema: Some(items_schema),
        },
        kind,
    }))
}

fn string<'a>(text: &'a str, format: &str) -> Outcome<'a> {
    match format {
        "duration" => time::parse_schema_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| {
                Fault::new(format!(
                    "Invalid duration {text}: unable to parse {text} as duration"
                ))
            }),
        "date" => time::parse_date(text).map(Value::Timestamp).ok_or_else(|| {
            Fault::new(format!(
                "Invalid date formatted string {text}: cannot parse as date"
            ))
        }),
        "date-time" => time::parse_date_time(text)
            .map(Value::Timestamp)
            .ok_or_else(|| {
                Fault::new(format!(
                    "Invalid date-time formatted string {text}: cannot parse as date-time"
                ))
            }),
        "byte" => match BASE64_STANDARD.decode(text) {
            Ok(bytes) => Ok(Value::Bytes(Arc::from(bytes))),
            Err(cause) => Err(Fault::new(format!(
                "Invalid byte formatted string {text}: {cause}"
            ))),
        },
        _ => Ok(Value::String(Text::Borrowed(text))),
    }
}

fn unexpected(expected: &str, found: &Json) -> Fault {
    let found = match found {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    };
    Fault::new(format!("invalid data, expected {expected}, got {found}"))
}

/// Returns the schema of a field of an object. `None` means that expressions cannot see the field.
pub(super) fn field_schema<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    if !schema.properties.is_empty() || schema.embedded_resource {
        return schema.properties.get(name).map(|found| &**found);
    }
    match &schema.additional_properties {
        Some(AdditionalProperties::Schema(values)) => Some(values),
        _ => None,
    }
}

/// Returns the value of a field. The name is escaped if the object has declared properties.
pub(super) fn find<'a>(
    fields: &'a JsonMap<String, Json>,
    schema: Option<&'a Schema>,
    name: &str,
) -> Result<Option<Value<'a>>, Fault> {
    let Some(schema) = schema else {
        return Ok(fields.get(name).map(untyped));
    };
    let is_object = !schema.properties.is_empty();
    let unescaped = match is_object {
        true => unescape(name),
        false => Some(name.to_owned()),
    };
    let Some(name) = unescaped else {
        return Ok(None);
    };
    let Some(value) = fields.get(&name) else {
        return Ok(None);
    };
    if is_object && value.is_null() {
        return Ok(None);
    }
    match field_schema(schema, &name) {
        Some(found) => from_json(value, Some(found)).map(Some),
        None => Ok(None),
    }
}

/// Returns the names of the fields that expressions can see.
pub(super) fn keys<'a>(
    fields: &'a JsonMap<String, Json>,
    schema: Option<&'a Schema>,
) -> Vec<Value<'a>> {
    let names = fields.keys();
    match schema {
        None => names
            .map(|name| Value::String(Text::Borrowed(name)))
            .collect(),
        Some(schema) => names
            .filter(|name| field_schema(schema, name).is_some())
            .map(|name| match !schema.properties.is_empty() {
                true => match escape(name) {
                    Some(escaped) if escaped != *name => Value::text(escaped),
                    _ => Value::String(Text::Borrowed(name)),
                },
                false => Value::String(Text::Borrowed(name)),
            })
            .collect(),
    }
}

impl Value<'_> {
    /// Returns the value as JSON, or `None` if it has no JSON form, such as a type or a URL.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::from(*value),
            Self::Int(value) => Json::from(*value),
            Self::Uint(value) => Json::from(*value),
            Self::Double(value) => Json::from(*value),
            Self::String(text) => Json::from(&**text),
            Self::Bytes(bytes) => Json::from(BASE64_STANDARD.encode(bytes)),
            Self::Timestamp(time) => Json::from(time.to_string()),
            Self::Duration(nanos) => Json::from(time::format_duration(*nanos)),
            Self::List(list) => {
                let items = list.iter().map(|item| item.ok()?.to_json());
                Json::Array(items.collect::<Option<_>>()?)
            }
            Self::Map(map) => {
                let mut fields = JsonMap::new();
                for key in map.keys() {
                    let value = map.find(&key).ok()??;
                    let name = match Key::of(&key).ok()? {
                        Key::String(text) => text.to_string(),
                        _ => key.to_string(),
                    };
                    fields.insert(name, value.to_json()?);
                }
                Json::Object(fields)
            }
            Self::Optional(Some(value)) => return value.to_json(),
            Self::Optional(None) => Json::Null,
            Self::Object(Object::Literal(literal)) => {
                let fields = literal.fields.iter();
                let fields = fields.map(|(name, value)| Some((name.to_string(), value.to_json()?)));
                Json::Object(fields.collect::<Option<_>>()?)
            }
            Self::Type(_) | Self::Object(_) => return None,
        })
    }
}
