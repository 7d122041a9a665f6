use std::io;

use super::*;

use Repetition::{Acts, Reads, Same};

fn step(attempt: u32, repetition: Repetition, outcome: Outcome) -> Option<Duration> {
    RetryOptions::default().step(attempt, repetition, &outcome)
}

#[test]
fn a_response_is_repeated_only_where_it_says_when() {
    let check = |code: u16, after: Option<u64>, expected: Option<u64>| {
        for repetition in [Reads, Same] {
            let code = StatusCode::from_u16(code).unwrap();
            let wait = step(1, repetition, Outcome::Answer(code, after));
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
    let busy = || Outcome::Answer(StatusCode::TOO_MANY_REQUESTS, Some(1));
    assert!(step(10, Reads, busy()).is_some());
    assert!(step(11, Reads, busy()).is_none());
}

#[test]
fn what_may_have_landed_is_not_done_twice() {
    let answer = |code: StatusCode| Outcome::Answer(code, Some(1));
    for code in [500, 503, 504] {
        let code = StatusCode::from_u16(code).unwrap();
        assert!(step(1, Acts, answer(code)).is_none(), "{code}");
        assert!(step(1, Same, answer(code)).is_some(), "{code}");
    }
    // The server turned it away.
    assert!(step(1, Acts, answer(StatusCode::TOO_MANY_REQUESTS)).is_some());
}

#[test]
fn the_request_decides_what_a_repetition_does() {
    let check = |method: Method, path: &str, content_type: &str, body: &str, expected| {
        let request = Request::builder().method(&method).uri(path);
        let request = request.header(header::CONTENT_TYPE, content_type);
        let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
        let found = Repetition::of(&request);
        assert_eq!(found, expected, "{method} {path} {content_type} {body}");
    };
    let (pods, pod) = ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/b");
    let json = "application/json";
    check(Method::GET, pods, "", "", Reads);
    check(Method::HEAD, pod, "", "", Reads);
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    check(Method::POST, review, json, "{}", Reads);
    let dry_run = format!("{pods}?dryRun=All");
    check(Method::POST, &dry_run, json, "{}", Reads);
    check(Method::POST, pods, json, "{}", Acts);
    check(Method::POST, &format!("{pod}/eviction"), json, "{}", Acts);
    check(Method::GET, &format!("{pod}/exec"), "", "", Acts);
    check(Method::PUT, pod, json, "{}", Same);
    let patch = |content_type: &str, expected| {
        check(Method::PATCH, pod, content_type, "{}", expected);
    };
    patch("application/json-patch+json", Acts);
    patch("application/merge-patch+json", Same);
    patch("application/merge-patch+json; charset=utf-8", Same);
    patch("application/strategic-merge-patch+json", Same);
    patch("application/apply-patch+yaml", Same);
    patch("", Acts);
    patch("application/new-patch+json", Acts);
    let uid = r#"{"preconditions":{"uid":"u"}}"#;
    check(Method::DELETE, pod, json, uid, Same);
    check(Method::DELETE, pod, json, r#"{"preconditions":{}}"#, Acts);
    check(Method::DELETE, pod, json, "", Acts);
    check(
        Method::DELETE,
        &format!("{pods}?dryRun=All"),
        json,
        "{}",
        Acts,
    );
}

#[test]
fn a_broken_connection_is_repeated_only_for_reads() {
    let reset = io::Error::from(ErrorKind::ConnectionReset);
    assert!(step(1, Reads, Outcome::Failure(fate(&reset))).is_some());
    for repetition in [Same, Acts] {
        assert!(step(1, repetition, Outcome::Failure(fate(&reset))).is_none());
    }
    let other = io::Error::from(ErrorKind::PermissionDenied);
    assert!(step(1, Reads, Outcome::Failure(fate(&other))).is_none());
}

#[test]
fn what_was_not_sent_is_repeated_a_few_times() {
    let refused = io::Error::from(ErrorKind::ConnectionRefused);
    for attempt in 1..=CONNECTS_MAX {
        let wait = step(attempt, Acts, Outcome::Failure(fate(&refused))).unwrap();
        assert!(wait < Duration::from_secs(1), "{wait:?}");
    }
    assert!(step(CONNECTS_MAX + 1, Acts, Outcome::Failure(fate(&refused))).is_none());
}
