//! A kind of three versions with functions that lose values in every way.

use opkit_random::Random;
use serde_json::json;

use super::*;

/// Moves fields of the spec under other names, and drops the others. `items` maps items of the list
/// `tools` in the same way.
fn renamed(spec: &Value, names: &[(&str, &str)]) -> Value {
    let fields = names.iter().filter_map(|(from, to)| {
        let value = spec.get(from)?.clone();
        Some(((*to).to_owned(), value))
    });
    Value::Object(fields.collect())
}

/// Converts v1alpha1 to the hub: `size` becomes `replicas`, at most 100; `legacy` is dropped, also
/// in each of the tools; `paused` is set to its default.
fn alpha_to_hub(spec: &Value) -> Value {
    let mut hub = renamed(spec, &[("image", "image"), ("size", "replicas")]);
    if let Some(size) = hub.get("replicas").and_then(Value::as_i64) {
        hub["replicas"] = json!(size.min(100));
    }
    hub["paused"] = json!(false);
    for list in ["tools", "steps"] {
        convert_items(spec, &mut hub, list, &[("name", "name"), ("width", "size")]);
    }
    hub
}

fn alpha_from_hub(hub: &Value) -> Value {
    let mut spec = renamed(hub, &[("image", "image"), ("replicas", "size")]);
    for list in ["tools", "steps"] {
        convert_items(hub, &mut spec, list, &[("name", "name"), ("size", "width")]);
    }
    spec
}

/// Converts v1beta1 to the hub: it has no `image`, and `mode` is lost.
fn beta_to_hub(spec: &Value) -> Value {
    let names = ["replicas", "paused", "tools", "steps", "notes"].map(|name| (name, name));
    let mut hub = renamed(spec, &names);
    hub["image"] = json!("none");
    hub
}

fn beta_from_hub(hub: &Value) -> Value {
    let names = ["replicas", "paused", "tools", "steps", "notes"].map(|name| (name, name));
    renamed(hub, &names)
}

fn convert_items(from: &Value, to: &mut Value, list: &str, names: &[(&str, &str)]) {
    if let Some(items) = from.get(list).and_then(Value::as_array) {
        let items: Vec<Value> = items.iter().map(|item| renamed(item, names)).collect();
        to[list] = json!(items);
    }
}

fn functions(to_hub: Convert, from_hub: Convert) -> Functions {
    Functions {
        fields: &["spec"],
        to_hub,
        from_hub,
        notes: |_| None,
    }
}

fn there_and_back(
    fields: &Fields,
    there: fn(&Value) -> Value,
    back: fn(&Value) -> Value,
) -> Result<Conversion, serde_json::Error> {
    let spec = fields.get("spec").cloned().unwrap_or_default();
    // As a Rust type does, refuse what does not fit.
    for name in ["size", "replicas"] {
        if let Some(value) = spec.get(name) {
            serde_json::from_value::<i64>(value.clone())?;
        }
    }
    let there = there(&spec);
    let reversed = back(&there);
    let fields = |spec| Fields::from_iter([("spec".to_owned(), spec)]);
    Ok(Conversion {
        reversed: fields(reversed),
        fields: fields(there),
    })
}

fn robot() -> KindVersions {
    let list = |map: bool| {
        let mut list = json!({"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "size": {"type": "integer"}, "width": {"type": "integer"},
            "legacy": {"type": "boolean"}, "color": {"type": "string"},
        }}});
        if map {
            list["x-kubernetes-list-type"] = json!("map");
            list["x-kubernetes-list-map-keys"] = json!(["name"]);
        }
        list
    };
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "image": {"type": "string", "maxLength": 20},
        "size": {"type": "integer"}, "replicas": {"type": "integer"},
        "paused": {"type": "boolean"}, "legacy": {"type": "boolean"},
        "tools": list(true), "steps": list(false),
    }}}});
    let schema = Arc::new(Schema::parse(&schema).unwrap());
    KindVersions::new("example.com", "Robot", "v1", schema.clone())
        .spoke(
            "v1alpha1",
            schema.clone(),
            functions(
                |fields, _| there_and_back(fields, alpha_to_hub, alpha_from_hub),
                |fields, _| there_and_back(fields, alpha_from_hub, alpha_to_hub),
            ),
        )
        .spoke(
            "v1beta1",
            schema,
            functions(
                |fields, _| there_and_back(fields, beta_to_hub, beta_from_hub),
                |fields, _| there_and_back(fields, beta_from_hub, beta_to_hub),
            ),
        )
}

const VERSIONS: [&str; 3] = ["v1", "v1alpha1", "v1beta1"];

fn object(version: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Robot",
        "metadata": {"name": "one", "namespace": "default", "uid": "u"}, "spec": spec,
    })
}

#[track_caller]
fn convert(object: &Value, version: &str) -> Value {
    let converted = robot().convert(object.clone(), version).unwrap();
    assert_eq!(converted.lost, 0);
    converted.object
}

/// Returns random fields of all versions, known to the functions or not.
fn random_spec(random: &mut Random) -> Value {
    let mut spec = Map::new();
    let item = |random: &mut Random, name: usize| {
        let mut item = json!({"name": format!("n{name}")});
        for field in ["size", "width", "legacy", "color"] {
            if random.percent(50) {
                item[field] = match field {
                    "legacy" => json!(random.percent(50)),
                    "color" => json!("red"),
                    _ => json!(random.below(3)),
                };
            }
        }
        item
    };
    for name in [
        "image", "size", "replicas", "paused", "legacy", "tools", "steps", "notes",
    ] {
        if random.percent(40) {
            continue;
        }
        let value = match name {
            "image" => json!(random.one_of(&["none", "a", "b"]).unwrap()),
            "size" | "replicas" => json!(random.below(200)),
            "paused" | "legacy" => json!(random.percent(50)),
            "notes" => random
                .one_of(&[json!(null), json!({"a": [1]}), json!({})])
                .unwrap()
                .clone(),
            _ => {
                let count = usize::try_from(random.below(3)).unwrap();
                json!(
                    (0..count)
                        .map(|name| item(random, name))
                        .collect::<Vec<_>>()
                )
            }
        };
        spec.insert(name.to_owned(), value);
    }
    Value::Object(spec)
}

#[test]
fn a_round_trip_through_any_versions_is_the_identity() {
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let first = *random.one_of(&VERSIONS).unwrap();
        let original = object(first, &random_spec(&mut random));
        let mut at = original.clone();
        for _ in 0..random.below(6) {
            at = convert(&at, random.one_of(&VERSIONS).unwrap());
        }
        assert_eq!(convert(&at, first), original, "seed {seed}");
    }
}

#[test]
fn every_version_reads_the_same_whichever_versions_the_object_was_stored_as() {
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let first = *random.one_of(&VERSIONS).unwrap();
        let original = object(first, &random_spec(&mut random));
        let wanted = *random.one_of(&VERSIONS).unwrap();
        let direct = convert(&original, wanted);
        let mut at = original;
        for _ in 0..4 {
            at = convert(&at, random.one_of(&VERSIONS).unwrap());
        }
        assert_eq!(convert(&at, wanted), direct, "seed {seed}");
    }
}

#[test]
fn an_edit_in_another_version_wins() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let (first, second) = (
            *random.one_of(&VERSIONS).unwrap(),
            *random.one_of(&VERSIONS).unwrap(),
        );
        let mut at = convert(&object(first, &random_spec(&mut random)), second);
        let edited = random_spec(&mut random);
        at["spec"] = edited.clone();
        // What the edited version can express must come back from every other version.
        let through = *random.one_of(&VERSIONS).unwrap();
        let back = convert(&convert(&at, through), second);
        assert_eq!(back["spec"], edited, "seed {seed}");
    }
}

#[test]
fn what_a_version_cannot_express_is_kept_and_the_annotation_goes_again() {
    let old = object(
        "v1alpha1",
        &json!({"image": "a", "size": 120, "legacy": true}),
    );
    let hub = convert(&old, "v1");
    assert_eq!(
        hub["spec"],
        json!({"image": "a", "replicas": 100, "paused": false})
    );
    let kept = hub["metadata"]["annotations"][ANNOTATION].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(kept).unwrap(),
        json!({"v1alpha1": [
            {"path": ["spec", "legacy"], "value": true},
            {"path": ["spec", "size"], "value": 120, "seen": hash::hash(&json!(100))},
        ]})
    );
    let beta = convert(&hub, "v1beta1");
    assert_eq!(beta["spec"], json!({"replicas": 100, "paused": false}));
    assert_eq!(convert(&beta, "v1alpha1"), old);
}

#[test]
fn a_stale_value_never_replaces_a_newer_edit() {
    let old = object(
        "v1alpha1",
        &json!({"image": "a", "size": 120, "legacy": true}),
    );
    let mut hub = convert(&old, "v1");
    hub["spec"]["replicas"] = json!(7);
    let edited = convert(&hub, "v1alpha1");
    assert_eq!(
        edited["spec"],
        json!({"image": "a", "size": 7, "legacy": true})
    );
    assert_eq!(edited["metadata"]["annotations"], Value::Null);

    // The value of the hub was kept while the object was stored as v1beta1.
    let mut stored = convert(
        &object("v1", &json!({"image": "b", "paused": true})),
        "v1beta1",
    );
    stored["spec"]["paused"] = json!(false);
    let hub = convert(&stored, "v1");
    assert_eq!(hub["spec"], json!({"image": "b", "paused": false}));
}

#[test]
fn items_of_map_lists_are_restored_by_key_and_other_lists_as_a_whole() {
    let tools = json!([
        {"name": "arm", "width": 1, "legacy": true},
        {"name": "leg", "width": 2, "legacy": false},
    ]);
    let old = object("v1alpha1", &json!({"tools": tools, "steps": tools}));
    let mut hub = convert(&old, "v1");
    for list in ["tools", "steps"] {
        let items = hub["spec"][list].as_array_mut().unwrap();
        items.remove(0);
        items.insert(0, json!({"name": "eye"}));
        items[1]["size"] = json!(9);
    }
    let back = convert(&hub, "v1alpha1");
    assert_eq!(
        back["spec"]["tools"],
        json!([{"name": "eye"}, {"name": "leg", "width": 9, "legacy": false}])
    );
    assert_eq!(
        back["spec"]["steps"],
        json!([{"name": "eye"}, {"name": "leg", "width": 9}])
    );
}

#[test]
fn only_labels_and_annotations_of_the_metadata_can_change() {
    let mut old = object("v1alpha1", &json!({"legacy": true}));
    old["metadata"]["annotations"] = json!({"own": "1"});
    old["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
    old["status"] = json!({"any": 1});
    let mut hub = convert(&old, "v1");
    let kept = hub["metadata"]["annotations"]
        .as_object_mut()
        .unwrap()
        .remove(ANNOTATION);
    assert!(kept.is_some());
    assert_eq!(hub["metadata"], old["metadata"]);
    assert_eq!(hub["status"], old["status"]);
}

#[test]
fn a_tampered_annotation_changes_nothing_that_the_schema_forbids() {
    let entry = |value: Value| {
        let path = json!(["spec", "image"]);
        json!({"v1": [{"path": path, "value": value, "seen": hash::hash(&json!("none"))}]})
    };
    for (kept, image) in [
        (entry(json!("fine")), "fine"),
        (entry(json!("longer than the schema allows")), "none"),
        (entry(json!({"an": "object"})), "none"),
        (
            json!({"v1": [{"path": ["spec", "replicas"], "value": "three"}]}),
            "none",
        ),
        (
            json!({"v1": [{"path": []}, {"path": ["apiVersion"], "value": "v9"}]}),
            "none",
        ),
        (
            json!({"v1": [{"path": ["spec", {}, "image"], "value": 1}]}),
            "none",
        ),
    ] {
        let mut stored = object("v1beta1", &json!({"paused": true}));
        stored["metadata"]["annotations"] = json!({ANNOTATION: kept.to_string()});
        let hub = convert(&stored, "v1");
        assert_eq!(
            hub["spec"],
            json!({"image": image, "paused": true}),
            "{kept}"
        );
        assert_eq!(hub["apiVersion"], "example.com/v1");
    }
}

#[test]
fn values_of_a_version_that_is_not_known_are_kept() {
    let mut stored = object("v1beta1", &json!({"paused": true}));
    let kept = r#"{"v9":[{"path":["spec","new"],"value":1}]}"#;
    stored["metadata"]["annotations"] = json!({ANNOTATION: kept});
    let hub = convert(&stored, "v1");
    assert_eq!(hub["metadata"]["annotations"][ANNOTATION], kept);
}

#[test]
fn an_object_without_content_gets_the_new_version_only() {
    let bookmark = json!({
        "apiVersion": "example.com/v1beta1", "kind": "Robot",
        "metadata": {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}},
    });
    let mut expected = bookmark.clone();
    expected["apiVersion"] = json!("example.com/v1");
    assert_eq!(convert(&bookmark, "v1"), expected);
}

#[test]
fn an_object_that_does_not_fit_is_an_error_with_its_name() {
    let error = robot()
        .convert(object("v1alpha1", &json!({"size": "x"})), "v1")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "default/one does not fit the type of version v1alpha1"
    );
    assert!(robot().convert(json!([]), "v1").is_err());
}

/// Versions whose functions need the fields `image` and `replicas`, as a Rust type does.
fn strict() -> KindVersions {
    fn convert(fields: &Fields, names: [(&str, &str); 4]) -> Result<Conversion, serde_json::Error> {
        let spec = fields.get("spec").cloned().unwrap_or_default();
        for (name, _) in names.iter().take(2) {
            if spec.get(name).is_none() {
                let error = format!("missing field `{name}`");
                return Err(serde::de::Error::custom(error));
            }
        }
        let there = renamed(&spec, &names);
        let reversed = renamed(&there, &names.map(|(from, to)| (to, from)));
        let fields = |spec| Fields::from_iter([("spec".to_owned(), spec)]);
        Ok(Conversion {
            fields: fields(there),
            reversed: fields(reversed),
        })
    }
    const NAMES: [(&str, &str); 4] = [
        ("image", "image"),
        ("size", "replicas"),
        ("a", "b"),
        ("tools", "tools"),
    ];
    let schema = |size: &str, a: &str| {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "required": ["image", size],
            "properties": {
                "image": {"type": "string"}, size: {"type": "integer", "minimum": 5, "maximum": 9},
                a: {"type": "string"}, "legacy": {"type": "string"},
            },
        }}});
        Arc::new(Schema::parse(&schema).unwrap())
    };
    KindVersions::new("example.com", "Robot", "v1", schema("replicas", "b")).spoke(
        "v1alpha1",
        schema("size", "a"),
        functions(
            |fields, _| convert(fields, NAMES),
            |fields, _| convert(fields, NAMES.map(|(from, to)| (to, from))),
        ),
    )
}

#[test]
fn a_part_of_an_object_is_converted_without_the_fields_that_are_missing() {
    for (part, expected) in [
        (json!({}), json!(null)),
        (json!({"a": "x"}), json!({"b": "x"})),
        (json!({"size": 7}), json!({"replicas": 7})),
        (
            json!({"image": "i", "a": "x"}),
            json!({"image": "i", "b": "x"}),
        ),
    ] {
        let there = strict()
            .convert(object("v1alpha1", &part), "v1")
            .unwrap()
            .object;
        assert_eq!(
            there.get("spec").cloned().unwrap_or_default(),
            expected,
            "{part}"
        );
        assert_eq!(there["metadata"], object("v1", &json!({}))["metadata"]);
    }
    let part = object("v1alpha1", &json!({"a": "x", "legacy": "y"}));
    let there = strict().convert(part.clone(), "v1").unwrap().object;
    assert_eq!(strict().convert(there, "v1alpha1").unwrap().object, part);
    // A value of the wrong type is an error as before.
    let wrong = object("v1", &json!([]));
    assert!(strict().convert(wrong, "v1alpha1").is_err());
}
