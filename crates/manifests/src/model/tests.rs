use serde_json::json;

use super::*;

/// Returns a model with every reference to its namespace.
fn model() -> Model {
    let mut model = Model::new("op", "1.0.0", "op-system");
    let in_system =
        |kind: &str| json!({"kind": kind, "metadata": {"name": "op", "namespace": "op-system"}});
    model.add(
        Part::Manager,
        json!({"kind": "Namespace", "metadata": {"name": "op-system"}}),
    );
    let mut deployment = in_system("Deployment");
    deployment["spec"] = json!({"template": {"spec": {"containers": [
        {"name": "sidecar", "image": "proxy:1"}, {"name": CONTAINER, "image": "op:1.0.0"},
    ]}}});
    model.add(Part::Manager, deployment);
    let mut binding = in_system("RoleBinding");
    binding["subjects"] =
        json!([{"kind": "ServiceAccount", "name": "op", "namespace": "op-system"}]);
    binding["metadata"]["namespace"] = json!("kube-system");
    model.add(Part::Rbac, binding);
    let mut configuration = json!({"kind": "ValidatingWebhookConfiguration", "metadata": {
        "name": "op", "annotations": {"cert-manager.io/inject-ca-from": "op-system/op-serving-cert"},
    }});
    configuration["webhooks"] = json!([{
        "clientConfig": {"service": {"namespace": "op-system", "name": "op"}},
        "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["op-system"]},
        ]},
    }]);
    model.add(Part::Webhook, configuration);
    let mut certificate = in_system("Certificate");
    certificate["spec"] =
        json!({"dnsNames": ["op.op-system.svc", "op.op-system.svc.cluster.local"]});
    model.add(Part::Certmanager, certificate);
    model.add(
        Part::Crd,
        json!({"kind": "CustomResourceDefinition", "metadata": {"name": "a.b"}, "spec": {
            "conversion": {"webhook": {"clientConfig": {"service": {"namespace": "op-system"}}}},
        }}),
    );
    model.metrics = Some(MetricsPort {
        port: 8443,
        secure: true,
    });
    model.webhook_port = Some(9443);
    model
}

fn everything() -> Settings {
    Settings {
        prometheus: true,
        network_policy: true,
        grafana: true,
        replicas: Some(2),
        ..Settings::default()
    }
}

fn kinds(objects: &[ModelObject]) -> Vec<&str> {
    objects.iter().map(|it| text(&it.object, "/kind")).collect()
}

#[test]
fn another_namespace_replaces_every_reference() {
    let mut settings = everything();
    settings.namespace = Some("robots".to_owned());
    let objects = model().objects(&settings);
    let all = serde_json::to_string(&objects).unwrap();
    assert!(!all.contains("op-system"), "{all}");
    let binding = objects
        .iter()
        .find(|it| text(&it.object, "/kind") == "RoleBinding");
    let binding = &binding.unwrap().object;
    assert_eq!(
        binding["metadata"]["namespace"], "kube-system",
        "the role stays"
    );
    assert_eq!(binding["subjects"][0]["namespace"], "robots");
}

#[test]
fn objects_are_in_the_order_of_creation() {
    let objects = model().objects(&everything());
    let expected = [
        "Namespace",
        "CustomResourceDefinition",
        "ConfigMap",
        "RoleBinding",
        "NetworkPolicy",
        "NetworkPolicy",
        "Certificate",
        "Deployment",
        "PodDisruptionBudget",
        "ServiceMonitor",
        "ValidatingWebhookConfiguration",
    ];
    assert_eq!(kinds(&objects), expected);
}

#[test]
fn the_image_is_that_of_the_operators_container() {
    let settings = Settings {
        image: Some("registry.example/op:2".to_owned()),
        ..Settings::default()
    };
    let objects = model().objects(&settings);
    let deployment = objects
        .iter()
        .find(|it| text(&it.object, "/kind") == "Deployment");
    let containers = &deployment.unwrap().object["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["image"], "proxy:1");
    assert_eq!(containers[1]["image"], "registry.example/op:2");
    assert_eq!(model().image(), Some("op:1.0.0"));
}

/// Kubernetes creates these namespaces, and refuses to delete some of them.
#[test]
fn a_namespace_of_kubernetes_is_not_printed() {
    let settings = Settings {
        namespace: Some("default".to_owned()),
        ..Settings::default()
    };
    assert!(!kinds(&model().objects(&settings)).contains(&"Namespace"));
}

#[test]
fn the_role_name_is_chosen_with_its_binding() {
    let mut model = Model::new("op", "1.0.0", "op-system");
    model.add(
        Part::Rbac,
        json!({"kind": "ClusterRole", "metadata": {"name": "op-manager-role"}}),
    );
    model.add(
        Part::Rbac,
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "op-manager-rolebinding"},
            "roleRef": {"name": "op-manager-role"}}),
    );
    let settings = Settings {
        role_name: Some("fleet".to_owned()),
        ..Settings::default()
    };
    let objects = model.objects(&settings);
    assert_eq!(objects[0].object["metadata"]["name"], "fleet");
    assert_eq!(objects[1].object["metadata"]["name"], "fleetbinding");
    assert_eq!(objects[1].object["roleRef"]["name"], "fleet");
}

#[test]
fn a_model_of_another_version_is_refused() {
    let mut other = serde_json::to_value(model()).unwrap();
    assert_eq!(Model::parse(&other.to_string()).unwrap(), model());
    other["apiVersion"] = json!("model.opkit.dev/v9");
    let error = Model::parse(&other.to_string()).unwrap_err().to_string();
    assert!(error.contains("model.opkit.dev/v9"), "{error}");
    assert!(matches!(
        Model::parse("usage: op"),
        Err(ModelError::Parse(_))
    ));
}
