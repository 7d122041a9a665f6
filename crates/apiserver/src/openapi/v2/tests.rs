use std::sync::Arc;

use serde_json::{Value, json};

use super::{Cache, custom, protobuf};
use crate::crd::{VERBS, Versions};
use crate::kinds::{Catalog, CustomKind, Kind, SchemaSource};
use crate::openapi::custom as v3;

/// Returns what a real server publishes for a CRD.
fn fixture() -> Value {
    serde_json::from_str(include_str!("../fixtures/openapi-v2.json")).unwrap()
}

fn robots(version: &str, schema: Value, selectable_fields: &[&str]) -> Kind {
    let crd = json!({"spec": {"group": "v2.example.com", "versions": []}});
    Kind {
        group: "v2.example.com".to_owned(),
        version: version.to_owned(),
        kind: "Robot".to_owned(),
        plural: "robots".to_owned(),
        singular: "robot".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: VERBS.to_vec(),
        subresources: Vec::new(),
        columns: Vec::new(),
        deprecation: None,
        schema: SchemaSource::Custom(Arc::new(schema)),
        custom: Some(Arc::new(CustomKind {
            versions: Arc::new(Versions::of(&crd, 0, None)),
            list_kind: "RobotList".to_owned(),
            selectable_fields: selectable_fields.iter().map(ToString::to_string).collect(),
        })),
    }
}

#[test]
fn a_crd_is_published_as_by_a_real_server() {
    let fixture = fixture();
    let kind = robots("v1", fixture["sent"].clone(), &["spec.a"]);
    assert_eq!(custom::definition(&kind), fixture["v1"]);
    assert_eq!(v3::schema(&kind, &fixture["sent"]), fixture["v3"]);
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(custom::definition(&robots("v2", open, &[])), fixture["v2"]);
}

#[test]
fn the_document_has_all_kinds() {
    let fixture = fixture();
    let catalog = Catalog::builtin();
    let cache = Cache::default();
    let before = cache.document(&catalog);
    catalog.insert(robots("v1", fixture["sent"].clone(), &["spec.a"]));
    let document = cache.document(&catalog);
    assert_ne!(before.etag, document.etag);
    assert!(Arc::ptr_eq(&document, &cache.document(&catalog)));
    let (media, body) = document.encoded("text/html, */*").unwrap();
    assert_eq!(media, "application/json");
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        body["definitions"]["com.example.v2.v1.RobotList"],
        fixture["list"]
    );
    let quantity = &body["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
    assert_eq!(quantity["type"], "string");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &body["paths"][path]["patch"];
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["body", "dryRun", "fieldManager", "fieldValidation", "force"]
    );
    assert_eq!(
        patch["responses"]["200"]["schema"]["$ref"],
        "#/definitions/io.k8s.api.apps.v1.Deployment"
    );
    // Nothing of OpenAPI v3 is left.
    assert!(!body.to_string().contains("#/components"));
    assert_eq!(document.encoded("text/html"), None);
    let old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let (media, _) = document.encoded(old).unwrap();
    assert_eq!(
        media,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
}

/// Returns the fields of a message: number and bytes. Only fields with a length are supported.
fn fields(mut message: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let varint = |message: &mut &[u8]| {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = message.split_first().unwrap();
            *message = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    };
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        assert_eq!(key & 7, 2, "a field with a length");
        let length = usize::try_from(varint(&mut message)).unwrap();
        let (value, rest) = message.split_at(length);
        found.push((key >> 3, value.to_vec()));
        message = rest;
    }
    found
}

/// Returns the only field with this number.
fn only(message: &[u8], number: u64) -> Vec<u8> {
    let mut found = fields(message);
    found.retain(|(known, _)| *known == number);
    assert_eq!(found.len(), 1, "fields {number} of {message:?}");
    found.remove(0).1
}

#[test]
fn the_document_is_encoded_in_protobuf() {
    let document = json!({
        "swagger": "2.0",
        "definitions": {"a.B": {
            "type": "object", "x-kubernetes-y": {"z": 1},
            "properties": {"c": {"$ref": "#/definitions/d"}},
        }},
    });
    let encoded = protobuf::encode(&document);
    assert_eq!(only(&encoded, 1), b"2.0");
    let entry = only(&only(&encoded, 9), 1);
    assert_eq!(only(&entry, 1), b"a.B");
    let schema = only(&entry, 2);
    assert_eq!(only(&only(&schema, 22), 1), b"object");
    let property = only(&only(&schema, 25), 1);
    assert_eq!(only(&property, 1), b"c");
    assert_eq!(only(&only(&property, 2), 1), b"#/definitions/d");
    let extension = only(&schema, 31);
    assert_eq!(only(&extension, 1), b"x-kubernetes-y");
    assert_eq!(only(&only(&extension, 2), 2), b"{\"z\":1}\n");
}
