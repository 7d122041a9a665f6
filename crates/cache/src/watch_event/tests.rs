use super::*;

#[test]
fn lines_are_taken_apart() {
    let object = r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#;
    let bytes = object.as_bytes();
    let expected = [
        ("ADDED", WatchEvent::Added(bytes)),
        ("MODIFIED", WatchEvent::Modified(bytes)),
        ("DELETED", WatchEvent::Deleted(bytes)),
        ("BOOKMARK", WatchEvent::Bookmark(bytes)),
        ("ERROR", WatchEvent::Error(bytes)),
    ];
    for (kind, event) in expected {
        for line in [
            format!(r#"{{"type":"{kind}","object":{object}}}"#),
            format!(r#"{{ "type": "{kind}", "object": {object} }}"#),
            format!(r#"{{"object":{object},"type":"{kind}"}}"#),
        ] {
            assert_eq!(WatchEvent::from_json(line.as_bytes()).unwrap(), event);
        }
    }
}

#[test]
fn what_is_no_event_is_an_error() {
    for line in [
        "",
        "{}",
        r#"{"type":"UNHEARD-OF","object":{}}"#,
        "Bad Gateway",
    ] {
        assert!(WatchEvent::from_json(line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn a_bookmark_says_whether_it_ends_a_list() {
    let plain = br#"{"metadata":{"resourceVersion":"7","creationTimestamp":null}}"#;
    let end = br#"{"metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let bookmark = |version: &str, ends_list| Bookmark {
        resource_version: version.to_owned(),
        ends_list,
    };
    assert_eq!(Bookmark::from_json(plain).unwrap(), bookmark("7", false));
    assert_eq!(Bookmark::from_json(end).unwrap(), bookmark("8", true));
    assert!(Bookmark::from_json(b"{}").is_err());
}

#[test]
fn an_error_is_a_status() {
    let status = status_from_json(br#"{"kind":"Status","code":410,"reason":"Expired"}"#).unwrap();
    assert_eq!(status.code, 410);
}
