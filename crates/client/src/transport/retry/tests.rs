use std::io;

use super::*;

fn step(attempt: u32, method: Method, outcome: Outcome) -> Option<Duration> {
    RetryOptions::default().step(attempt, &method, &outcome)
}

#[test]
fn an_answer_is_repeated_only_where_it_says_when() {
    let check = |code: u16, after: Option<u64>, expected: Option<u64>| {
        for method in [Method::GET, Method::POST, Method::PATCH, Method::DELETE] {
            let code = StatusCode::from_u16(code).unwrap();
            let wait = step(1, method, Outcome::Answer(code, after));
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
    assert!(step(10, Method::GET, busy()).is_some());
    assert!(step(11, Method::GET, busy()).is_none());
}

#[test]
fn a_broken_connection_is_repeated_only_for_reads() {
    let reset = io::Error::from(ErrorKind::ConnectionReset);
    assert!(step(1, Method::GET, Outcome::Failure(fate(&reset))).is_some());
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert!(step(1, method, Outcome::Failure(fate(&reset))).is_none());
    }
    let other = io::Error::from(ErrorKind::PermissionDenied);
    assert!(step(1, Method::GET, Outcome::Failure(fate(&other))).is_none());
}

#[test]
fn what_was_not_sent_is_repeated_a_few_times() {
    let refused = io::Error::from(ErrorKind::ConnectionRefused);
    for attempt in 1..=CONNECTS_MAX {
        let wait = step(attempt, Method::POST, Outcome::Failure(fate(&refused))).unwrap();
        assert!(wait < Duration::from_secs(1), "{wait:?}");
    }
    assert!(
        step(
            CONNECTS_MAX + 1,
            Method::POST,
            Outcome::Failure(fate(&refused))
        )
        .is_none()
    );
}
