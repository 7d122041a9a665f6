use super::*;

fn mark(mut content: Value) -> String {
    add_mark(&mut content, "shop.web");
    let annotations = &content["metadata"]["annotations"];
    annotations[APPLIED].as_str().unwrap().to_owned()
}

#[test]
fn it_names_the_manager() {
    let mark = mark(json!({"metadata": {}}));
    assert!(is_of(&mark, "shop.web"));
    assert!(!is_of(&mark, "shop"));
    assert!(!is_of(&mark, "shop.web2"));
    assert!(is_of("a:b:0123", "a:b"));
    assert!(!is_of("shop.web", "shop.web"));
}

#[test]
fn it_follows_the_fields() {
    let of = |data: Value| mark(json!({"metadata": {"annotations": {"a": "b"}}, "data": data}));
    let one = of(json!({"k": "v"}));
    assert_eq!(one, of(json!({"k": "another"})), "no value goes into it");
    assert_ne!(one, of(json!({"k": "v", "l": ""})));
    assert_ne!(one, of(json!({})));
    assert_ne!(one, of(json!({"k": {"v": 1}})));
    assert_ne!(of(json!([1, 2])), of(json!([1])));
}

#[test]
fn one_that_is_there_already_does_not_count() {
    let marked = mark(json!({"metadata": {"annotations": {APPLIED: "x:1"}}}));
    assert_eq!(marked, mark(json!({"metadata": {"annotations": {}}})));
}

#[test]
fn the_mark_of_an_owner_names_it() {
    let meta = |annotations: Value| -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        serde_json::from_value(json!({
            "namespace": "d", "name": "one", "uid": "u", "annotations": annotations,
        }))
        .unwrap()
    };
    let kind = opkit_client::Kind::of::<k8s_openapi::api::core::v1::ConfigMap>();
    let owner = Owner::of(kind, &meta(json!({})));
    let mark = owner_mark(&owner);
    assert_eq!(mark, "d/one:u");
    assert_eq!(read_owner_mark(&mark), Some((("d", "one").into(), "u")));
    assert_eq!(read_owner_mark("a:b:u"), Some(("a:b".into(), "u")));
    for wrong in ["", "one", "one:", ":u", "d/:u"] {
        assert_eq!(read_owner_mark(wrong), None, "{wrong}");
    }
    let marked = |applied: &str, owner_mark: &str| {
        let child = meta(json!({APPLIED: applied, OWNER: owner_mark}));
        is_marked(&Meta::from(&child), &owner, "me")
    };
    assert!(marked("me:1", "d/one:u"));
    assert!(!marked("you:1", "d/one:u"));
    assert!(!marked("me:1", "d/one:v"));
    assert!(!marked("me:1", "d/two:u"));
}
