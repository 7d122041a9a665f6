use http::Method;
use serde_json::json;

use opkit_apimachinery::redact::{LAST_APPLIED_CONFIGURATION as LAST_APPLIED, REDACTED};

use super::*;

fn check(method: Method, path: &str, body: Value, expected: Option<Value>) {
    let info = RequestInfo::parse(&method, &path.parse().unwrap());
    let bytes = serde_json::to_vec(&body).unwrap();
    let length = bytes.len() as u64;
    let recorded = recorded(&info, &bytes, length, 1 << 20);
    assert_eq!(recorded.redacted, expected.is_some());
    let kept: Value = serde_json::from_slice(&recorded.bytes).unwrap();
    assert_eq!(kept, expected.unwrap_or(body));
    assert_eq!(recorded.length, length);
}

#[test]
fn secrets_are_redacted_and_their_keys_are_kept() {
    check(
        Method::PUT,
        "/api/v1/namespaces/a/secrets/b",
        json!({"kind": "Secret", "metadata": {"annotations": {LAST_APPLIED: "{\"data\":1}", "x": "y"}},
            "data": {"password": "aHVzaA=="}, "stringData": {"user": "me"}}),
        Some(
            json!({"kind": "Secret", "metadata": {"annotations": {LAST_APPLIED: REDACTED, "x": "y"}},
            "data": {"password": REDACTED}, "stringData": {"user": REDACTED}}),
        ),
    );
    check(
        Method::PATCH,
        "/api/v1/namespaces/a/secrets/b",
        json!([{"op": "add", "path": "/data/a", "value": "hush"}]),
        Some(json!([{"op": "add", "path": "/data/a", "value": REDACTED}])),
    );
    check(
        Method::GET,
        "/api/v1/secrets",
        json!({"kind": "SecretList", "items": [{"data": {"a": "b"}}]}),
        Some(json!({"kind": "SecretList", "items": [{"data": {"a": REDACTED}}]})),
    );
    check(
        Method::POST,
        "/api/v1/namespaces/a/serviceaccounts/b/token",
        json!({"kind": "TokenRequest", "status": {"token": "ey"}}),
        Some(json!({"kind": "TokenRequest", "status": {"token": REDACTED}})),
    );
    check(
        Method::PUT,
        "/api/v1/namespaces/a/configmaps/b",
        json!({"kind": "ConfigMap", "data": {"a": "b"}}),
        None,
    );
}

#[test]
fn last_applied_configuration_is_redacted_in_every_kind() {
    let map = |last: &str| {
        json!({"kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"annotations": {LAST_APPLIED: last}}})
    };
    let path = "/api/v1/namespaces/a/configmaps/b";
    check(Method::PUT, path, map("{}"), Some(map(REDACTED)));
}

#[test]
fn a_secret_that_cannot_be_parsed_is_dropped() {
    let info = RequestInfo::parse(
        &Method::PUT,
        &"/api/v1/namespaces/a/secrets/b".parse().unwrap(),
    );
    let whole = br#"{"data":{"a":"hush"}}"#;
    for (body, max) in [(&b"k8s\0hush"[..], 100), (&whole[..], 19)] {
        let recorded = recorded(&info, body, body.len() as u64, max);
        assert!(
            recorded.redacted && recorded.bytes.is_empty(),
            "{recorded:?}"
        );
    }
}
