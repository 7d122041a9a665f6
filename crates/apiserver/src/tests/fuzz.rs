//! Mutated credentials: a token that is not exactly a valid token is refused, and impersonation
//! headers never make a user another user without the right to it.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use opkit_random::Random;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::Api;
use crate::Service;

const REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// Number of inputs without `OPKIT_FUZZ_SECONDS`.
const INPUTS: u32 = 300;

/// Texts that are likely to reach a special case.
const TEXTS: &[&str] = &[
    "",
    ".",
    "..",
    "Bearer",
    "none",
    "{}",
    "null",
    "[]",
    "system:masters",
    "system:anonymous",
    "system:node:n",
    "system:serviceaccount:a:b",
    "system:serviceaccount::",
    "%2F",
    "%zz",
    "\u{e9}",
    "-1",
    "1e999",
    "\"",
    "AAAA",
];

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn one_of(random: &mut Random, texts: &[&str]) -> String {
    random.one_of(texts).copied().unwrap_or_default().to_owned()
}

/// Changes some bytes of a text.
fn mutate(random: &mut Random, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = usize::try_from(random.below(bytes.len() as u64 + 1)).unwrap();
        match random.below(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(7),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(
                at,
                b"AZaz09-_.=+/ "[usize::try_from(random.below(13)).unwrap()],
            ),
            3 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, one_of(random, TEXTS).into_bytes())),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Changes a JSON value somewhere.
fn mutate_json(random: &mut Random, value: &mut Value) {
    match value {
        Value::Object(fields) if !fields.is_empty() && random.percent(85) => {
            let index = usize::try_from(random.below(fields.len() as u64)).unwrap();
            let key = fields.keys().nth(index).unwrap().clone();
            match random.percent(10) {
                true => drop(fields.remove(&key)),
                false => mutate_json(random, &mut fields[&key]),
            }
        }
        Value::Array(items) if !items.is_empty() && random.percent(85) => {
            let index = usize::try_from(random.below(items.len() as u64)).unwrap();
            mutate_json(random, &mut items[index]);
        }
        Value::String(text) if random.percent(60) => *text = mutate(random, text),
        Value::Number(number) if random.percent(60) => {
            let changed = number
                .as_i64()
                .unwrap_or_default()
                .wrapping_add(random.bits() as i64 >> random.below(60));
            *value = json!(changed);
        }
        value => {
            *value = match random.below(6) {
                0 => Value::Null,
                1 => json!([]),
                2 => json!({}),
                3 => json!(random.unit() * 1e12),
                4 => json!(random.percent(50)),
                _ => json!(one_of(random, TEXTS)),
            };
        }
    }
}

/// Changes a token, as text or inside of one of its parts.
fn mutate_token(random: &mut Random, token: &str, other: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let (3, true) = (parts.len(), random.percent(70)) else {
        return mutate(random, token);
    };
    let mut parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    let index = usize::try_from(random.below(3)).unwrap();
    match random.below(3) {
        // A part of another token.
        0 => parts[index] = other.split('.').nth(index).unwrap_or_default().to_owned(),
        1 => {
            let part = &mut parts[usize::from(random.percent(50))];
            let decoded = BASE64.decode(&*part).unwrap_or_default();
            let mut value: Value = serde_json::from_slice(&decoded).unwrap_or_default();
            mutate_json(random, &mut value);
            *part = BASE64.encode(value.to_string());
        }
        _ => parts[index] = mutate(random, &parts[index]),
    }
    if random.percent(10) {
        let header = one_of(
            random,
            &[
                r#"{"alg":"none"}"#,
                r#"{"alg":"HS256"}"#,
                r#"{"alg":"RS256"}"#,
            ],
        );
        parts[0] = BASE64.encode(header);
    }
    parts.join(".")
}

/// Returns random impersonation headers.
fn impersonation(random: &mut Random) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for _ in 0..=random.below(4) {
        let name = match random.below(5) {
            0 | 1 => "impersonate-user".to_owned(),
            2 => "impersonate-group".to_owned(),
            3 => "impersonate-uid".to_owned(),
            _ => {
                let key = one_of(random, &["scope", "example.com%2fa", "a%zz", "%41", "b"]);
                format!("impersonate-extra-{key}")
            }
        };
        let text = one_of(random, TEXTS);
        let text = if random.percent(50) {
            text
        } else {
            mutate(random, &text)
        };
        let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&text))
        else {
            continue;
        };
        headers.append(name, value);
    }
    headers
}

async fn send(service: Service, headers: HeaderMap) -> (u16, Value) {
    let mut request = Request::new(Full::new(bytes::Bytes::from_static(b"{}")));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = REVIEW.parse().unwrap();
    *request.headers_mut() = headers;
    let response = service.oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn credentials_are_never_confused() {
    let seed = variable("OPKIT_FUZZ_SEED").unwrap_or(14);
    let duration = variable("OPKIT_FUZZ_SECONDS").map(Duration::from_secs);
    let began = SystemTime::now();
    let api = Api::start();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    for name in ["robot", "other"] {
        api.post(accounts, json!({"metadata": {"name": name}}))
            .await;
    }
    let token = |name: &str| {
        api.server
            .service_account_token("default", name, None)
            .unwrap()
    };
    let valid = [
        token("robot"),
        token("other"),
        api.server.token_for("alice", &[]).unwrap(),
    ];
    let mut random = Random::new(seed);
    let mut inputs = 0;
    loop {
        inputs += 1;
        let of = random.one_of(&valid).unwrap();
        let given = mutate_token(&mut random, of, &valid[1]);
        if let Ok(value) = HeaderValue::from_str(&format!("Bearer {given}")) {
            let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, value)]);
            let (code, body) = send(api.server.remote_service(), headers).await;
            // The part up to a space is the token; an empty token is no token at all.
            let read = given.split(' ').next().unwrap_or_default();
            let is_valid = valid.iter().any(|valid| valid == read);
            let wanted = if is_valid { 201 } else { 401 };
            let is_anonymous = read.is_empty() && code == 403;
            assert!(
                code == wanted || is_anonymous,
                "seed {seed}: {given:?} gets {code}: {body}"
            );
        }
        let headers = impersonation(&mut random);
        let (code, body) = send(api.server.service_as("alice", &[]), headers.clone()).await;
        let user = body["status"]["userInfo"]["username"].as_str();
        let refused = matches!(code, 400 | 403);
        assert!(
            refused || user == Some("alice"),
            "seed {seed}: {headers:?} gets {code}: {body}"
        );
        let (code, body) = send(api.server.service(), headers.clone()).await;
        assert!(
            matches!(code, 201 | 400 | 403),
            "seed {seed}: {headers:?} gets {code}: {body}"
        );
        let is_over = match duration {
            Some(duration) => began.elapsed().unwrap_or_default() >= duration,
            None => inputs >= INPUTS,
        };
        if is_over {
            break;
        }
    }
    assert!(inputs >= INPUTS, "only {inputs} inputs");
}
