//! Defaults of fields as Rust expressions.

use serde_json::Value;

use super::arguments::{literal, number};
use super::model::{Body, Field, Item, Ty};

/// Returns a default in the form of the argument `default`, which converts literals to the type of
/// the field.
pub(super) fn attribute(ty: &Ty, value: &Value, items: &[Item]) -> Option<String> {
    match (ty, value) {
        (Ty::Text | Ty::Quantity | Ty::IntOrString, Value::String(text)) => Some(literal(text)),
        (Ty::IntOrString, Value::Number(value)) => Some(number(value, true)),
        (Ty::List(item), Value::Array(values)) => {
            let values = values.iter().map(|value| attribute(item, value, items));
            let values: Option<Vec<String>> = values.collect();
            Some(format!("[{}]", values?.join(", ")))
        }
        _ => expression(ty, value, items),
    }
}

/// Returns a default as an expression of the type.
pub(super) fn expression(ty: &Ty, value: &Value, items: &[Item]) -> Option<String> {
    match (ty, value) {
        (Ty::Bool, Value::Bool(value)) => Some(value.to_string()),
        (Ty::Integer { .. }, Value::Number(value)) => Some(number(value, true)),
        (Ty::Float { .. }, Value::Number(value)) => Some(format!("{:?}", value.as_f64()?)),
        (Ty::Text, Value::String(text)) => Some(owned(text)),
        (Ty::Quantity, Value::String(text)) => Some(format!("Quantity({})", owned(text))),
        (Ty::IntOrString, Value::String(text)) => {
            Some(format!("IntOrString::String({})", owned(text)))
        }
        (Ty::IntOrString, Value::Number(value)) => {
            Some(format!("IntOrString::Int({})", number(value, true)))
        }
        (Ty::List(item), Value::Array(values)) => {
            let values = values.iter().map(|value| expression(item, value, items));
            let values: Option<Vec<String>> = values.collect();
            Some(format!("vec![{}]", values?.join(", ")))
        }
        (Ty::Map(item), Value::Object(values)) => {
            let values = values.iter().map(|(key, value)| {
                let value = expression(item, value, items)?;
                Some(format!("({}, {value})", owned(key)))
            });
            let values: Option<Vec<String>> = values.collect();
            Some(match values?.as_slice() {
                [] => "BTreeMap::new()".to_owned(),
                values => format!("BTreeMap::from([{}])", values.join(", ")),
            })
        }
        (Ty::Named(name), value) => {
            let item = items.iter().find(|item| item.name == *name)?;
            named(item, value, items)
        }
        _ => None,
    }
}

fn owned(text: &str) -> String {
    format!("{}.to_owned()", literal(text))
}

/// Returns a default of a type of the module.
fn named(item: &Item, value: &Value, items: &[Item]) -> Option<String> {
    let name = &item.name;
    match (&item.body, value) {
        (Body::Enum(variants), Value::String(value)) => {
            let variant = variants.iter().find(|variant| variant.json == *value)?;
            let is_plain = variants.iter().all(|variant| variant.data.is_none());
            is_plain.then(|| format!("{name}::{}", variant.name))
        }
        (Body::Newtype(ty), value) => Some(format!("{name}({})", expression(ty, value, items)?)),
        (Body::Struct(fields), Value::Object(values)) => {
            let is_known = |json: &String| fields.iter().any(|field| field.json == *json);
            if !values.keys().all(is_known) {
                return None;
            }
            let fields = fields.iter().map(|field| {
                let value = field_value(field, values.get(&field.json), items)?;
                Some(format!("{}: {value}", field.name))
            });
            let fields: Option<Vec<String>> = fields.collect();
            Some(match fields?.as_slice() {
                [] => format!("{name} {{}}"),
                fields => format!("{name} {{ {} }}", fields.join(", ")),
            })
        }
        _ => None,
    }
}

/// Returns the value of a field in a struct literal.
fn field_value(field: &Field, value: Option<&Value>, items: &[Item]) -> Option<String> {
    match value {
        Some(value) if field.is_option => {
            let value = expression(&field.ty, value, items)?;
            Some(format!("Some({value})"))
        }
        Some(value) => expression(&field.ty, value, items),
        None if field.is_option => Some("None".to_owned()),
        None if field.default.is_some() => field.default.clone(),
        None if field.is_required => None,
        None => match field.ty {
            Ty::List(_) => Some("Vec::new()".to_owned()),
            Ty::Map(_) => Some("BTreeMap::new()".to_owned()),
            _ => None,
        },
    }
}
