use futures::FutureExt;
use http::HeaderValue;

use super::*;

fn authentication(anonymous: bool) -> Authentication {
    let options = AuthenticationOptions {
        tokens: StaticToken::parse_file("secret,alice,7,\"dev,ops\"\nother,bob,8").unwrap(),
        ..AuthenticationOptions::default()
    };
    Authentication::new(&options, anonymous, &Authority::create("test-ca").unwrap()).unwrap()
}

fn remote() -> Peer {
    Peer::Remote {
        certificate: PeerCertificate::Missing,
        front_proxy: Ok(false),
        admitted: Arc::default(),
    }
}

fn user_of(authentication: &Authentication, peer: &Peer, authorization: &str) -> Option<String> {
    let mut headers = HeaderMap::new();
    if !authorization.is_empty() {
        headers.insert(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
    }
    let store = Store::new(1);
    let context = TokenContext {
        store: &store,
        now: Timestamp::now(),
    };
    let authenticated = authentication.authenticate(&context, peer, &headers);
    let identity = authenticated.now_or_never()?.ok()?;
    Some(format!("{}/{:?}", identity.user, identity.groups))
}

#[test]
fn a_token_must_be_right() {
    let authentication = authentication(false);
    let check = |header: &str, wanted: Option<&str>| {
        let found = user_of(&authentication, &remote(), header);
        assert_eq!(found.as_deref(), wanted, "{header}");
    };
    let alice = r#"alice/["dev", "ops", "system:authenticated"]"#;
    check("Bearer secret", Some(alice));
    check(" bearer secret ", Some(alice));
    check("Bearer other", Some(r#"bob/["system:authenticated"]"#));
    for wrong in [
        "",
        "secret",
        "Bearer secre",
        "Bearer secrets",
        "Basic secret",
        "Bearer  secret",
        "Bearer",
    ] {
        check(wrong, None);
    }
}

#[test]
fn only_a_request_without_a_token_is_anonymous() {
    let authentication = authentication(true);
    let anonymous = r#"system:anonymous/["system:unauthenticated"]"#;
    for (header, wanted) in [
        ("", Some(anonymous)),
        ("Basic secret", Some(anonymous)),
        ("Bearer wrong", None),
    ] {
        let found = user_of(&authentication, &remote(), header);
        assert_eq!(found.as_deref(), wanted, "{header}");
    }
}

#[test]
fn a_certificate_names_user_and_group() {
    let authority = Authority::create("test-ca").unwrap();
    let given = Authority::create("test-ca").unwrap();
    let unknown = Authority::create("test-ca").unwrap();
    let options = AuthenticationOptions {
        client_ca: Some(given.pem().to_owned()),
        ..AuthenticationOptions::default()
    };
    let authentication = Authentication::new(&options, true, &authority).unwrap();
    for (signer, wanted) in [(&authority, true), (&given, true), (&unknown, false)] {
        let pair = signer.issue_for_client("jane", "dev").unwrap();
        let chain = [pair.certificate];
        let peer = authentication.peer(Some(chain.as_slice()), Arc::default());
        let found = user_of(&authentication, &peer, "");
        let jane = r#"jane/["dev", "system:authenticated"]"#;
        assert_eq!(found.as_deref(), wanted.then_some(jane));
    }
    let none = authentication.certificates().identify(None);
    assert!(matches!(none, PeerCertificate::Missing));
}

#[test]
fn a_client_ca_without_certificates_is_refused() {
    let options = AuthenticationOptions {
        client_ca: Some("text".to_owned()),
        ..AuthenticationOptions::default()
    };
    let refused = Authentication::new(&options, true, &Authority::create("test-ca").unwrap());
    assert!(matches!(refused, Err(StartError::Option { .. })));
}
