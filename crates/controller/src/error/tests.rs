use super::*;

#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Layer {
    what: &'static str,
    #[source]
    cause: Option<Box<Self>>,
}

#[test]
fn the_chain_is_one_line_without_repetition() {
    let inner = Layer {
        what: "connection\nrefused",
        cause: None,
    };
    let middle = Layer {
        what: "connect error: connection\nrefused",
        cause: Some(Box::new(inner)),
    };
    let outer = Layer {
        what: "cannot list robots",
        cause: Some(Box::new(middle)),
    };
    let error = Error::from(outer);
    assert_eq!(
        error.to_string(),
        "cannot list robots: connect error: connection refused"
    );
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn the_outermost_retry_has_precedence() {
    let after = Duration::from_secs(3);
    let check = |error: Error, expected| assert_eq!(error.retry(), expected);
    check(Error::msg("x"), Retry::Backoff);
    check(
        Error::retry_after(after, Error::msg("x")),
        Retry::After(after),
    );
    check(
        Error::terminal(Error::retry_after(after, Error::msg("x"))),
        Retry::AtNextChange,
    );
}

/// Returns an error response of the server in each form in which a reconcile can return it.
fn refused(code: u16, reason: &str) -> [Error; 4] {
    let status = || kube::core::Status::failure("no", reason).with_code(code);
    let kind = Box::new(Kind::of::<k8s_openapi::api::core::v1::ConfigMap>());
    let request = || {
        let call = opkit_client::Call {
            verb: opkit_client::Verb::Patch,
            kind: (*kind).clone(),
            subresource: None,
            namespace: None,
            name: None,
        };
        RequestError::Refused {
            call: Box::new(call),
            status: status().boxed(),
        }
    };
    let apply = ApplyError::Request {
        kind: kind.clone(),
        key: "a".into(),
        manager: "m".into(),
        cause: request(),
    };
    let boxed: Box<dyn StdError + Send + Sync> = Box::new(WriteError::from(request()));
    [
        Error::from(request()),
        Error::from(apply),
        Error::from_boxed(boxed),
        Error::from(kube::Error::Api(status().boxed())),
    ]
}

#[test]
fn conflict_and_not_found_are_recognized_in_every_error_type() {
    for error in refused(409, "Conflict") {
        assert!(error.is_conflict() && !error.is_not_found(), "{error}");
    }
    for error in refused(404, "NotFound") {
        assert!(error.is_not_found() && !error.is_conflict(), "{error}");
    }
    assert!(!Error::msg("x").is_conflict());
}
