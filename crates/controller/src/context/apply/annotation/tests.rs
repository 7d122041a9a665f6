use super::*;

fn applied(mut content: Value) -> String {
    set_applied(&mut content, "shop.web");
    let annotations = &content["metadata"]["annotations"];
    annotations[APPLIED].as_str().unwrap().to_owned()
}

#[test]
fn the_annotation_contains_the_manager() {
    let applied = applied(json!({"metadata": {}}));
    assert!(is_applied_by(&applied, "shop.web"));
    assert!(!is_applied_by(&applied, "shop"));
    assert!(!is_applied_by(&applied, "shop.web2"));
    assert!(is_applied_by("a:b:0123", "a:b"));
    assert!(!is_applied_by("shop.web", "shop.web"));
}

#[test]
fn the_hash_depends_on_field_names_and_not_on_values() {
    let of = |data: Value| applied(json!({"metadata": {"annotations": {"a": "b"}}, "data": data}));
    let one = of(json!({"k": "v"}));
    assert_eq!(
        one,
        of(json!({"k": "another"})),
        "the hash contains no value"
    );
    assert_ne!(one, of(json!({"k": "v", "l": ""})));
    assert_ne!(one, of(json!({})));
    assert_ne!(one, of(json!({"k": {"v": 1}})));
    assert_ne!(of(json!([1, 2])), of(json!([1])));
}

#[test]
fn an_existing_annotation_does_not_change_the_hash() {
    let annotated = applied(json!({"metadata": {"annotations": {APPLIED: "x:1"}}}));
    assert_eq!(annotated, applied(json!({"metadata": {"annotations": {}}})));
}

#[test]
fn the_owner_annotation_contains_key_and_uid() {
    let meta = |annotations: Value| -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        serde_json::from_value(json!({
            "namespace": "d", "name": "one", "uid": "u", "annotations": annotations,
        }))
        .unwrap()
    };
    let kind = opkit_client::Kind::of::<k8s_openapi::api::core::v1::ConfigMap>();
    let owner = Owner::of(kind, &meta(json!({})));
    let annotation = owner_annotation(&owner);
    assert_eq!(annotation, "d/one:u");
    assert_eq!(parse_owner(&annotation), Some((("d", "one").into(), "u")));
    assert_eq!(parse_owner("a:b:u"), Some(("a:b".into(), "u")));
    for wrong in ["", "one", "one:", ":u", "d/:u"] {
        assert_eq!(parse_owner(wrong), None, "{wrong}");
    }
    let is_child = |applied: &str, annotation: &str| {
        let child = meta(json!({APPLIED: applied, OWNER: annotation}));
        has_annotations(&Meta::from(&child), &owner, "me")
    };
    assert!(is_child("me:1", "d/one:u"));
    assert!(!is_child("you:1", "d/one:u"));
    assert!(!is_child("me:1", "d/one:v"));
    assert!(!is_child("me:1", "d/two:u"));
}
