use opkit_apimachinery::patch::merge_patch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    old: Option<Value>,
    new: Option<Value>,
    old_crd: Option<Value>,
    new_crd: Option<Value>,
    refused: Vec<String>,
}

fn table() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("../../data/upgrades.yaml")).unwrap()
}

fn template() -> Value {
    serde_json::from_str(include_str!("../../data/crd.json")).unwrap()
}

/// Returns the CRD of a case.
fn crd(schema: Option<&Value>, patch: Option<&Value>) -> Value {
    let mut crd = template();
    if let Some(schema) = schema {
        let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/value";
        *crd.pointer_mut(field).unwrap() = schema.clone();
    }
    if let Some(patch) = patch {
        merge_patch(&mut crd, patch);
    }
    crd
}

fn refused(old: &Value, new: &Value) -> Vec<String> {
    let upgrades = compare(std::slice::from_ref(old), std::slice::from_ref(new)).unwrap();
    let changes = upgrades.iter().flat_map(|upgrade| &upgrade.changes);
    let refused = changes.filter(|change| change.verdict != Verdict::Compatible);
    let mut refused: Vec<String> = refused
        .map(|change| {
            let version = change.version.as_deref().unwrap_or("-").replace(' ', "_");
            let field = Some(change.field.as_str()).filter(|field| !field.is_empty());
            format!("{version} {} {}", field.unwrap_or("-"), change.rule)
        })
        .collect();
    refused.sort();
    refused
}

#[test]
fn the_table_has_the_verdicts_of_olm() {
    let table = table();
    assert!(table.len() >= 60, "{} changes", table.len());
    for case in &table {
        let old = crd(case.old.as_ref(), case.old_crd.as_ref());
        let new = crd(case.new.as_ref(), case.new_crd.as_ref());
        assert_eq!(refused(&old, &new), case.refused, "{}", case.name);
    }
}

#[test]
fn names_in_the_table_are_unique() {
    let mut names: Vec<String> = table().into_iter().map(|case| case.name).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_crd_from_a_file_counts_as_stored_in_its_storage_version() {
    let mut old = template();
    old["status"].take();
    let mut new = template();
    new["spec"]["versions"][0]["name"] = json!("v2");
    assert_eq!(refused(&old, &new), ["- - storedVersionRemoval"]);
}

#[test]
fn documents_that_are_no_crds_are_refused() {
    let check = |document: Value, expected: &str| {
        let error = compare(&[document], &[]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        json!({"kind": "Service", "metadata": {"name": "web"}}),
        "the document Service web is not a CustomResourceDefinition of apiextensions.k8s.io/v1",
    );
    check(
        json!("text"),
        "a document is not a CustomResourceDefinition of apiextensions.k8s.io/v1",
    );
    let mut crd = template();
    crd["spec"]["versions"] = json!([]);
    check(crd, "the CRD things.example.com has no spec.versions");
    let mut crd = template();
    crd["metadata"]["name"] = json!("");
    check(crd, "the CRD things has no metadata.name");
}

#[test]
fn the_text_shows_each_change_once() {
    let old = crd(
        Some(
            &json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": 100},
            "gone": {"type": "object", "properties": {"inner": {"type": "string"}}}}}),
        ),
        None,
    );
    let new = crd(
        Some(
            &json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": 50,
            "format": "int32"}, "fresh": {"type": "object", "properties": {"inner": {"type": "string"}}}}}),
        ),
        None,
    );
    let text = render(&compare(&[old], &[new]).unwrap());
    let expected = "\
things.example.com
   ok      v1  .spec.value.fresh  field                 field added
   BREAKS  v1  .spec.value.gone   existingFieldRemoval  field removed
   BREAKS  v1  .spec.value.size   maximum               maximum decreased: 100 -> 50
   UNKNOWN v1  .spec.value.size   unhandled             no rule judges format: none -> \"int32\"
2 breaking changes, 1 that no rule judges (rules and names as in OLM v1)
";
    assert_eq!(text, expected);
}

#[test]
fn unchanged_and_new_crds_are_safe() {
    let upgrades = compare(&[template()], &[template()]).unwrap();
    assert!(upgrades[0].is_safe() && upgrades[0].changes.is_empty());
    assert!(render(&upgrades).contains("no changes"));
    let upgrades = compare(&[], &[template()]).unwrap();
    assert!(upgrades[0].is_safe());
    assert!(render(&upgrades).contains("new CRD"));
}

#[test]
fn objects_are_validated_with_defaults_and_rules() {
    let value = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "default": 2, "maximum": 5},
        "name": {"type": "string"},
    }, "x-kubernetes-validations": [
        {"rule": "!has(self.name) || size(self.name) < self.size", "message": "name too long"},
    ]});
    let check = ObjectCheck::new(&crd(Some(&value), None), "v1").unwrap();
    let mut objects = StoredObjects::new("v1");
    let object = |name: &str, value: Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"value": value}})
    };
    check.add(&object("default", json!({})), None, &mut objects);
    check.add(&object("large", json!({"size": 6})), None, &mut objects);
    check.add(&object("long", json!({"name": "abc"})), None, &mut objects);
    check.add(
        &object("unknown", json!({"colour": "red"})),
        None,
        &mut objects,
    );
    assert_eq!(objects.total, 4);
    let invalid: Vec<_> = (objects.invalid.iter())
        .map(|it| (it.name.as_str(), it.errors.join("; ")))
        .collect();
    let too_large = "spec.value.size: Invalid value: 6: spec.value.size in body should be less than or equal to 5";
    assert_eq!(invalid[0], ("large", too_large.to_owned()));
    assert_eq!(invalid[1].0, "long");
    assert!(invalid[1].1.contains("name too long"), "{}", invalid[1].1);
    assert_eq!(invalid.len(), 2);
    assert!(ObjectCheck::new(&template(), "v9").is_err());

    // The object was not valid before either.
    let mut objects = StoredObjects::new("v1");
    check.add(
        &object("large", json!({"size": 6})),
        Some(&check),
        &mut objects,
    );
    assert_eq!((objects.total, objects.invalid.len()), (1, 0));
}

#[test]
fn objects_are_read_in_a_version_that_both_crds_have() {
    let with = |versions: Value| json!({"spec": {"versions": versions}});
    let old = with(json!([
        {"name": "v1alpha1", "served": true, "storage": true},
        {"name": "v1beta1", "served": true, "storage": false},
        {"name": "v1", "served": false, "storage": false},
    ]));
    let version =
        |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage});
    let check = |new: Value, expected: Option<&str>| {
        assert_eq!(common_version(&old, &with(new)).as_deref(), expected);
    };
    check(
        json!([version("v1alpha1", true), version("v1beta1", false)]),
        Some("v1alpha1"),
    );
    check(
        json!([
            version("v1alpha1", false),
            version("v1beta1", false),
            version("v1", true)
        ]),
        Some("v1beta1"),
    );
    check(json!([version("v1", true)]), None);
}

#[test]
fn invalid_objects_make_an_upgrade_unsafe() {
    let mut upgrades = compare(&[template()], &[template()]).unwrap();
    let mut objects = StoredObjects::new("v1");
    objects.total = 14;
    objects.invalid = (0..12)
        .map(|number| InvalidObject {
            namespace: Some("default".to_owned()),
            name: format!("robot-{number}"),
            errors: vec!["spec.host: Required value".to_owned()],
        })
        .collect();
    upgrades[0].objects = Some(objects);
    assert!(!upgrades[0].is_safe());
    let text = render(&upgrades);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[2],
        "   of 14 stored objects, read as v1, 12 would no longer validate"
    );
    assert_eq!(lines[3], "      default/robot-0: spec.host: Required value");
    assert_eq!(lines[13], "      and 2 more");
}
