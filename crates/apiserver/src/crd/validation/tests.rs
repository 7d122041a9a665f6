use serde_json::{Value, json};

use super::{stored_version_errors, validate, validate_update};

/// Returns a valid CRD with this schema of `spec`.
fn crd(spec: Value) -> Value {
    json!({
        "metadata": {"name": "things.g.dev"},
        "spec": {
            "group": "g.dev", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
            "conversion": {"strategy": "None"},
        },
        "status": {"storedVersions": ["v1"], "acceptedNames": {"plural": "", "kind": ""}},
    })
}

#[track_caller]
fn check(crd: &Value, expected: &[&str]) {
    let errors: Vec<String> = validate(crd).iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected);
}

#[test]
fn a_plain_crd_is_valid() {
    check(&crd(json!({"type": "object"})), &[]);
    let pattern = json!([{"type": "integer"}, {"type": "string"}]);
    check(
        &crd(json!({"x-kubernetes-int-or-string": true, "anyOf": pattern})),
        &[],
    );
    check(
        &crd(
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": pattern}, {"minLength": 1}]}),
        ),
        &[],
    );
}

#[test]
fn all_errors_of_a_schema_are_reported() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "array"},
            "b": {},
            "c": {"type": "string", "allOf": [{"type": "string", "description": "x"}]},
        },
    });
    let at = "spec.validation.openAPIV3Schema.properties[spec].properties";
    check(
        &crd(schema),
        &[
            &format!("{at}[a].items: Required value: must be specified"),
            &format!("{at}[b].type: Required value: must not be empty for specified object fields"),
            &format!("{at}[c].allOf[0].description: Forbidden: must be empty to be structural"),
            &format!("{at}[c].allOf[0].type: Forbidden: must be empty to be structural"),
        ],
    );
}

#[test]
fn defaults_must_be_valid_and_pruned() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"x": {"type": "integer"}}, "default": {"y": 1}},
            "b": {"type": "integer", "default": 5, "maximum": 3},
            "c": {"type": "integer", "default": 5, "x-kubernetes-validations": [
                {"rule": "self < 3", "message": "too big"},
            ]},
        },
    });
    let at = "spec.validation.openAPIV3Schema.properties[spec].properties";
    check(
        &crd(schema),
        &[
            &format!("{at}[a].default: Invalid value: {{\"y\":1}}: must not have unknown fields"),
            &format!(
                "{at}[b].default: Invalid value: 5:  in body should be less than or equal to 3"
            ),
            &format!("{at}[c].default: Invalid value: 5: too big"),
        ],
    );
}

#[test]
fn fields_that_differ_between_versions_are_reported_in_their_version() {
    let mut crd = crd(json!({"type": "object"}));
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "A", "type": "x", "jsonPath": "a"}]);
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    let versions = crd["spec"]["versions"].as_array_mut().unwrap();
    versions.push(second);
    let errors = |path: &str| {
        [
            format!(
                "{path}[0].type: Invalid value: \"x\": must be one of \
                 boolean,date,integer,number,string"
            ),
            format!(
                "{path}[0].JSONPath: Invalid value: \"a\": must be a simple json path starting \
                 with ."
            ),
        ]
    };
    let shared = errors("spec.additionalPrinterColumns");
    check(&crd, &shared.each_ref().map(String::as_str));
    crd["spec"]["versions"][1]["additionalPrinterColumns"] = json!([]);
    let own = errors("spec.versions[0].additionalPrinterColumns");
    check(&crd, &own.each_ref().map(String::as_str));
}

#[test]
fn an_update_need_not_correct_what_is_stored() {
    let set = json!({
        "type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object", "properties": {"a": {"type": "string"}}},
    });
    let old = crd(set.clone());
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let at = "spec.validation.openAPIV3Schema.properties[spec].items.x-kubernetes-map-type";
    check(&old, &[&format!("{at}: Invalid value: null: {detail}")]);
    let mut new = crd(set);
    new["spec"]["names"]["shortNames"] = json!(["th"]);
    assert_eq!(validate_update(&old, &new), []);
}

#[test]
fn the_group_is_immutable_and_the_kind_too_once_established() {
    let mut old = crd(json!({"type": "object"}));
    let mut new = old.clone();
    new["spec"]["names"]["kind"] = json!("Other");
    new["spec"]["scope"] = json!("Cluster");
    assert_eq!(validate_update(&old, &new), []);
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    new["spec"]["group"] = json!("h.dev");
    let errors = validate_update(&old, &new);
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["spec.scope", "spec.names.kind", "spec.group"]);
}

#[test]
fn stored_versions_must_stay() {
    let mut crd = crd(json!({"type": "object"}));
    crd["status"]["storedVersions"] = json!(["v0", "v1"]);
    let errors = stored_version_errors(&crd);
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].to_string().starts_with(
            "status.storedVersions[0]: Invalid value: \"v0\": missing from spec.versions; v0 was"
        ),
        "{}",
        errors[0]
    );
}
