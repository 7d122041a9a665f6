use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

fn read(line: &str) -> Step {
    read_line(&Codec::of::<ConfigMap>(), line.as_bytes()).unwrap()
}

#[test]
fn lines_are_read() {
    let meta = r#""metadata":{"namespace":"d","name":"a","resourceVersion":"7"}"#;
    let line = |kind: &str| format!(r#"{{"type":"{kind}","object":{{{meta}}}}}"#);
    assert!(matches!(
        read(&line("MODIFIED")),
        Step::Upsert { key, entry: Entry::Object(_), resource_version: Some(v) }
            if key == ObjectKey::from(("d", "a")) && v == "7"
    ));
    assert!(matches!(
        read(&line("DELETED")),
        Step::Remove { key, resource_version: Some(v), .. }
            if key == ObjectKey::from(("d", "a")) && v == "7"
    ));
    assert!(matches!(
        read(&line("BOOKMARK")),
        Step::Bookmark { resource_version: Some(v) } if v == "7"
    ));
}

#[test]
fn an_error_line_is_a_status() {
    let line = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
    assert!(matches!(read(line), Step::Failed(status) if status.code == 410));
}

#[test]
fn an_object_that_does_not_fit_is_an_error_of_that_key() {
    let line = r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"data":5}}"#;
    let Step::Upsert {
        key,
        entry: Entry::Unreadable { error, .. },
        ..
    } = read(line)
    else {
        panic!("read");
    };
    assert_eq!(key, "a".into());
    assert_eq!(
        error.to_string(),
        "cannot read ConfigMap a as the Rust type of its kind"
    );
}

#[test]
fn a_null_list_is_empty() {
    let page: Page<'_> = serde_json::from_str(r#"{"metadata":{},"items":null}"#).unwrap();
    assert!(page.items.is_none());
}
