//! `opkit plan`, with a binary that prints a model, against a control plane in another process.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use opkit_manifests::{Model, Part};
use serde_json::{Value, json};

use super::deploy::{Cluster, Place, json, model};
use super::*;

/// Returns the first version: it has a Service.
fn first() -> Model {
    let mut model = with_role(model("1.0.0"), &["get"]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "op-metrics", "namespace": "op-system"},
        "spec": {"ports": [{"port": 8443}]},
    });
    model.add(Part::Manager, service);
    model
}

/// Returns the second version: it has another CRD, role and image, and no Service.
fn second() -> Model {
    let mut model = model("1.1.0");
    for it in &mut model.objects {
        if let Some(versions) = it.object.pointer_mut("/spec/versions") {
            let schema = json!({"openAPIV3Schema": {"type": "object"}});
            versions.as_array_mut().unwrap().push(json!({
                "name": "v2", "served": true, "storage": false, "schema": schema,
            }));
        }
    }
    with_role(model, &["get", "list"])
}

fn with_role(mut model: Model, verbs: &[&str]) -> Model {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "op-manager-role"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
    });
    model.add(Part::Rbac, role);
    model
}

#[tokio::test]
async fn a_plan_is_what_deploy_then_does() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    place.print(&first());
    let new = "\
cluster   6 changes
   + crd/robots.op.opkit.dev
   + namespace/op-system
   + serviceaccount/op-controller-manager
   + clusterrole/op-manager-role
   + service/op-metrics
   + deployment/op-controller-manager
operator  not run: the cluster does not have the CRD robots.op.opkit.dev yet; `opkit install` adds it
";
    assert_eq!(place.stdout(&["plan"]), new);
    // The plan has changed nothing.
    assert_eq!(place.stdout(&["plan"]), new);
    let code = |arguments: &[&str]| place.opkit(arguments).status.code();
    assert_eq!(
        code(&["plan", "--exit-code"]),
        Some(2),
        "that the operator is not run follows from the changes"
    );
    let only = ["plan", "--cluster-only", "--exit-code"];
    assert_eq!(code(&only), Some(2));
    place.stdout(&["deploy"]);
    let nothing = "\
cluster   no changes
operator  no changes: there are no objects to reconcile
";
    assert_eq!(place.stdout(&["plan", "--exit-code"]), nothing);

    place.print(&second());
    let changed = "\
cluster   4 changes
   ~ crd/robots.op.opkit.dev            .spec.versions + v2   compatible
   ~ clusterrole/op-manager-role        .rules[0].verbs + \"list\"   wider
   ~ deployment/op-controller-manager   .spec.template.spec.containers[manager].image \"op:1.0.0\" -> \"op:1.1.0\"
   - service/op-metrics
operator  not run: the cluster does not serve the version v2 of robots.op.opkit.dev yet; `opkit install` adds it
";
    assert_eq!(place.stdout(&["plan"]), changed);
    let plan = json(&place.stdout(&["plan", "--output", "json"]));
    let deployed = json(&place.stdout(&["deploy", "--output", "json"]));
    assert_eq!(plan["cluster"]["changes"], deployed["changes"]);
    assert_eq!(plan["cluster"]["changes"].as_array().unwrap().len(), 4);
    assert_eq!(place.stdout(&["plan"]), nothing);
}

#[tokio::test]
async fn a_breaking_change_of_a_crd_is_named() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    let with_size = |maximum: u64| {
        let mut model = model("1.0.0");
        for it in &mut model.objects {
            if let Some(schema) = it
                .object
                .pointer_mut("/spec/versions/0/schema/openAPIV3Schema")
            {
                *schema = json!({"type": "object", "properties": {
                    "size": {"type": "integer", "maximum": maximum},
                }});
            }
        }
        model
    };
    place.print(&with_size(100));
    place.stdout(&["deploy"]);
    place.print(&with_size(50));
    let expected = "\
cluster   1 change
   ~ crd/robots.op.opkit.dev   .spec.versions[v1].schema.openAPIV3Schema.properties.size.maximum 100 -> 50   BREAKS
                               BREAKS  v1  .size  maximum  maximum decreased: 100 -> 50
";
    assert_eq!(place.stdout(&["plan", "--cluster-only"]), expected);
    assert!(!place.stdout(&["plan"]).contains("note:"));
}

#[tokio::test]
async fn long_descriptions_are_deployed_as_they_are_planned() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    let mut long = model("1.0.0");
    for it in &mut long.objects {
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        if let Some(schema) = it.object.pointer_mut(schema) {
            let description = format!("A robot. {}", "It walks. ".repeat(50));
            *schema = json!({"type": "object", "description": description});
        }
    }
    place.print(&long);
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let description = async || {
        let crd = crds.get("robots.op.opkit.dev").await.unwrap();
        let schema = crd.spec.versions[0].schema.clone().unwrap();
        schema.open_api_v3_schema.unwrap().description
    };
    place.stdout(&["install", "--max-description", "0"]);
    assert_eq!(description().await, None);
    place.stdout(&["deploy", "--max-description", "10"]);
    assert_eq!(description().await.as_deref(), Some("A robot."));
    let nothing = "cluster   no changes\n";
    let same = ["plan", "--max-description", "10", "--cluster-only"];
    assert_eq!(place.stdout(&same), nothing);
    let other = place.stdout(&["plan", "--cluster-only"]);
    assert!(other.contains("1 change\n   ~ crd/robots"), "{other}");
}

#[tokio::test]
async fn the_new_fields_of_a_crd_are_noted() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    place.stdout(&["deploy"]);
    let mut with_field = model("1.0.0");
    for it in &mut with_field.objects {
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        if let Some(schema) = it.object.pointer_mut(schema) {
            *schema = json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"arms": {"type": "integer"}}},
            }});
        }
    }
    place.print(&with_field);
    let note = "robots.op.opkit.dev gets new fields, which the server does not store yet: the operator was run without them";
    let printed = place.stdout(&["plan"]);
    assert!(
        printed.ends_with(&format!("   note: {note}\n")),
        "{printed}"
    );
    let printed = json(&place.stdout(&["plan", "--output", "json"]));
    assert_eq!(printed["notes"], json!([note]));
    place.stdout(&["deploy"]);
    assert!(!place.stdout(&["plan"]).contains("note:"));
}

#[tokio::test]
async fn a_plan_that_the_server_refuses_is_an_error() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    place.stdout(&["deploy"]);
    let mut invalid = first();
    for it in &mut invalid.objects {
        if let Some(port) = it.object.pointer_mut("/spec/ports/0/port") {
            *port = json!(0);
        }
    }
    place.print(&invalid);
    let output = place.opkit(&["plan"]);
    refused(&output, &["op-metrics", "spec.ports[0].port"]);
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn the_plan_of_the_operator_is_shown() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    place.stdout(&["deploy"]);
    let write = |plan: Value| {
        fs::write(place.root.path().join("plan.json"), plan.to_string()).unwrap();
    };
    let image = ".spec.template.spec.containers[robot].image";
    let by = json!([{"kind": "Robot", "namespace": "default", "name": "one"}]);
    let plan = json!({
        "reconciled": [{"kind": "Robot", "plural": "robots", "objects": 2}],
        "changes": [
            {"change": "changed", "group": "apps", "kind": "Deployment", "namespace": "default", "name": "one",
                "fields": [{"path": image, "before": "nginx:1.27", "after": "nginx:1.28"}], "for": by},
            {"change": "created", "group": "policy", "kind": "PodDisruptionBudget", "namespace": "default",
                "name": "one", "for": by},
            {"change": "deleted", "kind": "Namespace", "name": "old", "for": by,
                "unchecked": "a webhook does not support dry run"},
        ],
        "failures": [
            {"object": {"kind": "Robot", "namespace": "default", "name": "two"}, "controller": "robot", "error": "no image"},
        ],
    });
    write(plan.clone());
    let expected = "\
cluster   no changes
operator  3 changes, after reconciling 2 robots here with every write held back
   ~ default deployment/one            .spec.template.spec.containers[robot].image \"nginx:1.27\" -> \"nginx:1.28\"   for robot/one
   + default poddisruptionbudget/one   for robot/one
   - namespace/old                     for robot/one   not validated: a webhook does not support dry run
   ! default robot/two                 no image
";
    assert_eq!(place.stdout(&["plan"]), expected);
    let code = |arguments: &[&str]| place.opkit(arguments).status.code();
    assert_eq!(
        code(&["plan", "--exit-code"]),
        Some(1),
        "a reconcile failed"
    );
    let printed = json(&place.stdout(&["plan", "--output", "json"]));
    assert_eq!(printed["operator"]["changes"][0]["for"], by);

    let mut complete = plan;
    complete["failures"] = json!([]);
    write(complete);
    assert_eq!(code(&["plan", "--exit-code"]), Some(2));
    write(json!({"refused": "its state App could write outside of the cluster"}));
    let refused = "\
cluster   no changes
operator  not run: its state App could write outside of the cluster
";
    assert_eq!(place.stdout(&["plan"]), refused);
    fs::write(place.root.path().join("plan.json"), "no JSON").unwrap();
    super::refused(&place.opkit(&["plan"]), &["cannot use the plan of"]);
}

/// Returns the writes in an audit log that are no dry runs and no reviews.
fn stored_writes(log: &str) -> Vec<String> {
    let writes = log.lines().filter_map(|line| {
        let event = json(line);
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let (verb, uri) = (text("/verb")?, text("/requestURI")?);
        let is_dry = match verb {
            "delete" => event.pointer("/requestObject/dryRun") == Some(&json!(["All"])),
            _ => uri.contains("dryRun=All"),
        };
        let is_read = ["get", "list", "watch"].contains(&verb);
        let is_own = text("/userAgent").unwrap_or_default().contains("opkit");
        let is_review = uri.contains("/authorization.k8s.io/");
        (is_own && !is_read && !is_dry && !is_review).then(|| format!("{verb} {uri}"))
    });
    writes.collect()
}

#[tokio::test]
async fn the_server_stores_no_write_of_a_plan() {
    let place = Place::new();
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived, ResponseStarted], rules: [{level: Request}]}";
    fs::write(place.root.path().join("policy.yaml"), policy).unwrap();
    let audit = [
        "--audit-policy-file",
        "policy.yaml",
        "--audit-log-path",
        "audit.log",
    ];
    let cluster = Cluster::start_with(place, &audit).await;
    let place = &cluster.place;
    let log = place.root.path().join("audit.log");
    let read = || fs::read_to_string(&log).unwrap_or_default();
    // The log is written in the order of the requests, after the responses.
    let mut number = 0;
    let mut complete = async || {
        number += 1;
        let name = format!("/api/v1/namespaces/barrier-{number}");
        let barrier = http::Request::get(&name).body(Vec::new()).unwrap();
        assert!(cluster.client.request_text(barrier).await.is_err());
        wait(|| read().contains(&name));
        read()
    };
    let dry = |text: &str| text.lines().filter(|it| it.contains("dryRun")).count();
    place.print(&first());
    place.stdout(&["plan"]);
    let planned = complete().await;
    assert!(dry(&planned) >= 2);
    assert_eq!(stored_writes(&planned), [""; 0]);

    place.stdout(&["deploy"]);
    // Six objects, the inventory before and after them, and the revision.
    wait(|| stored_writes(&read()).len() >= 9);
    let deployed = complete().await;
    assert_eq!(stored_writes(&deployed).len(), 9);
    place.print(&second());
    assert!(place.stdout(&["plan"]).contains("   - service/op-metrics"));
    wait(|| dry(&read()) > dry(&deployed) && read().contains("services/op-metrics"));
    let planned = complete().await;
    assert_eq!(stored_writes(&planned).len(), 9);
}
