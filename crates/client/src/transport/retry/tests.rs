use std::io;

use super::*;
use RetrySafety::{Idempotent, NotIdempotent, ReadOnly};

fn delay(attempt: u32, safety: RetrySafety, outcome: AttemptResult) -> Option<Duration> {
    RetryOptions::default().delay(attempt, safety, &outcome)
}

#[test]
fn a_response_is_retried_only_with_retry_after() {
    let check = |code: u16, after: Option<u64>, expected: Option<u64>| {
        for safety in [ReadOnly, Idempotent] {
            let code = StatusCode::from_u16(code).unwrap();
            let wait = delay(1, safety, AttemptResult::Response(code, after));
            assert_eq!(
                wait.map(|wait| wait.as_secs()),
                expected,
                "{code} {after:?}"
            );
        }
    };
    check(429, Some(1), Some(1));
    check(503, Some(5), Some(5));
    check(500, Some(0), Some(0));
    check(503, None, None);
    check(409, Some(1), None);
    check(200, Some(1), None);
    check(429, Some(3600), None);
    let busy = || AttemptResult::Response(StatusCode::TOO_MANY_REQUESTS, Some(1));
    assert!(delay(10, ReadOnly, busy()).is_some());
    assert!(delay(11, ReadOnly, busy()).is_none());
}

#[test]
fn a_write_that_may_have_taken_effect_is_not_retried() {
    let response = |code: StatusCode| AttemptResult::Response(code, Some(1));
    for code in [500, 503, 504] {
        let code = StatusCode::from_u16(code).unwrap();
        assert!(delay(1, NotIdempotent, response(code)).is_none(), "{code}");
        assert!(delay(1, Idempotent, response(code)).is_some(), "{code}");
    }
    // The server rejected the request without processing it.
    assert!(delay(1, NotIdempotent, response(StatusCode::TOO_MANY_REQUESTS)).is_some());
}

#[test]
fn the_request_decides_whether_a_retry_is_safe() {
    let check = |method: Method, path: &str, content_type: &str, body: &str, expected| {
        let request = Request::builder().method(&method).uri(path);
        let request = request.header(header::CONTENT_TYPE, content_type);
        let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
        let found = RetrySafety::of(&request);
        assert_eq!(found, expected, "{method} {path} {content_type} {body}");
    };
    let (pods, pod) = ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/b");
    let json = "application/json";
    check(Method::GET, pods, "", "", ReadOnly);
    check(Method::HEAD, pod, "", "", ReadOnly);
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    check(Method::POST, review, json, "{}", ReadOnly);
    let dry_run = format!("{pods}?dryRun=All");
    check(Method::POST, &dry_run, json, "{}", ReadOnly);
    check(Method::POST, pods, json, "{}", NotIdempotent);
    check(
        Method::POST,
        &format!("{pod}/eviction"),
        json,
        "{}",
        NotIdempotent,
    );
    check(Method::GET, &format!("{pod}/exec"), "", "", NotIdempotent);
    check(Method::PUT, pod, json, "{}", Idempotent);
    let patch = |content_type: &str, expected| {
        check(Method::PATCH, pod, content_type, "{}", expected);
    };
    patch("application/json-patch+json", NotIdempotent);
    patch("application/merge-patch+json", Idempotent);
    patch("application/merge-patch+json; charset=utf-8", Idempotent);
    patch("application/strategic-merge-patch+json", Idempotent);
    patch("application/apply-patch+yaml", Idempotent);
    patch("", NotIdempotent);
    patch("application/new-patch+json", NotIdempotent);
    let uid = r#"{"preconditions":{"uid":"u"}}"#;
    check(Method::DELETE, pod, json, uid, Idempotent);
    check(
        Method::DELETE,
        pod,
        json,
        r#"{"preconditions":{}}"#,
        NotIdempotent,
    );
    check(Method::DELETE, pod, json, "", NotIdempotent);
    check(
        Method::DELETE,
        &format!("{pods}?dryRun=All"),
        json,
        "{}",
        NotIdempotent,
    );
}

#[test]
fn after_a_broken_connection_only_reads_are_retried() {
    let reset = io::Error::from(ErrorKind::ConnectionReset);
    assert!(delay(1, ReadOnly, AttemptResult::Failure(classify(&reset))).is_some());
    for safety in [Idempotent, NotIdempotent] {
        assert!(delay(1, safety, AttemptResult::Failure(classify(&reset))).is_none());
    }
    let other = io::Error::from(ErrorKind::PermissionDenied);
    assert!(delay(1, ReadOnly, AttemptResult::Failure(classify(&other))).is_none());
}

#[test]
fn an_unsent_request_is_retried_a_few_times() {
    let refused = io::Error::from(ErrorKind::ConnectionRefused);
    for attempt in 1..=CONNECT_RETRIES_MAX {
        let wait = delay(
            attempt,
            NotIdempotent,
            AttemptResult::Failure(classify(&refused)),
        )
        .unwrap();
        assert!(wait < Duration::from_secs(1), "{wait:?}");
    }
    assert!(
        delay(
            CONNECT_RETRIES_MAX + 1,
            NotIdempotent,
            AttemptResult::Failure(classify(&refused))
        )
        .is_none()
    );
}
