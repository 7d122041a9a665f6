//! A tape decodes to the same value as serde_json reads from the text, or is rejected alike.

#![expect(dead_code, reason = "fields are compared as they are printed")]

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{TYPES, Tapes};
use crate::tape::deserialize::decode;

/// Reads the field `value` of objects, once from the text and once from its tape.
#[derive(Debug, Deserialize)]
struct Holder<T> {
    value: T,
}

#[track_caller]
fn same<T: DeserializeOwned + Debug>(values: &[&str]) {
    let mut tapes = Tapes::new();
    for value in values {
        let text = format!(r#"{{"apiVersion":"v1","kind":"Thing","value":{value}}}"#);
        let expected = serde_json::from_str::<Holder<T>>(&text);
        let expected = expected.map(|holder| format!("{:?}", holder.value));
        // The third time strings are shared, and names are expected.
        for object in 0..3 {
            let tape = tapes.of_text(&text, object).unwrap();
            let read = decode::<Holder<T>>(&tape, &tapes.vocabulary, TYPES, None);
            let read = read.map(|holder| format!("{:?}", holder.value));
            assert_eq!(
                read.as_ref().ok(),
                expected.as_ref().ok(),
                "{value} as {}: {read:?}, not {expected:?}",
                std::any::type_name::<T>()
            );
        }
    }
}

const VALUES: [&str; 34] = [
    "null",
    "true",
    "0",
    "7",
    "-7",
    "300",
    "18446744073709551615",
    "-9223372036854775808",
    "1.5",
    "-2e3",
    r#""""#,
    r#""a""#,
    r#""Unit""#,
    r#""1234""#,
    r#""2026-11-15T14:33:48Z""#,
    r#""0f8fad5b-d9cb-469f-a165-70867728950e""#,
    r#""containerd://0123456789abcdef0123456789abcdef""#,
    r#""\u00e4\n""#,
    "[]",
    "[1]",
    "[1,2]",
    "[1,2,3]",
    r#"["a","b"]"#,
    "[null,1]",
    "{}",
    r#"{"a":1}"#,
    r#"{"a":1,"b":2}"#,
    r#"{"b":2,"a":1,"c":{"d":[1]}}"#,
    r#"{"1":"x","-2":"y"}"#,
    r#"{"true":"x"}"#,
    r#"{"Unit":null}"#,
    r#"{"New":5}"#,
    r#"{"Struct":{"a":1},"New":5}"#,
    r#"{"Tuple":[1,2],"b":0}"#,
];

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Newtype(String);

#[derive(Debug, Deserialize)]
struct UnitStruct;

#[derive(Debug, Deserialize)]
struct TupleStruct(u8, u8);

#[derive(Debug, Deserialize)]
struct Fields {
    a: u8,
    #[serde(default)]
    b: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: u8,
}

#[derive(Debug, Deserialize)]
struct Flat {
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
enum External {
    Unit,
    New(u8),
    Tuple(u8, u8),
    Struct { a: u8 },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
    Pair(u8, u8),
    Fields(Fields),
    Any(Value),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Internal {
    One { a: u8 },
    Two(Fields),
    Three,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
enum Adjacent {
    One { a: u8 },
    Two(Fields),
    Three,
    Four(u8, u8),
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Checked(usize);

impl TryFrom<String> for Checked {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.len() {
            0 => Err("empty"),
            length => Ok(Self(length)),
        }
    }
}

#[test]
fn scalars() {
    same::<Value>(&VALUES);
    same::<bool>(&VALUES);
    same::<i8>(&VALUES);
    same::<u16>(&VALUES);
    same::<i64>(&VALUES);
    same::<u64>(&VALUES);
    same::<i128>(&VALUES);
    same::<u128>(&VALUES);
    same::<f32>(&VALUES);
    same::<f64>(&VALUES);
    same::<char>(&VALUES);
    same::<String>(&VALUES);
    // The same value, though not written in the same way.
    same::<Box<RawValue>>(&["null", "7", "1.5", r#""a""#, "[1,{}]", r#"{"a":[true]}"#]);
    same::<Option<u8>>(&VALUES);
    same::<Option<Option<String>>>(&VALUES);
    same::<()>(&VALUES);
}

#[test]
fn structs_and_lists() {
    same::<Newtype>(&VALUES);
    same::<UnitStruct>(&VALUES);
    same::<TupleStruct>(&VALUES);
    same::<Fields>(&VALUES);
    same::<Strict>(&VALUES);
    same::<Flat>(&VALUES);
    same::<Option<Flat>>(&VALUES);
    same::<Checked>(&VALUES);
    same::<Vec<u8>>(&VALUES);
    same::<Vec<Option<u8>>>(&VALUES);
    same::<(u8, u8)>(&VALUES);
    same::<[u8; 2]>(&VALUES);
}

#[test]
fn maps() {
    same::<BTreeMap<String, Value>>(&VALUES);
    same::<BTreeMap<char, u8>>(&VALUES);
    same::<BTreeMap<Newtype, u8>>(&VALUES);
    same::<BTreeMap<i8, String>>(&VALUES);
    same::<BTreeMap<u64, String>>(&VALUES);
    same::<BTreeMap<bool, String>>(&VALUES);
    same::<BTreeMap<Option<String>, Value>>(&VALUES);
    same::<BTreeMap<External, Value>>(&VALUES);
}

#[test]
fn enums() {
    same::<External>(&VALUES);
    same::<Vec<External>>(&[r#"["Unit",{"New":1},{"Tuple":[1,2]},{"Struct":{"a":1}}]"#]);
    same::<External>(&[
        r#"{"Tuple":[1,2]}"#,
        r#"{"Tuple":[1,2,3]}"#,
        r#"{"Struct":{"a":1}}"#,
        r#"{"Struct":{}}"#,
        r#"{"None":1}"#,
    ]);
    same::<Untagged>(&VALUES);
    let tagged = [
        r#"{"type":"one","a":1}"#,
        r#"{"a":1,"type":"one","b":2}"#,
        r#"{"type":"two","a":1,"b":-5}"#,
        r#"{"type":"three"}"#,
        r#"{"type":"three","more":[]}"#,
        r#"{"type":"none"}"#,
        r#"{"type":"one","value":{"a":1}}"#,
        r#"{"value":{"a":1},"type":"two"}"#,
        r#"{"type":"three","value":null}"#,
        r#"{"type":"four","value":[1,2]}"#,
        r#"{"type":"four","value":[1,2,3]}"#,
    ];
    same::<Internal>(&tagged);
    same::<Adjacent>(&tagged);
    same::<Internal>(&VALUES);
    same::<Adjacent>(&VALUES);
}

/// A type with its own fields for what the tape leaves out.
#[test]
fn api_version_and_kind_in_any_form() {
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Typed {
        api_version: Option<String>,
        kind: Kind,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    enum Kind {
        Thing,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    struct Wrapped {
        api_version: Newtype,
        kind: Box<RawValueText>,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct RawValueText(String);
    let text = r#"{"apiVersion":"v1","kind":"Thing"}"#;
    let mut tapes = Tapes::new();
    let tape = tapes.of_text(text, 0).unwrap();
    let typed: Typed = decode(&tape, &tapes.vocabulary, TYPES, None).unwrap();
    assert_eq!(typed, serde_json::from_str(text).unwrap());
    let wrapped: Wrapped = decode(&tape, &tapes.vocabulary, TYPES, None).unwrap();
    assert_eq!(wrapped, serde_json::from_str(text).unwrap());
}

/// Names with escapes are decoded, even where another name is expected.
#[test]
fn names_with_escapes() {
    same::<BTreeMap<String, u8>>(&[r#"{"x":1,"a\\b":2}"#, r#"{"x":1,"a\b":2}"#]);
    let mut tapes = Tapes::new();
    for (text, name) in [
        (r#"{"x":1,"a\\b":2}"#, "a\\b"),
        (r#"{"x":1,"a\b":2}"#, "a\u{8}"),
    ] {
        let tape = tapes.of_text(&format!(r#"{{"value":{text}}}"#), 0).unwrap();
        let value = tapes.value(&tape);
        assert_eq!(value["value"][name], 2, "{value}");
    }
}
