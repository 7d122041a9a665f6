//! CRDs: served, stored versions, and differences from the build.

use super::*;
use Severity::{Fail, Warning};

fn crd(facts: &mut Facts) -> &mut Value {
    live(facts, "CustomResourceDefinition")
}

#[test]
fn a_missing_crd_is_a_failure() {
    let words = [
        "the CRD robots.example.com is not installed",
        "opkit install",
    ];
    one(
        |facts| remove(facts, "CustomResourceDefinition"),
        Fail,
        "crd",
        &words,
    );
}

#[test]
fn a_crd_that_is_not_served_is_a_failure() {
    one(
        |facts| {
            crd(facts)["status"]["conditions"] = json!([
                {"type": "NamesAccepted", "status": "False", "message": "\"robots\" is already in use"},
                {"type": "Established", "status": "False"},
            ]);
        },
        Fail,
        "crd",
        &["names of the CRD robots.example.com are not accepted: \"robots\" is already in use"],
    );
    one(
        |facts| crd(facts)["status"]["conditions"] = json!([]),
        Fail,
        "crd",
        &["is not established"],
    );
    one(
        |facts| crd(facts)["metadata"]["deletionTimestamp"] = json!(ago(60)),
        Fail,
        "crd",
        &["is terminating", "kubectl get robots.example.com -A"],
    );
}

#[test]
fn versions_that_are_still_stored_are_found() {
    let stored = |facts: &mut Facts| {
        crd(facts)["status"]["storedVersions"] = json!(["v1alpha1", "v1"]);
    };
    let words = [
        "objects may be stored as v1alpha1, so",
        "opkit migrate storage robots.example.com",
    ];
    one(stored, Warning, "crd", &words);
    let unserved = |facts: &mut Facts| {
        stored(facts);
        crd(facts)["spec"]["versions"][1]["served"] = json!(false);
        let expected = &mut facts.manifests.objects[1];
        expected["spec"]["versions"][1]["served"] = json!(false);
    };
    one(
        unserved,
        Warning,
        "crd",
        &["stored as v1alpha1, which is no longer served"],
    );
    let dropped = findings(|facts| {
        stored(facts);
        let expected = &mut facts.manifests.objects[1];
        drop(expected["spec"]["versions"].as_array_mut().unwrap().pop());
    });
    has(
        &dropped,
        Fail,
        "crd",
        &["stored as v1alpha1, which this build drops"],
    );
}

#[test]
fn a_crd_that_is_older_than_the_running_build_is_a_failure() {
    let older = |facts: &mut Facts| {
        let schema = &mut facts.manifests.objects[1]["spec"]["versions"][0]["schema"];
        schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["paused"] =
            json!({"type": "object", "properties": {"until": {"type": "string"}}});
    };
    let words = [
        "is older than this build: it has no .spec.paused, and",
        "opkit install",
    ];
    one(older, Fail, "version", &words);
    let other = findings(|facts| {
        older(facts);
        let containers = &mut live(facts, "Deployment")["spec"]["template"]["spec"]["containers"];
        containers[0]["image"] = json!("acme/op:0.9.0");
    });
    assert!(other.iter().all(|it| it.severity == Warning), "{other:#?}");
    has(&other, Warning, "version", &["it has no .spec.paused"]);
    one(
        |facts| drop(crd(facts)["spec"]["versions"].as_array_mut().unwrap().pop()),
        Fail,
        "version",
        &["it has no served version v1alpha1"],
    );
}

#[test]
fn a_crd_that_is_newer_than_the_build_is_a_warning() {
    one(
        |facts| {
            let schema = &mut crd(facts)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            schema["properties"]["spec"]["properties"]["next"] = json!({"type": "string"});
        },
        Warning,
        "version",
        &["is newer than this build, which does not know .spec.next"],
    );
}

#[test]
fn another_limit_than_that_of_the_build_is_a_warning() {
    one(
        |facts| {
            let schema = &mut crd(facts)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            schema["properties"]["spec"]["properties"]["replicas"]["maximum"] = json!(5);
        },
        Warning,
        "version",
        &[
            "differs from that of this build: v1 .spec.replicas",
            "opkit crd check",
        ],
    );
}

#[test]
fn a_conversion_webhook_that_cannot_be_called_is_a_failure() {
    one(
        |facts| {
            remove(facts, "ValidatingWebhookConfiguration");
            let kind = "ValidatingWebhookConfiguration";
            facts
                .manifests
                .objects
                .retain(|it| crate::value::kind(it) != kind);
            remove(facts, "EndpointSlice");
        },
        Fail,
        "conversion",
        &["the conversion of robots.example.com has no ready endpoint"],
    );
}
