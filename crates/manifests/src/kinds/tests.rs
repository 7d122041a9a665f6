use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde_json::json;

use super::*;

const TABLE: KindTable = KindTable {
    group: "example.com",
    version: "v1",
    kind: "Robot",
    plural: "robots",
    singular: "robot",
    is_namespaced: false,
    short_names: &[],
    categories: &[],
    columns: &[],
    selectable: &[],
    scale: None,
    labels: &[],
    annotations: &[],
    is_served: true,
    is_deprecated: false,
    is_spec_required: true,
    description: None,
    deprecation_warning: None,
    rules: &[],
};

/// Returns the served schema of a spec.
fn spec_of(spec: SchemaOf) -> Value {
    let crd = serde_json::to_value(TABLE.crd(spec, None)).unwrap();
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
        .cloned()
        .unwrap_or(crd)
}

#[test]
fn integers_are_of_the_two_formats_that_kubernetes_knows() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    struct Integers {
        int8: i8,
        int32: i32,
        int64: i64,
        isize: isize,
        uint16: u16,
        uint32: u32,
        uint64: u64,
        #[schemars(range(min = 7, max = 70_000))]
        limited: u16,
        list: Vec<u8>,
    }
    let schema = spec_of(SchemaGenerator::subschema_for::<Integers>);
    let integer = |format: &str, min: Option<f64>, max: Option<f64>| {
        let mut schema = json!({"type": "integer", "format": format});
        schema.as_object_mut().unwrap().extend(
            [("minimum", min), ("maximum", max)]
                .into_iter()
                .filter_map(|(name, limit)| Some((name.to_owned(), json!(limit?)))),
        );
        schema
    };
    assert_eq!(
        schema["properties"],
        json!({
            "int8": integer("int32", Some(-128.0), Some(127.0)),
            "int32": integer("int32", None, None),
            "int64": integer("int64", None, None),
            "isize": integer("int64", None, None),
            "uint16": integer("int32", Some(0.0), Some(65_535.0)),
            "uint32": integer("int64", Some(0.0), Some(4_294_967_295.0)),
            "uint64": integer("int64", Some(0.0), None),
            "limited": integer("int32", Some(7.0), Some(65_535.0)),
            "list": {"type": "array", "items": integer("int32", Some(0.0), Some(255.0))},
        })
    );
}

#[test]
fn a_value_of_any_type_is_preserved() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    struct Anything {
        value: Value,
        values: Vec<Value>,
        by_name: BTreeMap<String, Value>,
    }
    let schema = spec_of(SchemaGenerator::subschema_for::<Anything>);
    let anything = json!({"x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(
        schema["properties"],
        json!({
            "value": anything,
            "values": {"type": "array", "items": anything},
            "by_name": {"type": "object", "additionalProperties": anything},
        })
    );
}

#[test]
fn an_invalid_schema_contains_the_reason() {
    struct Odd;
    impl JsonSchema for Odd {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Odd".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
            json_schema!({"type": "object", "maxLength": "seven"})
        }
    }
    let crd =
        serde_json::to_string(&TABLE.crd(SchemaGenerator::subschema_for::<Odd>, None)).unwrap();
    assert!(crd.contains("opkit cannot convert this schema: "), "{crd}");
}

#[test]
fn a_column_has_the_type_of_its_field() {
    let schema = json!({"properties": {"status": {"properties": {
        "count": {"type": "integer"},
        "on": {"type": "boolean"},
        "since": {"type": "string", "format": "date-time"},
        "node": {"type": "string"},
    }}}});
    for (path, expected) in [
        (".status.count", "integer"),
        (".status.on", "boolean"),
        (".status.since", "date"),
        (".status.node", "string"),
        (".status.conditions[?(@.type=='Ready')].status", "string"),
        (".metadata.creationTimestamp", "date"),
    ] {
        assert_eq!(type_at(&schema, path), expected, "{path}");
    }
}
