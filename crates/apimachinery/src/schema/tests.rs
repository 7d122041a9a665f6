use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

#[test]
fn keywords_of_the_wrong_shape_are_named() {
    fn check(document: Value, expected: &str) {
        assert_eq!(Schema::parse(&document).unwrap_err().to_string(), expected);
    }
    check(json!(1), r#"schema at "": schema must be an object"#);
    check(
        json!({"type": "thing"}),
        r#"schema at "": type must be a JSON type"#,
    );
    check(
        json!({"properties": {"a": {"items": {"minLength": -1}}}}),
        r#"schema at "a.items": minLength must be a whole number"#,
    );
    check(
        json!({"x-kubernetes-list-type": "bag"}),
        r#"schema at "": x-kubernetes-list-type must be atomic, set or map"#,
    );
}

#[test]
fn types_may_be_lists() {
    fn check(type_: Value, expected: (Option<SchemaType>, bool, bool)) {
        let schema = Schema::parse(&json!({"type": type_})).unwrap();
        assert_eq!(
            (schema.type_, schema.nullable, schema.int_or_string),
            expected
        );
    }
    check(json!("string"), (Some(SchemaType::String), false, false));
    check(
        json!(["string", "null"]),
        (Some(SchemaType::String), true, false),
    );
    check(json!(["integer", "string"]), (None, false, true));
}

#[test]
fn patterns_have_the_semantics_of_go() {
    fn check(pattern: &str, text: &str, expected: bool) {
        let compiled = Pattern::compile(pattern).unwrap();
        assert_eq!(compiled.is_match(text), expected, "{pattern} on {text}");
    }
    check(r"^\d+$", "12", true);
    check(r"^\d+$", "١٢", false);
    check(r"^[\w-]+$", "a-b", true);
    check(r"^[\w-]+$", "é", false);
    check(r"^[[a]+$", "[a", true);
    check(r"^[]a]+$", "]a", true);
    check(r"^[a&&b]+$", "a&b", true);
    check(r"^[[:alpha:]]+$", "ab", true);
    check(r"^a\/b\.c$", "a/b.c", true);
    check(r"\bfoo\b", "a foo b", true);
}

#[test]
fn references_are_followed_and_keywords_beside_them_take_precedence() {
    let mut definitions = BTreeMap::new();
    let node = json!({
        "type": "object",
        "default": {"from": "definition"},
        "properties": {
            "next": {"allOf": [{"$ref": "#/components/schemas/Node"}], "default": {}},
            "plain": {"$ref": "#/components/schemas/Node"},
            "cpu": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
            "missing": {"$ref": "#/components/schemas/Missing"},
        },
    });
    definitions.insert("Node".to_owned(), Arc::new(Schema::parse(&node).unwrap()));
    let root = Schema::parse(&json!({"$ref": "#/components/schemas/Node"})).unwrap();
    let root = Typed::new(&root, &definitions);
    let next = root.property("next").unwrap();
    assert_eq!(next.default(), Some(&json!({})));
    assert_eq!(next.schema().type_, Some(SchemaType::Object));
    let deep = next.property("next").unwrap().property("plain").unwrap();
    assert_eq!(deep.default(), Some(&json!({"from": "definition"})));
    assert!(deep.property("cpu").unwrap().schema().type_.is_none());
    assert!(
        deep.property("missing")
            .unwrap()
            .schema()
            .preserve_unknown_fields
    );
}

#[test]
fn a_cycle_of_references_ends() {
    let mut definitions = BTreeMap::new();
    let looped = Schema::parse(&json!({"$ref": "Loop"})).unwrap();
    definitions.insert("Loop".to_owned(), Arc::new(looped));
    let root = Schema::parse(&json!({"$ref": "Loop"})).unwrap();
    assert!(Typed::new(&root, &definitions).is_referenced());
}

#[test]
fn metadata_is_object_meta_unless_the_schema_refers_to_its_own() {
    let schema = Schema::parse(&json!({
        "type": "object",
        "properties": {"metadata": {"type": "object"}},
    }))
    .unwrap();
    let typed = Typed::new(&schema, &NoDefinitions);
    let metadata = typed.resource_field("metadata").unwrap();
    assert_eq!(
        metadata.property("finalizers").unwrap().list_type(),
        Some(ListType::Set)
    );
    assert!(typed.resource_field("kind").is_some());
    assert!(typed.resource_field("spec").is_none());
}

#[test]
fn schemas_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Schema>();
    check::<Typed<'_>>();
}
