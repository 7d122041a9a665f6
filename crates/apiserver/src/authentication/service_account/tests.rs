use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::store::{Expected, Store};

const UID: &str = "11111111-1111-4111-8111-111111111111";
const OTHER: &str = "22222222-2222-4222-8222-222222222222";

/// The keys are used by these tests only.
const RSA_PKCS1: &str = include_str!("fixtures/rsa1.pem");
const RSA_PKCS8: &str = include_str!("fixtures/rsa8.pem");
const RSA_PUBLIC: &str = include_str!("fixtures/rsa8.pub");
const P256_SEC1: &str = include_str!("fixtures/ec256.pem");
const P256_PUBLIC: &str = include_str!("fixtures/ec256.pub");
const P384_PKCS8: &str = include_str!("fixtures/ec384.pem");

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn tokens(options: &ServiceAccountOptions) -> ServiceAccountTokens {
    ServiceAccountTokens::new(options).unwrap()
}

fn with_key(pem: &str) -> ServiceAccountOptions {
    ServiceAccountOptions {
        signing_key: Some(pem.to_owned()),
        ..ServiceAccountOptions::default()
    }
}

/// Returns a store with the ServiceAccount `a/robot`, and a pod, a Secret and a node named `x`.
fn store() -> Store {
    let store = Store::new(10);
    let put = |resource: &str, namespace: Value, name: &str| {
        let metadata = json!({"name": name, "namespace": namespace, "uid": UID});
        let object = json!({"metadata": metadata});
        store.put(resource, Expected::Absent, object).unwrap();
    };
    put("serviceaccounts", json!("a"), "robot");
    put("pods", json!("a"), "x");
    put("secrets", json!("a"), "x");
    put("nodes", Value::Null, "x");
    store
}

fn reference(name: &str, uid: &str) -> Reference {
    Reference {
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}

fn claims() -> Claims {
    let seconds = now().as_second();
    Claims {
        aud: vec!["https://kubernetes.default.svc.cluster.local".to_owned()],
        exp: Some(seconds + 600),
        iat: Some(seconds),
        nbf: Some(seconds),
        iss: String::new(),
        jti: "one".to_owned(),
        sub: "system:serviceaccount:a:robot".to_owned(),
        kubernetes: KubernetesClaims {
            namespace: "a".to_owned(),
            serviceaccount: reference("robot", UID),
            ..KubernetesClaims::default()
        },
    }
}

/// Returns the user of a token after `later` seconds, `none` for a token of another issuer, or the
/// error.
fn authenticate(tokens: &ServiceAccountTokens, token: &str, later: i64) -> String {
    let store = store();
    let context = TokenContext {
        store: &store,
        now: now() + SignedDuration::from_secs(later),
    };
    match tokens.authenticate(&context, token, tokens.audiences()) {
        None => "none".to_owned(),
        Some(Ok((identity, _))) => identity.user,
        Some(Err(error)) => error.to_string(),
    }
}

#[test]
fn keys_of_every_format_sign_and_verify() {
    for pem in [RSA_PKCS1, RSA_PKCS8, P256_SEC1, P384_PKCS8] {
        let tokens = tokens(&with_key(pem));
        let token = tokens.sign(claims()).unwrap();
        let user = "system:serviceaccount:a:robot";
        assert_eq!(authenticate(&tokens, &token, 0), user, "{pem}");
        assert_eq!(authenticate(&tokens, &token, 0), user, "again, {pem}");
    }
}

#[test]
fn a_public_key_verifies_the_tokens_of_another_server() {
    for (private, public) in [(RSA_PKCS8, RSA_PUBLIC), (P256_SEC1, P256_PUBLIC)] {
        let token = tokens(&with_key(private)).sign(claims()).unwrap();
        let mut options = ServiceAccountOptions::default();
        let unknown = authenticate(&tokens(&options), &token, 0);
        assert_eq!(unknown, "invalid signature, no keys found");
        options.keys = vec![public.to_owned()];
        let user = authenticate(&tokens(&options), &token, 0);
        assert_eq!(user, "system:serviceaccount:a:robot");
    }
}

#[test]
fn a_text_without_a_key_is_refused() {
    for pem in ["", RSA_PUBLIC] {
        assert!(ServiceAccountTokens::new(&with_key(pem)).is_err(), "{pem}");
    }
    let options = ServiceAccountOptions {
        keys: vec!["text".to_owned()],
        ..ServiceAccountOptions::default()
    };
    assert!(ServiceAccountTokens::new(&options).is_err());
    let mut options = ServiceAccountOptions::default();
    options.issuers.clear();
    assert!(ServiceAccountTokens::new(&options).is_err());
}

/// Signs these claims, and checks the result of the verification after `later` seconds.
fn check(change: impl Fn(&mut Claims), later: i64, wanted: &str) {
    let tokens = tokens(&ServiceAccountOptions::default());
    let mut claims = claims();
    change(&mut claims);
    let token = tokens.sign(claims).unwrap();
    assert_eq!(authenticate(&tokens, &token, later), wanted);
}

#[test]
fn a_token_is_valid_for_its_time_and_a_minute() {
    let user = "system:serviceaccount:a:robot";
    check(|_| {}, 659, user);
    check(|_| {}, 661, "service account token has expired");
    check(|_| {}, -59, user);
    check(|_| {}, -61, "service account token is not valid yet");
    check(
        |claims| claims.nbf = None,
        -61,
        "service account token is issued in the future",
    );
}

#[test]
fn a_token_is_valid_for_its_audiences() {
    let own = "https://kubernetes.default.svc.cluster.local";
    check(
        |claims| claims.aud = vec!["x".to_owned()],
        0,
        &format!(r#"token audiences ["x"] is invalid for the target audiences ["{own}"]"#),
    );
    let user = "system:serviceaccount:a:robot";
    check(|claims| claims.aud.push("x".to_owned()), 0, user);
    check(|claims| claims.aud.clear(), 0, user);
}

#[test]
fn a_token_ends_with_the_objects_to_which_it_is_bound() {
    let user = "system:serviceaccount:a:robot";
    let gone = "service account token has been invalidated";
    check(
        |claims| claims.kubernetes.serviceaccount = reference("other", UID),
        0,
        "serviceaccounts \"other\" not found",
    );
    check(
        |claims| claims.kubernetes.serviceaccount = reference("robot", OTHER),
        0,
        &format!("service account UID ({UID}) does not match claim ({OTHER})"),
    );
    type Bind = fn(&mut KubernetesClaims, Reference);
    let binds: [(&str, Bind); 3] = [
        ("pod", |claims, to| claims.pod = Some(to)),
        ("secret", |claims, to| claims.secret = Some(to)),
        ("node", |claims, to| claims.node = Some(to)),
    ];
    for (noun, bind) in binds {
        check(|c| bind(&mut c.kubernetes, reference("x", UID)), 0, user);
        check(|c| bind(&mut c.kubernetes, reference("y", UID)), 0, gone);
        check(
            |c| bind(&mut c.kubernetes, reference("x", OTHER)),
            0,
            &format!(
                "{noun} UID ({UID}) does not match service account {noun} ref claim ({OTHER})"
            ),
        );
    }
}

#[test]
fn a_changed_token_is_refused() {
    let tokens = tokens(&with_key(RSA_PKCS8));
    let token = tokens.sign(claims()).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let [header, body, signature] = parts.as_slice() else {
        panic!("{token}");
    };
    let check = |token: String, wanted: &str| {
        assert_eq!(authenticate(&tokens, &token, 0), wanted, "{token}");
    };
    let forged = "go-jose/go-jose: error in cryptographic primitive";
    let encode = |value: Value| BASE64.encode(value.to_string());
    let kid = tokens.signing.public.id.clone();
    for alg in ["none", "None", "HS256", "ES256", ""] {
        let header = encode(json!({"alg": alg, "kid": kid}));
        check(format!("{header}.{body}.{signature}"), forged);
        check(format!("{header}.{body}."), forged);
    }
    let mut other = claims();
    other.kubernetes.serviceaccount.name = "admin".to_owned();
    other.iss = "https://kubernetes.default.svc.cluster.local".to_owned();
    let other = encode(serde_json::to_value(other).unwrap());
    check(format!("{header}.{other}.{signature}"), forged);
    let unknown = encode(json!({"alg": "RS256", "kid": "x"}));
    let no_key = "invalid signature, no keys found";
    check(format!("{unknown}.{body}.{signature}"), no_key);
    let foreign = encode(json!({"iss": "https://example.com"}));
    check(format!("{header}.{foreign}.{signature}"), "none");
    for text in ["", ".", "..", "a.b.c", "...."] {
        check(text.to_owned(), "none");
    }
    check(format!("{body}.{signature}"), "none");
    check("a".repeat(TOKEN_MAX + 1), "none");
}

#[test]
fn a_user_has_extra_values_for_pod_and_node() {
    let mut claims = claims();
    claims.kubernetes.pod = Some(reference("x", UID));
    claims.kubernetes.node = Some(reference("n", OTHER));
    let store = store();
    let context = TokenContext {
        store: &store,
        now: now(),
    };
    let tokens = tokens(&ServiceAccountOptions::default());
    let token = tokens.sign(claims).unwrap();
    let found = tokens.authenticate(&context, &token, tokens.audiences());
    let (identity, _) = found.unwrap().unwrap();
    assert_eq!(identity.uid, UID);
    let extra: Vec<String> = identity
        .extra
        .iter()
        .map(|(key, values)| format!("{}={}", key.rsplit('/').next().unwrap(), values.join(",")))
        .collect();
    let wanted = [
        "credential-id=JTI=one".to_owned(),
        "node-name=n".to_owned(),
        format!("node-uid={OTHER}"),
        "pod-name=x".to_owned(),
        format!("pod-uid={UID}"),
    ];
    assert_eq!(extra, wanted);
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:a",
        "system:authenticated",
    ];
    assert_eq!(identity.groups, groups);
}

#[test]
fn keys_are_published() {
    let mut options = with_key(RSA_PKCS8);
    options.keys = vec![P384_PKCS8.to_owned(), RSA_PUBLIC.to_owned()];
    let tokens = tokens(&options);
    let keys = tokens.key_set();
    let kinds: Vec<&str> = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["kty"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["RSA", "EC"], "{keys}");
    assert_eq!(keys["keys"][0]["e"], "AQAB");
    assert_eq!(keys["keys"][1]["crv"], "P-384");
    let document = tokens.openid_configuration("127.0.0.1:6443").unwrap();
    assert_eq!(
        document["jwks_uri"],
        "https://127.0.0.1:6443/openid/v1/jwks"
    );
    let algorithms = json!(["ES384", "RS256"]);
    assert_eq!(
        document["id_token_signing_alg_values_supported"],
        algorithms
    );
    options.issuers = vec!["http://insecure".to_owned()];
    let tokens = ServiceAccountTokens::new(&options).unwrap();
    assert!(tokens.openid_configuration("x").is_none());
}

/// The identifier of a key is that which Kubernetes computes: the digest of the public key in DER.
#[test]
fn a_key_is_named_by_its_digest() {
    for (private, public) in [(RSA_PKCS8, RSA_PUBLIC), (P256_SEC1, P256_PUBLIC)] {
        let base64: String = public
            .lines()
            .filter(|line| !line.starts_with('-'))
            .collect();
        let der = base64::prelude::BASE64_STANDARD.decode(base64).unwrap();
        let wanted = BASE64.encode(ring::digest::digest(&ring::digest::SHA256, &der));
        assert_eq!(tokens(&with_key(private)).signing.public.id, wanted);
    }
}

#[test]
fn a_key_can_be_in_a_certificate() {
    let authority = crate::authority::Authority::create("test-ca").unwrap();
    let server = authority.issue_for_server([127, 0, 0, 1].into()).unwrap();
    let of_certificate = keys::public_keys(&server.pem).unwrap();
    let of_key = keys::public_keys(&server.key_pem).unwrap();
    assert_eq!(of_certificate.len(), 1);
    assert_eq!(of_certificate[0].to_jwk(), of_key[0].to_jwk());
}
