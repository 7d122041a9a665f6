//! Each check on a healthy operator, and on the same operator with one thing broken.

mod cluster;
mod crds;
mod objects;
mod operator;
mod webhooks;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opkit_deploy::{ApplySet, PART_OF_LABEL};
use serde_json::{Value, json};

use crate::certificate::tests::{NAME, day, issue};
use crate::value::{kind, name};
use crate::{Facts, Finding, Look, OperatorManifests, Severity};

const NAMESPACE: &str = "ops";
/// Day of the diagnosis, since 1970.
const TODAY: i64 = 20_000;

/// Returns the time some seconds before the diagnosis.
fn ago(seconds: i64) -> String {
    let now = day(TODAY).as_second();
    jiff::Timestamp::from_second(now - seconds)
        .unwrap()
        .to_string()
}

/// Returns facts with an operator that has everything, and no problem.
fn healthy() -> Facts {
    let mut manifests = OperatorManifests::new("op", "1.0.0", NAMESPACE);
    manifests.objects = expected();
    manifests.runtime_objects = vec![
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "op.example.com", "namespace": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "op-certificates", "namespace": NAMESPACE}}),
    ];
    let mut facts = Facts::new(manifests, day(TODAY));
    facts.cluster = "kind-dev, Kubernetes 1.36.1".to_owned();
    let set = ApplySet::new("op", NAMESPACE);
    facts.objects = expected();
    for object in &mut facts.objects {
        if kind(object) != "CustomResourceDefinition" {
            object["metadata"]["labels"][PART_OF_LABEL] = json!(set.id());
        }
    }
    let certificates = issue(NAME, (TODAY - 10, TODAY + 300), (TODAY - 10, TODAY + 80));
    facts.objects.extend(runtime(&certificates.serving));
    facts
        .objects
        .push(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": set.parent_name(), "namespace": NAMESPACE}}));
    facts.deployed = Some(expected());
    facts.instances = vec![instance("one")];
    facts.looks = (0..4).map(|_| Look::of(&facts.instances)).collect();
    live(&mut facts, "Deployment")["status"] = json!({"availableReplicas": 1});
    let bundle = STANDARD.encode(&certificates.authority);
    live(&mut facts, "ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["caBundle"] =
        json!(bundle);
    let crd = live(&mut facts, "CustomResourceDefinition");
    crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(bundle);
    crd["status"] = json!({"storedVersions": ["v1"], "conditions": [
        {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"},
    ]});
    facts
}

/// Returns the objects of the manifests.
fn expected() -> Vec<Value> {
    let client = json!({"service": {
        "name": "op-webhook-service", "namespace": NAMESPACE, "port": 443,
    }});
    let labels = json!({"app.kubernetes.io/name": "op"});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "robots", "kind": "Robot"},
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}},
            "versions": [version("v1", true), version("v1alpha1", false)],
        }}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "op", "namespace": NAMESPACE}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "op-role"},
        "rules": [
            {"apiGroups": ["example.com"], "resources": ["robots"], "verbs": ["get", "list"]},
            {"apiGroups": ["example.com"], "resources": ["robots/status"], "verbs": ["patch"]},
        ]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "op-rolebinding"},
            "roleRef": {"kind": "ClusterRole", "name": "op-role"},
            "subjects": [{"kind": "ServiceAccount", "name": "op", "namespace": NAMESPACE}]}),
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "op-webhook-service", "namespace": NAMESPACE},
            "spec": {"ports": [{"port": 443}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "op-controller-manager", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": "op",
                "containers": [{"name": "manager", "image": "acme/op:1.0.0"}],
            }},
        }}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "op-validating"},
        "webhooks": [{
            "name": "v.example.com", "clientConfig": client, "failurePolicy": "Fail",
            "timeoutSeconds": 10,
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
                "resources": ["robots"], "operations": ["CREATE"]}],
        }]}),
    ]
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
            "status": {"type": "object", "properties": {"observedGeneration": {"type": "integer"}}},
        }}},
    })
}

/// Returns what exists while the operator runs.
fn runtime(certificate: &str) -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "op-7d4b-x2", "namespace": NAMESPACE,
                "labels": {"app.kubernetes.io/name": "op"}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "op-webhook-service-1", "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": "op-webhook-service",
                    PART_OF_LABEL: ApplySet::new("op", NAMESPACE).id()},
                "ownerReferences": [{"kind": "Service", "name": "op-webhook-service"}]},
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]}),
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "op.example.com", "namespace": NAMESPACE},
            "spec": {"holderIdentity": "op-7d4b-x2_1234", "leaseDurationSeconds": 15,
                "renewTime": ago(3)}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "op-certificates", "namespace": NAMESPACE},
            "data": {"tls.crt": STANDARD.encode(certificate)}}),
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1.metrics"},
            "status": {"conditions": [{"type": "Available", "status": "True"}]}}),
    ]
}

fn instance(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Robot",
        "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 2,
            "resourceVersion": "5", "managedFields": [
                {"manager": "kubectl", "operation": "Update", "time": ago(900),
                    "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            ]},
        "status": {"observedGeneration": 2, "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": ago(900)},
        ]},
    })
}

/// Returns the first object of a kind in the cluster.
fn live<'a>(facts: &'a mut Facts, wanted: &str) -> &'a mut Value {
    let mut objects = facts.objects.iter_mut();
    objects.find(|object| kind(object) == wanted).unwrap()
}

fn named<'a>(facts: &'a mut Facts, wanted: &str) -> &'a mut Value {
    let mut objects = facts.objects.iter_mut();
    objects.find(|object| name(object) == wanted).unwrap()
}

fn remove(facts: &mut Facts, wanted: &str) {
    facts.objects.retain(|object| kind(object) != wanted);
}

/// Checks that a change of the healthy facts leads to one finding of this weight and check, with
/// these words in its sentence or command.
#[track_caller]
fn one(change: impl FnOnce(&mut Facts), severity: Severity, check: &str, words: &[&str]) {
    let findings = findings(change);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    has(&findings, severity, check, words);
}

fn findings(change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = healthy();
    change(&mut facts);
    facts.examine().findings
}

#[track_caller]
fn has(findings: &[Finding], severity: Severity, check: &str, words: &[&str]) {
    let found = findings.iter().any(|finding| {
        let command = finding.command.as_deref().unwrap_or_default();
        let text = format!("{} {command}", finding.message);
        finding.severity == severity
            && finding.check == check
            && words.iter().all(|word| text.contains(word))
    });
    assert!(
        found,
        "{severity:?} {check} {words:?} is not in {findings:#?}"
    );
}

#[test]
fn a_healthy_operator_has_no_findings() {
    assert_eq!(findings(|_| {}), []);
}

/// Each check reports at most ten single objects.
#[test]
fn many_objects_with_one_problem_are_counted() {
    let found = findings(|facts| {
        facts.instances = (0..25)
            .map(|number| {
                let mut robot = instance(&format!("robot-{number}"));
                robot["status"] = json!({});
                robot
            })
            .collect();
    });
    assert_eq!(found.len(), 11);
    assert_eq!(found[10].message, "15 other objects have the same problem");
}
