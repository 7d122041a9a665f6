//! Permissions of the user, namespaces, aggregated API servers, leftovers, and what cannot be read.

use super::*;
use crate::Denied;
use Severity::{Fail, Warning};

#[test]
fn missing_permissions_of_the_user_are_listed() {
    let denied = |facts: &mut Facts| {
        facts.denied = vec![Denied {
            resource: "clusterroles.rbac.authorization.k8s.io".to_owned(),
            namespace: None,
            verbs: vec!["create".to_owned(), "patch".to_owned()],
        }];
    };
    let words = [
        "you may not create, patch clusterroles.rbac.authorization.k8s.io",
        "kubectl auth can-i create clusterroles",
    ];
    one(denied, Warning, "permission", &words);
    let not_deployed = findings(|facts| {
        denied(facts);
        remove(facts, "Deployment");
    });
    has(&not_deployed, Fail, "permission", &words);
}

#[test]
fn a_kind_that_cannot_be_read_is_not_missing() {
    one(
        |facts| {
            remove(facts, "ClusterRole");
            facts
                .unread
                .insert("ClusterRole".to_owned(), "forbidden".to_owned());
        },
        Warning,
        "cluster",
        &["the objects of the kind ClusterRole were not checked: forbidden"],
    );
}

fn terminating(name: &str, seconds: i64, type_: &str, message: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "deletionTimestamp": ago(seconds)},
        "status": {"conditions": [{"type": type_, "status": "True", "message": message}]}})
}

#[test]
fn a_namespace_that_does_not_end_is_found() {
    let remaining = "Some resources are remaining: robots.example.com has 1 resource instances";
    let add = |name: &'static str, seconds: i64| {
        move |facts: &mut Facts| {
            let namespace = terminating(name, seconds, "NamespaceContentRemaining", remaining);
            facts.objects.push(namespace);
        }
    };
    let words = [
        "namespace/old has been terminating for 10 min: Some resources",
        "describe namespace old",
    ];
    one(add("old", 600), Warning, "namespace", &words);
    assert_eq!(findings(add("old", 60)), []);
    // It contains an object of the operator.
    one(
        add("default", 600),
        Fail,
        "namespace",
        &["robots.example.com has 1"],
    );
    one(
        |facts| {
            let mut namespace = terminating("default", 600, "", "");
            namespace["status"] = json!({});
            facts.objects.push(namespace);
            facts.instances[0]["metadata"]["finalizers"] = json!(["acme.io/stay"]);
        },
        Fail,
        "namespace",
        &["for 10 min: it contains robot/one (acme.io/stay)"],
    );
    one(
        |facts| named(facts, "ops")["metadata"]["deletionTimestamp"] = json!(ago(60)),
        Fail,
        "namespace",
        &["nothing can be created in the operator's namespace"],
    );
}

#[test]
fn an_api_service_that_blocks_namespaces_is_found() {
    let unavailable = |facts: &mut Facts| {
        live(facts, "APIService")["status"]["conditions"][0] = json!({
            "type": "Available", "status": "False", "message": "no endpoints available",
        });
    };
    let words = [
        "apiservice/v1.metrics is not available",
        "no endpoints available",
    ];
    one(unavailable, Warning, "apiservice", &words);
    let blocked = findings(|facts| {
        unavailable(facts);
        let type_ = "NamespaceDeletionDiscoveryFailure";
        facts
            .objects
            .push(terminating("old", 600, type_, "discovery failed"));
    });
    has(&blocked, Fail, "apiservice", &["1 namespace waits"]);
    has(
        &blocked,
        Warning,
        "namespace",
        &["discovery failed", "kubectl get apiservices"],
    );
}

#[test]
fn objects_without_a_release_are_found() {
    let set = ApplySet::new("op", NAMESPACE);
    let parent = set.parent_name();
    one(
        |facts| facts.objects.retain(|it| name(it) != parent),
        Warning,
        "leftover",
        &["belong to the ApplySet of op, whose inventory secret/op-applyset does not exist"],
    );
    one(
        |facts| {
            facts
                .objects
                .push(json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "old", "namespace": NAMESPACE,
                    "labels": {PART_OF_LABEL: set.id()}}}));
        },
        Warning,
        "leftover",
        &["service/old is not in the newest release", "opkit deploy"],
    );
}
