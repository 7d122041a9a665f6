use opkit_controller::{Action, Context, Controller, Error};
use opkit_manifests::Settings;
use serde_json::json;

use super::*;
use crate::arguments::CommandLine;

fn model(operator: Operator, arguments: &[&str]) -> Model {
    let all = std::iter::once(&"test").chain(arguments);
    let line = CommandLine::new("test", &[]).unwrap();
    let (arguments, _) = line.parse(all.map(Into::into)).unwrap();
    operator.model(arguments.flags).unwrap()
}

/// Returns the first object of a kind.
fn object(model: &Model, kind: &str) -> Value {
    let objects = model.objects(&Settings::default()).into_iter();
    let mut objects = objects.map(|it| it.object);
    objects.find(|it| it["kind"] == kind).unwrap_or_default()
}

fn container(model: &Model) -> Value {
    object(model, "Deployment")["spec"]["template"]["spec"]["containers"][0].clone()
}

fn map_operator() -> Operator {
    use k8s_openapi::api::core::v1::ConfigMap;
    let reconcile =
        |_: std::sync::Arc<ConfigMap>, _: Context| async { Ok::<_, Error>(Action::await_change()) };
    Operator::new("test").controller(Controller::new(reconcile))
}

#[test]
fn the_deployment_elects_a_leader_and_serves_metrics_and_probes() {
    let model = model(Operator::new("test"), &[]);
    let arguments = json!([
        "--leader-elect",
        "--metrics-bind-address=:8443",
        "--health-probe-bind-address=:8081"
    ]);
    let container = container(&model);
    assert_eq!(container["args"], arguments);
    assert_eq!(container["readinessProbe"]["httpGet"]["port"], 8081);
    assert_eq!(
        container["securityContext"]["capabilities"]["drop"],
        json!(["ALL"])
    );
    let service = object(&model, "Service");
    assert_eq!(service["spec"]["ports"][0]["name"], "https");
    let names: Vec<_> = model
        .objects
        .iter()
        .map(|it| it.object["metadata"]["name"].clone())
        .collect();
    for name in [
        "test-leader-election-role",
        "test-metrics-auth-role",
        "test-metrics-reader",
    ] {
        assert!(names.contains(&json!(name)), "{name} in {names:?}");
    }
    let lease = &model.runtime_objects[0]["metadata"];
    assert_eq!(lease, &json!({"name": "test", "namespace": "test-system"}));
}

/// The flags of `manifests` are those of the operator in the cluster, and its roles fit to them.
#[test]
fn flags_reach_the_deployment_and_the_roles() {
    let arguments = [
        "--leader-elect=false",
        "--metrics-bind-address=0",
        "--webhook-shutdown-delay=0",
        "--graceful-shutdown-timeout=60",
        "--namespace=shops",
    ];
    let model = model(map_operator(), &arguments);
    let expected = json!([
        "--leader-elect=false",
        "--health-probe-bind-address=:8081",
        "--webhook-shutdown-delay=0",
        "--graceful-shutdown-timeout=60"
    ]);
    let container = container(&model);
    assert_eq!(container["args"], expected);
    assert_eq!(
        container["env"],
        json!([{"name": "WATCH_NAMESPACE", "value": "shops"}])
    );
    let spec = &object(&model, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(spec["terminationGracePeriodSeconds"], 70);
    assert_eq!(
        object(&model, "Service"),
        Value::Null,
        "no metrics are served"
    );
    assert_eq!(object(&model, "Role")["metadata"]["namespace"], "shops");
    assert_eq!(object(&model, "ClusterRole"), Value::Null);
}

#[test]
fn an_operator_of_one_namespace_has_roles_in_that_namespace() {
    let model = model(map_operator().namespaced(), &["--metrics-bind-address=0"]);
    assert!(model.namespaced);
    assert_eq!(object(&model, "ClusterRole"), Value::Null);
    assert_eq!(
        object(&model, "Role")["metadata"]["namespace"],
        "test-system"
    );
    let from = json!({"fieldRef": {"fieldPath": "metadata.namespace"}});
    let expected = json!([{"name": "WATCH_NAMESPACE", "valueFrom": from}]);
    assert_eq!(container(&model)["env"], expected);

    let mut settings = Settings::default();
    settings.namespace = Some("elsewhere".to_owned());
    for placed in model.objects(&settings) {
        let text = placed.object.to_string();
        assert!(!text.contains("test-system"), "{text}");
    }
}

#[test]
fn a_name_that_is_too_long_for_a_service_is_reported() {
    let error = Operator::new("o".repeat(48)).manifests().unwrap_err();
    assert!(error.to_string().contains("-webhook-service"), "{error}");
    assert!(Operator::new("o".repeat(47)).manifests().is_ok());
}

#[test]
fn the_operator_changes_its_deployment() {
    let operator = Operator::new("test").deployment(|deployment| {
        let spec = deployment.spec.get_or_insert_default();
        spec.replicas = Some(3);
        let pod = spec.template.spec.get_or_insert_default();
        pod.priority_class_name = Some("high".to_owned());
    });
    let model = model(operator, &[]);
    let spec = &object(&model, "Deployment")["spec"];
    assert_eq!(spec["template"]["spec"]["priorityClassName"], "high");
    assert_eq!(spec["replicas"], 3);
    assert_eq!(
        object(&model, "PodDisruptionBudget")["spec"]["maxUnavailable"],
        1
    );
}
