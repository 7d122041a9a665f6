use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{duration, jsonpath, partial_metadata, partial_metadata_list, table};
use crate::kinds::{Catalog, Column, Kind, SchemaSource};
use crate::representation::IncludeObject;

/// Objects of a real server, and their cells. Removed by hand: managed fields, the bodies of
/// certificate requests, an age that the server prints for an IPAddress without having a column for
/// it, and an autoscaler whose metrics `autoscaling/v1` has in annotations.
const TABLES: &str = include_str!("fixtures/tables.json");

/// Returns the custom kind of the fixtures; its columns are its `additionalPrinterColumns`.
fn robots() -> Kind {
    let column = |name: &str, type_: &str, cell: &str| Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        cell: cell.to_owned(),
    };
    Kind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Robot".to_owned(),
        plural: "robots".to_owned(),
        singular: "robot".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: Vec::new(),
        subresources: Vec::new(),
        columns: vec![
            column("Replicas", "integer", ".spec.replicas"),
            column(
                "Ready",
                "string",
                r#".status.conditions[?(@.type=="Ready")].status"#,
            ),
            column("Moved", "date", ".status.moved"),
            column("Speed", "number", ".spec.speed"),
            column("Powered", "boolean", ".spec.powered"),
            column("Tags", "string", ".spec.tags"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        deprecation: None,
        schema: SchemaSource::Custom(Arc::new(json!({"type": "object"}))),
        custom: None,
    }
}

#[test]
fn cells_are_those_of_a_real_server() {
    let catalog = Catalog::builtin();
    catalog.insert(robots());
    let tables: Vec<Value> = serde_json::from_str(TABLES).unwrap();
    let mut wrong = Vec::new();
    for expected in &tables {
        let text = |field: &str| expected[field].as_str().unwrap();
        let kind = catalog
            .get(text("group"), text("version"), text("plural"))
            .unwrap();
        let now: Timestamp = text("now").parse().unwrap();
        for row in expected["rows"].as_array().unwrap() {
            // The server computed ages up to a second before the `Date` of its response.
            let rows: Vec<Value> = [0, 1]
                .iter()
                .map(|late| now - SignedDuration::from_secs(*late))
                .map(|now| table(&kind, &[&row["object"]], None, IncludeObject::Object, now))
                .map(|table| table["rows"][0].clone())
                .collect();
            if !rows.iter().any(|ours| ours["cells"] == row["cells"]) {
                wrong.push(format!(
                    "{}\n  real {}\n  ours {}",
                    kind.plural, row["cells"], rows[0]["cells"]
                ));
            }
            let conditions = rows[0].get("conditions").unwrap_or(&Value::Null);
            assert_eq!(*conditions, row["conditions"], "{}", kind.plural);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An unknown rule fails a debug assertion, and every rule must accept an empty object.
#[test]
fn rules_of_the_data_file_are_known() {
    for kind in Catalog::builtin().all() {
        let made = table(
            &kind,
            &[&json!({})],
            None,
            IncludeObject::None,
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(
            made["rows"][0]["cells"].as_array().unwrap().len(),
            kind.columns.len()
        );
    }
}

#[test]
fn table_has_definitions_and_metadata() {
    let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
    let mut kind = robots();
    kind.columns.clear();
    let object = json!({"apiVersion": "example.com/v1", "kind": "Robot", "metadata": {
        "name": "r2", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
    }});
    let made = table(&kind, &[&object], None, IncludeObject::None, now);
    assert_eq!(made["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(
        made["rows"],
        json!([{"cells": ["r2", "10s"], "object": null}])
    );
    let names: Vec<&str> = made["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Age"]);
    let description = made["columnDefinitions"][0]["description"]
        .as_str()
        .unwrap();
    assert!(
        description.starts_with("Name must be unique"),
        "{description}"
    );

    let meta = json!({"resourceVersion": "9", "continue": "x"});
    let made = table(
        &kind,
        &[&object],
        Some(meta.clone()),
        IncludeObject::Metadata,
        now,
    );
    assert_eq!(made["metadata"], meta);
    assert_eq!(made["rows"][0]["object"], partial_metadata(&object));
    let list = partial_metadata_list(meta.clone());
    assert_eq!(list["metadata"], meta);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
}

#[test]
fn paths_find_what_kubernetes_finds() {
    let object = json!({
        "metadata": {"annotations": {"example.com/a.b": "dotted"}},
        "spec": {"replicas": 3, "list": [1, 2, 3, 4]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "age": 5},
            {"type": "Other", "status": "False", "age": 1},
        ]},
    });
    let check = |path: &str, expected: Value| {
        let found: Value = jsonpath(&object, path).into_iter().cloned().collect();
        assert_eq!(found, expected, "{path}");
    };
    check(".spec.replicas", json!([3]));
    check("{.spec.replicas}", json!([3]));
    check("$.spec.replicas", json!([3]));
    check("spec.replicas", json!([3]));
    check(".spec['replicas']", json!([3]));
    check(
        r".metadata.annotations.example\.com/a\.b",
        json!(["dotted"]),
    );
    check(
        ".metadata.annotations['example.com/a.b']",
        json!(["dotted"]),
    );
    check(".spec.list[0]", json!([1]));
    check(".spec.list[-1]", json!([4]));
    check(".spec.list[9]", json!([]));
    check(".spec.list[1:3]", json!([2, 3]));
    check(".spec.list[2:]", json!([3, 4]));
    check(".spec.list[*]", json!([1, 2, 3, 4]));
    check(
        r#".status.conditions[?(@.type=="Ready")].status"#,
        json!(["True"]),
    );
    check(
        ".status.conditions[?(@.type=='Ready')].status",
        json!(["True"]),
    );
    check(
        ".status.conditions[?(@.type!='Ready')].status",
        json!(["False"]),
    );
    check(".status.conditions[?(@.age > 2)].type", json!(["Ready"]));
    check(".status.conditions[?(@.age)].age", json!([5, 1]));
    check("..type", json!(["Ready", "Other"]));
    check(".spec.nothing.below", json!([]));
    check(".spec[", json!([]));
    check(".spec..", json!([]));
    check(".", json!([object]));
}

#[test]
fn durations_are_short() {
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    for (seconds, text) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (5, "5s"),
        (119, "119s"),
        (120, "2m"),
        (201, "3m21s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (12_060, "3h21m"),
        (28_800, "8h"),
        (172_800, "2d"),
        (187_200, "2d4h"),
        (691_200, "8d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ] {
        let since = now - SignedDuration::from_secs(seconds);
        assert_eq!(duration::human(since, now), text, "{seconds}");
    }
}
