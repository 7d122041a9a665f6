//! Admission webhooks and certificates.

use super::*;
use Severity::{Fail, Warning};

fn webhook(facts: &mut Facts) -> &mut Value {
    &mut live(facts, "ValidatingWebhookConfiguration")["webhooks"][0]
}

/// Removes the conversion, so that a problem is found once.
fn without_conversion(facts: &mut Facts) {
    live(facts, "CustomResourceDefinition")["spec"]["conversion"] = json!({"strategy": "None"});
}

#[test]
fn a_missing_configuration_or_webhook_is_a_failure() {
    let words = ["op-validating does not exist: objects are not validated"];
    one(
        |facts| remove(facts, "ValidatingWebhookConfiguration"),
        Fail,
        "webhook",
        &words,
    );
    one(
        |facts| webhook(facts)["name"] = json!("old.example.com"),
        Fail,
        "webhook",
        &["op-validating has no webhook v.example.com"],
    );
}

#[test]
fn a_webhook_without_service_port_or_endpoint_is_a_failure() {
    let effect = "every write of robots is refused (failurePolicy Fail)";
    let check = |change: fn(&mut Facts), problem: &str| {
        one(
            |facts| {
                without_conversion(facts);
                change(facts);
            },
            Fail,
            "webhook",
            &[problem, effect],
        );
    };
    check(
        |facts| remove(facts, "Service"),
        "op-validating calls service/op-webhook-service, which does not exist",
    );
    check(
        |facts| live(facts, "Service")["spec"]["ports"][0]["port"] = json!(8443),
        "calls port 443 of service/op-webhook-service, which has no such port",
    );
    check(
        |facts| remove(facts, "EndpointSlice"),
        "op-validating has no ready endpoint",
    );
    check(
        |facts| {
            let endpoint = &mut live(facts, "EndpointSlice")["endpoints"][0];
            endpoint["conditions"]["ready"] = json!(false);
        },
        "op-validating has no ready endpoint",
    );
    check(
        |facts| webhook(facts)["clientConfig"]["caBundle"] = json!(""),
        "op-validating has no caBundle",
    );
}

#[test]
fn a_webhook_that_may_fail_is_a_warning() {
    one(
        |facts| {
            without_conversion(facts);
            remove(facts, "EndpointSlice");
            webhook(facts)["failurePolicy"] = json!("Ignore");
        },
        Warning,
        "webhook",
        &["robots are not checked (failurePolicy Ignore)"],
    );
}

#[test]
fn the_reason_of_the_pod_is_beside_the_command() {
    let found = findings(|facts| {
        remove(facts, "EndpointSlice");
        live(facts, "Deployment")["status"] = json!({});
        live(facts, "Pod")["status"] = json!({"containerStatuses": [
            {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
        ]});
    });
    let words = [
        "op-validating has no ready endpoint",
        "# pod/op-7d4b-x2 ImagePullBackOff",
    ];
    has(&found, Fail, "webhook", &words);
}

#[test]
fn a_webhook_that_blocks_its_own_operator_is_a_failure() {
    let pods = |facts: &mut Facts| {
        webhook(facts)["rules"] = json!([{"apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["pods"], "operations": ["CREATE"]}]);
    };
    one(
        pods,
        Fail,
        "webhook",
        &[
            "op-validating intercepts pods in the namespace ops",
            "NotIn",
        ],
    );
    let excluded = |namespaces: Value| {
        json!({"matchExpressions": [{
            "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": namespaces,
        }]})
    };
    let label = |facts: &mut Facts| {
        for name in ["ops", "kube-system"] {
            let namespace = named(facts, name);
            namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
        }
    };
    one(
        |facts| {
            pods(facts);
            label(facts);
            webhook(facts)["namespaceSelector"] = excluded(json!(["ops"]));
        },
        Fail,
        "webhook",
        &["in the namespace kube-system"],
    );
    let both = |facts: &mut Facts| {
        pods(facts);
        label(facts);
        webhook(facts)["namespaceSelector"] = excluded(json!(["ops", "kube-system"]));
    };
    assert_eq!(findings(both), []);
    let chosen = |facts: &mut Facts| {
        pods(facts);
        webhook(facts)["objectSelector"] = json!({"matchLabels": {"checked": "true"}});
    };
    assert_eq!(findings(chosen), []);
}

#[test]
fn a_long_time_limit_is_a_warning() {
    let words = [
        "op-validating may take 30 s for v.example.com",
        "timeoutSeconds: 10",
    ];
    one(
        |facts| webhook(facts)["timeoutSeconds"] = json!(30),
        Warning,
        "webhook",
        &words,
    );
}

/// Replaces the certificates; the times are in days from the diagnosis.
fn certificates(facts: &mut Facts, name: &str, authority: (i64, i64), serving: (i64, i64)) {
    let from_today = |(from, until): (i64, i64)| (TODAY + from, TODAY + until);
    let issued = issue(name, from_today(authority), from_today(serving));
    let bundle = json!(STANDARD.encode(issued.authority));
    webhook(facts)["clientConfig"]["caBundle"] = bundle.clone();
    let crd = live(facts, "CustomResourceDefinition");
    crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = bundle;
    named(facts, "op-certificates")["data"]["tls.crt"] = json!(STANDARD.encode(issued.serving));
}

#[test]
fn certificates_are_verified_as_by_the_api_server() {
    let valid = (-10, 300);
    let words = [
        "the serving certificate in secret/op-certificates expired 2 d ago",
        "delete secret",
    ];
    one(
        |facts| certificates(facts, NAME, valid, (-90, -2)),
        Fail,
        "certificate",
        &words,
    );
    let words = ["expires in 3 d and was not renewed"];
    one(
        |facts| certificates(facts, NAME, valid, (-87, 3)),
        Warning,
        "certificate",
        &words,
    );
    // A certificate of one day, after half of it.
    assert_eq!(
        findings(|facts| certificates(facts, NAME, valid, (-1, 1))),
        []
    );
    let words = ["is not for op-webhook-service.ops.svc"];
    one(
        |facts| certificates(facts, "op.other.svc", valid, (-9, 80)),
        Fail,
        "certificate",
        &words,
    );
    let words = ["is not valid yet: a clock is wrong"];
    one(
        |facts| certificates(facts, NAME, valid, (1, 80)),
        Fail,
        "certificate",
        &words,
    );
    let found = findings(|facts| certificates(facts, NAME, (-90, -4), (-10, 80)));
    has(
        &found,
        Fail,
        "certificate",
        &["authority in the caBundle of", "expired 4 d ago"],
    );
}

#[test]
fn a_bundle_of_another_authority_is_a_failure() {
    one(
        |facts| {
            let other = issue(NAME, (TODAY - 10, TODAY + 300), (TODAY - 10, TODAY + 80));
            webhook(facts)["clientConfig"]["caBundle"] = json!(STANDARD.encode(other.authority));
        },
        Fail,
        "certificate",
        &[
            "no authority in the caBundle of ValidatingWebhookConfiguration op-validating has signed",
        ],
    );
}
