//! Every kind, with every field set: from JSON to protobuf and back.

use super::table::{Cardinality, Field, Form, Message, Type};
use super::*;

/// Generator of objects with all fields set, up to a depth and a number of messages: nested
/// schemas would otherwise never end.
struct Generator {
    table: &'static Table,
    messages_left: usize,
    random: Random,
}

impl Generator {
    fn message(&mut self, message: &'static Message, depth: usize) -> Value {
        self.messages_left = self.messages_left.saturating_sub(1);
        let depth = if self.messages_left == 0 { 0 } else { depth };
        match message.form {
            Form::Message => {
                let mut object = serde_json::Map::new();
                self.fill(message, depth, &mut object);
                Value::Object(object)
            }
            Form::List => {
                let field = message.fields().next().unwrap();
                self.field(field, depth).unwrap()
            }
            Form::Choice => {
                let fields: Vec<&Field> = message.fields().collect();
                let field = *self.random.one_of(&fields).unwrap();
                // A choice always has a value; a flag always ends the recursion.
                let value = self.field(field, depth);
                value.unwrap_or_else(|| match field.cardinality {
                    Cardinality::List => json!([{"type": "x"}]),
                    _ => json!({"type": "x"}),
                })
            }
        }
    }

    fn fill(
        &mut self,
        message: &'static Message,
        depth: usize,
        out: &mut serde_json::Map<String, Value>,
    ) {
        for field in message.fields() {
            match field.type_ {
                Type::Message(index) if field.cardinality == Cardinality::Inline => {
                    self.fill(self.table.message(index).unwrap(), depth, out);
                }
                _ => {
                    if let Some(value) = self.field(field, depth) {
                        out.insert(field.name.to_owned(), value);
                    }
                }
            }
        }
    }

    fn field(&mut self, field: &'static Field, depth: usize) -> Option<Value> {
        let count = 1 + self.random.below(3);
        match field.cardinality {
            Cardinality::List => (0..count).map(|_| self.value(field, depth)).collect(),
            Cardinality::Map => {
                let entries = (0..count).map(|index| {
                    let value = self.value(field, depth)?;
                    Some((format!("k{}", index * 7), value))
                });
                entries.collect::<Option<_>>().map(Value::Object)
            }
            _ => self.value(field, depth),
        }
    }

    /// Returns a value that is not empty, because protobuf cannot distinguish an empty one from
    /// a missing one. The value of a pointer may be empty.
    fn value(&mut self, field: &'static Field, depth: usize) -> Option<Value> {
        let zero = field.is_pointer && self.random.below(4) == 0;
        let number = 1 + self.random.below(1 << 30) as i64;
        let texts = [
            "a",
            "ü ✓",
            "with \"quotes\"",
            "line\nbreak",
            "x".repeat(300).leak(),
        ];
        let text = *self.random.one_of(&texts).unwrap();
        Some(match field.type_ {
            Type::Bool => json!(!zero),
            Type::Int32 => json!(if zero {
                0
            } else {
                *self
                    .random
                    .one_of(&[number, -number, i64::from(i32::MIN)])
                    .unwrap()
            }),
            Type::Int64 => json!(if zero {
                0
            } else {
                *self
                    .random
                    .one_of(&[number, -number << 20, i64::MAX])
                    .unwrap()
            }),
            Type::Double if zero => json!(0),
            Type::Double => json!(number as f64 + 0.5),
            Type::String => json!(if zero { "" } else { text }),
            Type::Bytes => json!(self.random.one_of(&["AA==", "/+8=", "YWJj"]).unwrap()),
            Type::Duration => json!("1h0m0.5s"),
            Type::IntOrString => match zero {
                true => json!(0),
                false => self
                    .random
                    .one_of(&[json!("50%"), json!(8080), json!(-1)])
                    .unwrap()
                    .clone(),
            },
            Type::Json => json!({"a": [1, null, {"b": text}]}),
            Type::MicroTime => json!("2024-02-29T12:34:56.000789Z"),
            Type::Quantity => json!(self.random.one_of(&["100m", "1Gi", "0", "12e6"]).unwrap()),
            Type::Time => json!("1999-12-31T23:59:59Z"),
            Type::Message(index) => {
                let message = self.table.message(index)?;
                let is_optional = field.is_pointer || field.cardinality != Cardinality::One;
                if depth == 0 && is_optional {
                    return None;
                }
                // A message that is not a pointer is on the wire even if JSON does not have it.
                let depth = if zero { 0 } else { depth.saturating_sub(1) };
                self.message(message, depth)
            }
        })
    }
}

/// Returns the value without empty structs; empty structs in lists are kept.
fn pruned(table: &Table, message: &Message, value: Value) -> Value {
    let Value::Object(object) = value else {
        return value;
    };
    let mut out = serde_json::Map::new();
    prune_into(table, message, &object, &mut out);
    Value::Object(out)
}

fn prune_into(
    table: &Table,
    message: &Message,
    object: &serde_json::Map<String, Value>,
    out: &mut serde_json::Map<String, Value>,
) {
    for field in message.fields() {
        let inner = match field.type_ {
            Type::Message(index) => table.message(index),
            _ => None,
        };
        let Some(inner) = inner else {
            out.extend(
                object
                    .get(field.name)
                    .map(|value| (field.name.to_owned(), value.clone())),
            );
            continue;
        };
        if field.cardinality == Cardinality::Inline {
            prune_into(table, inner, object, out);
            continue;
        }
        let Some(value) = object.get(field.name) else {
            continue;
        };
        let value = match (field.cardinality, value.clone()) {
            (Cardinality::List, Value::Array(items)) => items
                .into_iter()
                .map(|item| pruned(table, inner, item))
                .collect(),
            (Cardinality::Map, Value::Object(entries)) => entries
                .into_iter()
                .map(|(key, item)| (key, pruned(table, inner, item)))
                .collect(),
            (_, value) => pruned(table, inner, value),
        };
        if !(field.omit_empty && value == json!({}) && field.cardinality == Cardinality::One) {
            out.insert(field.name.to_owned(), value);
        }
    }
}

/// Returns the first difference between two values, which are too long to print.
fn difference(path: &str, left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        _ if left == right => None,
        (Value::Object(left), Value::Object(right)) => {
            let names = left.keys().chain(right.keys());
            names.into_iter().find_map(|name| {
                let of = |object: &serde_json::Map<String, Value>| {
                    object.get(name).cloned().unwrap_or_else(|| json!("absent"))
                };
                difference(&format!("{path}.{name}"), &of(left), &of(right))
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.find_map(|(at, (left, right))| difference(&format!("{path}[{at}]"), left, right))
        }
        _ => Some(format!("{path} was {left} and is {right}")),
    }
}

#[test]
fn every_kind_round_trips() {
    let table = Table::shared().unwrap();
    let mut kinds: Vec<_> = table.kinds().collect();
    kinds.sort_unstable_by_key(|(api_version, kind, _)| (*api_version, *kind));
    assert!(kinds.len() > 130, "{}", kinds.len());
    for (at, (api_version, kind, message)) in kinds.into_iter().enumerate() {
        for (seed, depth) in [(1, 2), (2, 4), (3, 8)] {
            let api_version = api_version.replace('*', "v1");
            let mut generator = Generator {
                table,
                messages_left: 1_500,
                random: Random::new(seed * 1_000 + at as u64),
            };
            let mut object = pruned(table, message, generator.message(message, depth));
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            let bytes =
                encode(&object).unwrap_or_else(|error| panic!("{kind}, seed {seed}: {error}"));
            let read =
                decode(&bytes).unwrap_or_else(|error| panic!("{kind}, seed {seed}: {error}"));
            if let Some(difference) = difference("", &object, &read) {
                panic!("{kind}, seed {seed}: {difference}");
            }
            assert_eq!(encode(&read).unwrap(), bytes, "{kind}, seed {seed}");
        }
    }
}

fn check_unwritable(object: Value, expected: &str) {
    assert_eq!(encode(&object).unwrap_err().to_string(), expected);
}

#[test]
fn errors_name_the_field_that_cannot_be_encoded() {
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
    check_unwritable(
        pod(json!({"colour": "red"})),
        "cannot write core.v1.PodSpec.colour as protobuf: it is not a field of the message",
    );
    check_unwritable(
        pod(json!({"containers": {}})),
        "cannot write core.v1.PodSpec.containers as protobuf: it is an object and not a list",
    );
    check_unwritable(
        pod(json!({"containers": [1]})),
        "cannot write core.v1.Container as protobuf: it is a number and not an object",
    );
    check_unwritable(
        pod(json!({"hostname": 1})),
        "cannot write core.v1.PodSpec.hostname as protobuf: it is a number and not a string",
    );
    check_unwritable(
        pod(json!({"priority": 1u64 << 40})),
        "cannot write core.v1.PodSpec.priority as protobuf: it is not an integer of 32 bits: 1099511627776",
    );
    check_unwritable(
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "?"}}),
        "cannot write core.v1.Secret.data as protobuf: it is not base64: \"?\"",
    );
    check_unwritable(
        json!({"kind": "Pod"}),
        "cannot write an object without apiVersion as protobuf",
    );
    check_unwritable(
        json!({"apiVersion": "example.com/v1", "kind": "Robot"}),
        "no kind \"Robot\" is registered for version \"example.com/v1\"",
    );
}
