//! Equality of values.

use serde_json::Value as Json;

use super::json::field_schema;
use super::{Entries, Fault, Items, List, ListKind, Map, Object, Value, compare_numbers};

/// Reports whether two values are equal. Values of different types are not equal, except numbers.
///
/// # Errors
/// Returns an error where Kubernetes does: if a part of an object does not match its schema, or if
/// an object is compared with a value of another type.
pub(crate) fn equal(first: &Value<'_>, second: &Value<'_>) -> Result<bool, Fault> {
    if let (Value::Null, other) | (other, Value::Null) = (first, second) {
        return Ok(matches!(other, Value::Null));
    }
    if let Some(order) = compare_numbers(first, second) {
        return Ok(order.is_eq());
    }
    Ok(match (first, second) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => **a == **b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b).is_eq(),
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a.runtime_name() == b.runtime_name(),
        (Value::List(a), Value::List(b)) => return equal_lists(a, b),
        (Value::Map(a), Value::Map(b)) => return equal_maps(a, b),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equal(a, b),
            (a, b) => a.is_none() && b.is_none(),
        },
        (Value::Object(a), other) => return equal_objects(a, other),
        (Value::List(list), _) if matches!(list.items, Items::Json { .. }) => {
            return Err(Fault::no_such_overload());
        }
        (Value::Map(map), _) if matches!(map.entries, Entries::Json { .. }) => {
            return Err(Fault::no_such_overload());
        }
        _ => false,
    })
}

fn equal_lists(first: &List<'_>, second: &List<'_>) -> Result<bool, Fault> {
    if first.len() != second.len() {
        return Ok(false);
    }
    match first.kind {
        ListKind::Atomic => {
            for (a, b) in first.iter().zip(second.iter()) {
                if !equal(&a?, &b?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Set => {
            let known = first.values()?;
            for item in second.iter() {
                if !contains(&known, &item?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Map(keys) => {
            for item in second.iter() {
                let item = item?;
                match find_by_keys(first, &item, keys)? {
                    Some(found) if equal(&found, &item)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
    }
}

/// Reports whether a value is in a list.
fn contains(list: &[Value<'_>], wanted: &Value<'_>) -> Result<bool, Fault> {
    for item in list {
        if equal(item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the last item of a list with the same keys as another item, as Kubernetes does.
pub(crate) fn find_by_keys<'a>(
    list: &List<'a>,
    wanted: &Value<'a>,
    keys: &[String],
) -> Result<Option<Value<'a>>, Fault> {
    let Value::Map(wanted) = wanted else {
        return Ok(None);
    };
    let mut found = None;
    for item in list.iter() {
        let item = item?;
        if let Value::Map(map) = &item
            && has_same_keys(map, wanted, keys)?
        {
            found = Some(item);
        }
    }
    Ok(found)
}

fn has_same_keys(first: &Map<'_>, second: &Map<'_>, keys: &[String]) -> Result<bool, Fault> {
    for key in keys {
        let name = Value::text(crate::crd::escape::escape(key).unwrap_or_else(|| key.clone()));
        let same = match (first.find(&name)?, second.find(&name)?) {
            (Some(a), Some(b)) => equal(&a, &b)?,
            (a, b) => a.is_none() && b.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(first: &Map<'_>, second: &Map<'_>) -> Result<bool, Fault> {
    if first.len() != second.len() {
        return Ok(false);
    }
    for key in first.keys() {
        let same = match (first.find(&key)?, second.find(&key)?) {
            (Some(a), Some(b)) => equal(&a, &b)?,
            (a, b) => a.is_none() && b.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    equal_unknown(first, second)
}

/// Compares the fields of an object that its schema does not declare.
fn equal_unknown(first: &Map<'_>, second: &Map<'_>) -> Result<bool, Fault> {
    let Entries::Json {
        fields,
        schema: Some(schema),
    } = &first.entries
    else {
        return Ok(true);
    };
    for (name, value) in fields.iter() {
        if field_schema(schema, name).is_some() {
            continue;
        }
        let Entries::Json { fields: other, .. } = &second.entries else {
            return Err(Fault::no_such_overload());
        };
        if other.get(name).is_some_and(|other: &Json| other != value) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_objects(first: &Object<'_>, second: &Value<'_>) -> Result<bool, Fault> {
    let Value::Object(second) = second else {
        return Err(Fault::no_such_overload());
    };
    Ok(match (first, second) {
        (Object::Url(a), Object::Url(b)) => a.to_string() == b.to_string(),
        (Object::Quantity(a), Object::Quantity(b)) => a.quantity == b.quantity,
        (Object::Ip(a), Object::Ip(b)) => a == b,
        (Object::Cidr(a), Object::Cidr(b)) => a == b,
        (Object::Semver(a), Object::Semver(b)) => a.compare(b).is_eq(),
        (Object::Format(a), Object::Format(b)) => a.name == b.name,
        (Object::Literal(a), Object::Literal(b)) => {
            if a.type_name != b.type_name || a.fields.len() != b.fields.len() {
                return Ok(false);
            }
            for (name, value) in &a.fields {
                match b.fields.get(name) {
                    Some(other) if equal(value, other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        _ => return Err(Fault::no_such_overload()),
    })
}
