//! Mutated requests to all sorts of webhooks: each gets a response of its kind, and nothing panics.
//! `cargo xtask fuzz webhooks` runs this test for a longer time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opkit_apimachinery::conversion::{self, Conversion, Fields, Functions, KindVersions};
use opkit_apimachinery::schema::Schema;
use opkit_controller::Error;
use opkit_random::Random;

use super::*;
use crate::{
    AdmissionRequest, Authentication, AuthenticationWebhook, Authorization, AuthorizationWebhook,
    ConversionWebhook, WebhookContext,
};

/// Number of inputs without `OPKIT_FUZZ_SECONDS`.
const INPUTS: u32 = 2_000;

/// Texts that are likely to reach a special case.
const TEXTS: &[&str] = &[
    "",
    "\"",
    "{}",
    "[]",
    "null",
    "true",
    "-1",
    "1e999",
    "0.1",
    "\\u0000",
    "\\ud800",
    "~",
    "/",
    "~1",
    "CREATE",
    "UPDATE",
    "DELETE",
    "CONNECT",
    "admission.k8s.io/v1",
    "ConfigMap",
    "name",
    "deletionTimestamp",
    "metadata",
    "object",
    "oldObject",
    "{\"a\":",
    "\u{e9}",
    "\u{0}",
];

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn index(random: &mut Random, length: usize) -> usize {
    usize::try_from(random.below(length as u64 + 1)).unwrap()
}

/// Changes some bytes of a body.
fn mutate(random: &mut Random, body: &str) -> Vec<u8> {
    let mut bytes = body.as_bytes().to_vec();
    for _ in 0..random.below(4) {
        let at = index(random, bytes.len());
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 if random.percent(20) => bytes.truncate(at),
            3 => {
                // A part of the body once more, somewhere else.
                let end = at.saturating_add(index(random, 60)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                let to = index(random, bytes.len());
                bytes.splice(to..to, part);
            }
            _ => {
                let text = random.one_of(TEXTS).copied().unwrap_or_default();
                let end = at.saturating_add(index(random, 8)).min(bytes.len());
                bytes.splice(at..end, text.bytes());
            }
        }
    }
    bytes
}

fn router() -> WebhookRouter {
    let mut set = WebhookSet::default();
    let webhook = webhook()
        .validating_delete(|_| Admission::allowed())
        .defaulting_with(
            async |request: AdmissionRequest<ConfigMap>, _: WebhookContext| {
                let mut map = request.into_object();
                map.metadata.labels = None;
                Ok::<_, Error>(map)
            },
        );
    set.admission.push(webhook.into());
    set.authentication = Some(AuthenticationWebhook::new(
        async |spec: k8s_openapi::api::authentication::v1::TokenReviewSpec, _: WebhookContext| {
            Ok::<_, Error>(Authentication::authenticated(spec.token))
        },
    ));
    set.authorization = Some(AuthorizationWebhook::new(
        async |_: k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec,
               _: WebhookContext| Ok::<_, Error>(Authorization::allowed()),
    ));
    set.conversion = Some(ConversionWebhook::new(|body| {
        conversion::review(&[robot()], body).body
    }));
    WebhookRouter::with_services(set, Services::default())
}

/// Returns a kind of two versions, whose conversion moves a field.
fn robot() -> KindVersions {
    let functions = Functions {
        fields: &["spec"],
        to_hub: |fields, _| Ok(renamed(fields, "legs", "feet")),
        from_hub: |fields, _| Ok(renamed(fields, "feet", "legs")),
        notes: |_| None,
    };
    let schema = |field: &str| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        Arc::new(Schema::parse(&schema).unwrap())
    };
    let robot = KindVersions::new("example.com", "Robot", "v1", schema("feet"));
    robot.spoke("v1alpha1", schema("legs"), functions)
}

/// Returns the fields with another name for one field of the spec.
fn renamed(fields: &Fields, from: &str, to: &str) -> Conversion {
    let rename = |fields: &Fields, from: &str, to: &str| {
        let mut fields = fields.clone();
        if let Some(Value::Object(spec)) = fields.get_mut("spec")
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        fields
    };
    let converted = rename(fields, from, to);
    Conversion {
        reversed: rename(&converted, to, from),
        fields: converted,
    }
}

#[tokio::test]
async fn mutated_requests_get_a_response_of_their_kind() {
    let seed = variable("OPKIT_FUZZ_SEED").unwrap_or(7);
    let seconds = variable("OPKIT_FUZZ_SECONDS");
    let end = seconds.map(|seconds| SystemTime::now() + Duration::from_secs(seconds));
    let mut random = Random::new(seed);
    let router = router();
    let object = || {
        let mut object = config_map(json!({"a": "b", "c": ""}));
        object["metadata"]["labels"] = json!({"x/y": "z"});
        object["list"] = json!([{"name": "a", "v": 1}, {"name": "b", "v": [null, 1.5]}]);
        object
    };
    let admission = [
        review("CREATE", object(), json!(null)),
        review("UPDATE", object(), object()),
        review("DELETE", json!(null), object()),
    ];
    let token = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "metadata": {"uid": "a"}, "spec": {"token": "secret", "audiences": ["api"]},
    });
    let access = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let robot = |version: &str, spec: Value| {
        json!({
            "apiVersion": format!("example.com/{version}"), "kind": "Robot",
            "metadata": {"name": "a", "annotations": {"opkit.dev/conversion": "{\"v1\":{}}"}},
            "spec": spec,
        })
    };
    let objects = [
        robot("v1alpha1", json!({"legs": 2})),
        robot("v1", json!({"feet": 4, "x": [1]})),
    ];
    let versions = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {
            "uid": "u-1", "desiredAPIVersion": "example.com/v1", "objects": objects,
        },
    });
    let seeds: Vec<(&str, &str, String)> = admission
        .iter()
        .flat_map(|review| [(MUTATE, review), (VALIDATE, review)])
        .map(|(path, review)| (path, "AdmissionReview", review.to_string()))
        .chain([
            ("/convert", "ConversionReview", versions.to_string()),
            ("/authenticate", "TokenReview", token.to_string()),
            ("/authorize", "SubjectAccessReview", access.to_string()),
        ])
        .collect();
    let mut inputs = 0_u64;
    loop {
        let is_done = match end {
            Some(end) => inputs.is_multiple_of(256) && SystemTime::now() > end,
            None => inputs >= u64::from(INPUTS),
        };
        if is_done {
            break;
        }
        inputs += 1;
        let (path, kind, text) = &seeds[usize::try_from(random.below(seeds.len() as u64)).unwrap()];
        let body = mutate(&mut random, text);
        let response = send(&router, path, body.clone()).await;
        let shown = String::from_utf8_lossy(&body);
        let input = format!("seed {seed}, input {inputs}, {path}: {shown}");
        assert_eq!(response.status(), 200, "{input}");
        let review: Value = serde_json::from_slice(response.body()).expect(&input);
        assert_eq!(review["kind"], **kind, "{input}");
        if *kind == "AdmissionReview" {
            let (response, text) = (&review["response"], review.to_string());
            assert!(response["allowed"].is_boolean(), "{input}\n{text}");
            assert!(!text.contains("[recovered]"), "{input}\n{text}");
            if let Ok(sent) = serde_json::from_slice::<Value>(&body)
                && response.get("patch").is_some()
            {
                let mut object = sent["request"]["object"].clone();
                let patch = patch_of(&review);
                opkit_apimachinery::patch::json_patch(&mut object, &patch).expect(&input);
            }
        }
    }
    assert!(inputs >= u64::from(INPUTS) || end.is_some());
}
