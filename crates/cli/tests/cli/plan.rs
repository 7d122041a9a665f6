//! `opkit plan`, with a binary that prints a model, against a control plane in another process.

use opkit_manifests::{Model, Part};
use serde_json::json;

use super::deploy::{Cluster, json, model};
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
";
    assert_eq!(place.stdout(&["plan"]), new);
    // The plan has changed nothing.
    assert_eq!(place.stdout(&["plan"]), new);
    assert_eq!(place.opkit(&["plan", "--exit-code"]).status.code(), Some(2));
    place.stdout(&["deploy"]);
    assert_eq!(
        place.stdout(&["plan", "--exit-code"]),
        "cluster   no changes\n"
    );

    place.print(&second());
    let changed = "\
cluster   4 changes
   ~ crd/robots.op.opkit.dev            .spec.versions + v2   compatible
   ~ clusterrole/op-manager-role        .rules[0].verbs + \"list\"   wider
   ~ deployment/op-controller-manager   .spec.template.spec.containers[manager].image \"op:1.0.0\" -> \"op:1.1.0\"
   - service/op-metrics
";
    assert_eq!(place.stdout(&["plan"]), changed);
    let plan = json(&place.stdout(&["plan", "--output", "json"]));
    let deployed = json(&place.stdout(&["deploy", "--output", "json"]));
    assert_eq!(plan["cluster"]["changes"], deployed["changes"]);
    assert_eq!(plan["cluster"]["changes"].as_array().unwrap().len(), 4);
    assert_eq!(place.stdout(&["plan"]), "cluster   no changes\n");
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
    assert_eq!(place.stdout(&["plan"]), expected);
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
