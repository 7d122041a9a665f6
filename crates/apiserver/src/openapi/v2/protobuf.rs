//! The document of OpenAPI v2 in protobuf, with the messages of gnostic's `OpenAPIv2.proto`.

use serde_json::{Map, Value};

/// The type of a field of a message.
#[derive(Clone, Copy)]
enum Type {
    Text,
    Texts,
    Flag,
    Integer,
    Double,
    /// A value as YAML text. JSON is YAML.
    Any,
    Anys,
    Message(fn(&Value) -> Vec<u8>),
    Messages(fn(&Value) -> Vec<u8>),
}

use Type::{Any, Anys, Double, Flag, Integer, Message, Messages, Text, Texts};

/// A field of a message: its name in JSON, its number and its type.
type Field = (&'static str, u32, Type);

/// Encodes the document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let fields: &[Field] = &[
        ("swagger", 1, Text),
        ("info", 2, Message(info)),
        ("paths", 8, Message(paths)),
        ("definitions", 9, Message(named_schemas)),
        ("security", 12, Messages(requirement)),
        ("securityDefinitions", 13, Message(security_definitions)),
    ];
    message(document, fields, Some(16))
}

fn info(value: &Value) -> Vec<u8> {
    message(value, &[("title", 1, Text), ("version", 2, Text)], Some(7))
}

fn paths(value: &Value) -> Vec<u8> {
    entries(value, 2, path_item)
}

fn path_item(value: &Value) -> Vec<u8> {
    let fields: &[Field] = &[
        ("get", 2, Message(operation)),
        ("put", 3, Message(operation)),
        ("post", 4, Message(operation)),
        ("delete", 5, Message(operation)),
        ("patch", 8, Message(operation)),
        ("parameters", 9, Messages(parameters_item)),
    ];
    message(value, fields, Some(10))
}

fn operation(value: &Value) -> Vec<u8> {
    let fields: &[Field] = &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Messages(parameters_item)),
        ("responses", 9, Message(responses)),
        ("schemes", 10, Texts),
    ];
    message(value, fields, Some(13))
}

/// Encodes a parameter of an operation: in the body, in the query or in the path.
fn parameters_item(value: &Value) -> Vec<u8> {
    let parameter = match value.get("in").and_then(Value::as_str) {
        Some("body") => {
            let fields: &[Field] = &[
                ("description", 1, Text),
                ("name", 2, Text),
                ("in", 3, Text),
                ("required", 4, Flag),
                ("schema", 5, Message(schema)),
            ];
            nested(1, message(value, fields, Some(6)))
        }
        place => {
            let is_path = place == Some("path");
            // A query parameter has one field more before its type.
            let shift = u32::from(!is_path);
            let fields: &[Field] = &[
                ("required", 1, Flag),
                ("in", 2, Text),
                ("description", 3, Text),
                ("name", 4, Text),
                ("type", 5 + shift, Text),
                ("format", 6 + shift, Text),
                ("uniqueItems", 19 + shift, Flag),
            ];
            let place = if is_path { 4 } else { 3 };
            let sub = nested(place, message(value, fields, Some(22 + shift)));
            nested(2, sub)
        }
    };
    nested(1, parameter)
}

fn responses(value: &Value) -> Vec<u8> {
    entries(value, 1, |response| {
        let fields: &[Field] = &[
            ("description", 1, Text),
            ("schema", 2, Message(|value| nested(1, schema(value)))),
        ];
        nested(1, message(response, fields, Some(5)))
    })
}

fn requirement(value: &Value) -> Vec<u8> {
    entries(value, 1, |scopes| {
        let mut out = Vec::new();
        for scope in scopes.as_array().into_iter().flatten() {
            text(1, scope.as_str().unwrap_or_default(), &mut out);
        }
        out
    })
}

fn security_definitions(value: &Value) -> Vec<u8> {
    entries(value, 1, |definition| {
        let fields: &[Field] = &[
            ("type", 1, Text),
            ("name", 2, Text),
            ("in", 3, Text),
            ("description", 4, Text),
        ];
        nested(2, message(definition, fields, Some(5)))
    })
}

fn named_schemas(value: &Value) -> Vec<u8> {
    entries(value, 1, schema)
}

fn schema(value: &Value) -> Vec<u8> {
    let fields: &[Field] = &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Double),
        ("maximum", 7, Double),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Double),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Texts),
        ("enum", 20, Anys),
        ("additionalProperties", 21, Message(additional_properties)),
        ("type", 22, Message(type_item)),
        ("items", 23, Message(|items| nested(1, schema(items)))),
        ("allOf", 24, Messages(schema)),
        ("properties", 25, Message(named_schemas)),
        ("externalDocs", 29, Message(external_docs)),
        ("example", 30, Any),
    ];
    message(value, fields, Some(31))
}

fn additional_properties(value: &Value) -> Vec<u8> {
    match value {
        Value::Bool(flag) => {
            let mut out = Vec::new();
            key(2, 0, &mut out);
            out.push(u8::from(*flag));
            out
        }
        value => nested(1, schema(value)),
    }
}

fn type_item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(1, value.as_str().unwrap_or_default(), &mut out);
    out
}

fn external_docs(value: &Value) -> Vec<u8> {
    message(
        value,
        &[("description", 1, Text), ("url", 2, Text)],
        Some(3),
    )
}

/// Encodes the fields of an object. The extensions, whose names begin with `x-`, are entries of the
/// field with the number `extensions`.
fn message(value: &Value, fields: &[Field], extensions: Option<u32>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, number, type_) in fields {
        if let Some(value) = value.get(name).filter(|value| !value.is_null()) {
            field(*number, *type_, value, &mut out);
        }
    }
    let own = value.as_object().into_iter().flatten();
    let own = own.filter(|(name, _)| name.starts_with("x-"));
    let own: Map<String, Value> = own
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(number) = extensions.filter(|_| !own.is_empty()) {
        out.extend(entries(&Value::Object(own), number, any));
    }
    out
}

fn field(number: u32, type_: Type, value: &Value, out: &mut Vec<u8>) {
    let items = || value.as_array().into_iter().flatten();
    match type_ {
        Text => text(number, value.as_str().unwrap_or_default(), out),
        Texts => items().for_each(|item| text(number, item.as_str().unwrap_or_default(), out)),
        Flag if value == &Value::Bool(true) => {
            key(number, 0, out);
            out.push(1);
        }
        Flag => {}
        Integer => {
            key(number, 0, out);
            varint(value.as_u64().unwrap_or_default(), out);
        }
        Double => {
            key(number, 1, out);
            out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Any => bytes(number, &any(value), out),
        Anys => items().for_each(|item| bytes(number, &any(item), out)),
        Message(encode) => bytes(number, &encode(value), out),
        Messages(encode) => items().for_each(|item| bytes(number, &encode(item), out)),
    }
}

/// Encodes each entry of an object as a message with the name and the value.
fn entries(value: &Value, number: u32, encode: impl Fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let mut entry = Vec::new();
        text(1, name, &mut entry);
        bytes(2, &encode(value), &mut entry);
        bytes(number, &entry, &mut out);
    }
    out
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(2, &format!("{value}\n"), &mut out);
    out
}

fn nested(number: u32, message: Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 4);
    bytes(number, &message, &mut out);
    out
}

fn text(number: u32, text: &str, out: &mut Vec<u8>) {
    bytes(number, text.as_bytes(), out);
}

fn bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    key(number, 2, out);
    varint(u64::try_from(bytes.len()).unwrap_or_default(), out);
    out.extend_from_slice(bytes);
}

fn key(number: u32, wire_type: u32, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | wire_type), out);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}
