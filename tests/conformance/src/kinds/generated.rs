//! The types that `opkit types from-crd` generates: they compile, and their CRD is that of the
//! source. `OPKIT_BLESS=1` writes them again.

#[expect(unreachable_pub, reason = "the types are written for a public module")]
mod backup;

use std::fs;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use opkit_scaffold::CrdTypes;
use serde_json::{Value, json};

use self::backup::{Backup, BackupDestination, BackupMode};

const CRD: &str = include_str!("../../types/backups.yaml");

fn original() -> Value {
    serde_saphyr::from_str(CRD).unwrap()
}

#[test]
fn the_types_are_those_of_the_crd() {
    let crd = original();
    let types = CrdTypes::new(&crd).generate().unwrap();
    assert_eq!(types.notes, Vec::<String>::new());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kinds/generated/backup.rs");
    if std::env::var_os("OPKIT_BLESS").is_some_and(|value| !value.is_empty()) {
        fs::write(&path, &types.source).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(types.source, expected, "OPKIT_BLESS=1 writes the types");
}

#[test]
fn the_crd_of_the_types_is_the_original() {
    let crd: CustomResourceDefinition = serde_json::from_value(original()).unwrap();
    let [mut ours, mut original] = [Backup::crd(), crd].map(|it| serde_json::to_value(it).unwrap());
    same_meaning(&mut ours);
    same_meaning(&mut original);
    // The items of `Conditions` have descriptions.
    let conditions =
        "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions/items";
    let described = ours.pointer(conditions).unwrap().clone();
    *original.pointer_mut(conditions).unwrap() = described;
    // The default of an object is written with the defaults of its fields.
    let limits =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/limits/default";
    let default = json!({"hosts": ["a", "b"], "rate": 7, "strict": true});
    *original.pointer_mut(limits).unwrap() = default;
    assert_eq!(ours, original);
}

/// Removes parts without a meaning: `anyOf` of a value that `x-kubernetes-int-or-string` describes,
/// and values that are those of an absent field.
fn same_meaning(value: &mut Value) {
    if let Value::Object(fields) = value {
        if fields.contains_key("x-kubernetes-int-or-string") {
            fields.remove("anyOf");
        }
        fields.retain(|name, value| name != "optionalOldSelf" || *value == json!(true));
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(same_meaning),
        Value::Array(items) => items.iter_mut().for_each(same_meaning),
        _ => {}
    }
}

#[test]
fn objects_keep_their_form() {
    let written = json!({
        "apiVersion": "types.opkit.dev/v1",
        "kind": "Backup",
        "metadata": {"name": "one"},
        "spec": {
            "any": [1, {"a": null}],
            "budget": "10",
            "clusterIPs": ["10.0.0.1"],
            "copies": 3,
            "destination": {"volume": {}},
            "free": {"kept": true},
            "limits": {"hosts": [], "rate": 1, "strict": false},
            "matrix": [[1, 2], []],
            "maxUnavailable": 2,
            "mode": "us-east",
            "power": {"type": "Battery", "battery": {"hours": 2}},
            "ratio": 0.75,
            "tool-name": "a",
            "type": "b",
            "until": "2026-01-02T03:04:05Z",
        },
    });
    let backup: Backup = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(backup.spec.mode, BackupMode::UsEast);
    assert!(matches!(
        backup.spec.destination,
        Some(BackupDestination::Volume(_))
    ));
    assert_eq!(serde_json::to_value(backup).unwrap(), written);

    let empty = json!({"metadata": {"name": "one"}});
    let backup: Backup = serde_json::from_value(empty).unwrap();
    assert_eq!(backup.spec.copies, 1);
}
