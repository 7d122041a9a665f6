//! The Deployment that runs an operator, and the objects beside it.

use serde_json::{Map, Value, json};

use crate::object::{NAME_LABEL, document};

/// Name of the container in the operator's Deployment; kubebuilder's name.
pub const CONTAINER: &str = "manager";
/// Directory of the certificate that cert-manager issues, where kubebuilder's deployments mount it.
pub const WEBHOOK_CERTIFICATE_PATH: &str = "/tmp/k8s-webhook-server/serving-certs";

/// Maximum length of the name of a Service, which is a DNS label.
const SERVICE_NAME_MAX: usize = 63;

/// Value of the label `control-plane`, by which Services and policies select the operator's Pods.
const CONTROL_PLANE: &str = "controller-manager";

/// Builder of the Deployment of an operator, with the settings that Kubernetes' restricted Pod
/// security standard requires.
///
/// # Examples
/// ```
/// use opkit_manifests::DeploymentManifest;
/// let deployment = DeploymentManifest::new("robot-operator", "robot-operator-system")
///     .image("registry.example/robot-operator:1.0.0")
///     .arguments(["--leader-elect"])
///     .probe_port(Some(8081));
/// let object = deployment.document();
/// assert_eq!(object["metadata"]["name"], "robot-operator-controller-manager");
/// ```
#[derive(Debug, Clone)]
pub struct DeploymentManifest {
    operator: String,
    namespace: String,
    image: String,
    arguments: Vec<String>,
    environment: Vec<Value>,
    probe_port: Option<u16>,
    webhook_port: Option<u16>,
    /// Secret that is mounted as the certificate of the webhook server.
    webhook_secret: Option<String>,
    termination_grace_seconds: u64,
}

impl DeploymentManifest {
    /// Creates the Deployment of an operator in `namespace`, without arguments, probes and ports.
    pub fn new(operator: impl Into<String>, namespace: impl Into<String>) -> Self {
        let operator = operator.into();
        Self {
            image: format!("{operator}:latest"),
            operator,
            namespace: namespace.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            probe_port: None,
            webhook_port: None,
            webhook_secret: None,
            termination_grace_seconds: 40,
        }
    }

    /// Sets the image; the operator's name with the tag `latest` by default.
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.image = image.into();
        self
    }

    /// Sets the arguments of the operator.
    pub fn arguments<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an environment variable with a fixed value.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push(json!({"name": name, "value": value}));
        self
    }

    /// Adds an environment variable with the value of a field of the Pod, such as
    /// `metadata.namespace`.
    pub fn field_variable(mut self, name: &str, field_path: &str) -> Self {
        let from = json!({"fieldRef": {"fieldPath": field_path}});
        self.environment
            .push(json!({"name": name, "valueFrom": from}));
        self
    }

    /// Sets the port of `/healthz` and `/readyz`. Without a port there are no probes.
    pub fn probe_port(mut self, port: Option<u16>) -> Self {
        self.probe_port = port;
        self
    }

    /// Sets the port of the webhook server. Without a port, the container declares none.
    pub fn webhook_port(mut self, port: Option<u16>) -> Self {
        self.webhook_port = port;
        self
    }

    /// Mounts a Secret as the certificate of the webhook server.
    pub fn webhook_secret(mut self, secret: Option<String>) -> Self {
        self.webhook_secret = secret;
        self
    }

    /// Sets the time between SIGTERM and SIGKILL, in seconds; 40 by default.
    pub fn termination_grace_seconds(mut self, seconds: u64) -> Self {
        self.termination_grace_seconds = seconds;
        self
    }

    /// Returns the Deployment, with one replica.
    pub fn document(&self) -> Value {
        let labels = pod_labels(&self.operator);
        let mut pod_spec = json!({
            "serviceAccountName": format!("{}-controller-manager", self.operator),
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": self.termination_grace_seconds,
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }],
            "containers": [self.container()],
        });
        if let (Some(secret), Some(fields)) = (&self.webhook_secret, pod_spec.as_object_mut()) {
            let volume = json!({
                "name": "webhook-certs",
                "secret": {"secretName": secret, "defaultMode": 420},
            });
            fields.insert("volumes".to_owned(), json!([volume]));
        }
        let mut deployment = document(
            &self.operator,
            "apps/v1",
            "Deployment",
            &format!("{}-controller-manager", self.operator),
            Some(&self.namespace),
        );
        set_label(&mut deployment, "control-plane", CONTROL_PLANE);
        let spec = json!({
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "annotations": {"kubectl.kubernetes.io/default-container": CONTAINER},
                    "labels": labels,
                },
                "spec": pod_spec,
            },
        });
        if let Some(fields) = deployment.as_object_mut() {
            fields.insert("spec".to_owned(), spec);
        }
        deployment
    }

    fn container(&self) -> Value {
        let mut container = Map::new();
        let mut set = |field: &str, value: Value| container.insert(field.to_owned(), value);
        set("name", json!(CONTAINER));
        set("image", json!(self.image));
        set("args", json!(self.arguments));
        if !self.environment.is_empty() {
            set("env", json!(self.environment));
        }
        if let Some(port) = self.webhook_port {
            let port = json!({"name": "webhook-server", "containerPort": port, "protocol": "TCP"});
            set("ports", json!([port]));
        }
        if let Some(port) = self.probe_port {
            let get = |path: &str| json!({"path": path, "port": port});
            let live = json!({
                "httpGet": get("/healthz"), "initialDelaySeconds": 15, "periodSeconds": 20,
            });
            let ready = json!({
                "httpGet": get("/readyz"), "initialDelaySeconds": 1, "periodSeconds": 5,
            });
            set("livenessProbe", live);
            set("readinessProbe", ready);
        }
        let resources = json!({
            "limits": {"cpu": "500m", "memory": "128Mi"},
            "requests": {"cpu": "10m", "memory": "64Mi"},
        });
        set("resources", resources);
        let security = json!({
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        });
        set("securityContext", security);
        if self.webhook_secret.is_some() {
            let mount = json!({
                "name": "webhook-certs", "mountPath": WEBHOOK_CERTIFICATE_PATH, "readOnly": true,
            });
            set("volumeMounts", json!([mount]));
        }
        container.into()
    }
}

/// Returns the labels of the operator's Pods.
pub(crate) fn pod_labels(operator: &str) -> Value {
    json!({NAME_LABEL: operator, "control-plane": CONTROL_PLANE})
}

/// Returns the PodDisruptionBudget, which keeps all but one replica running.
pub(crate) fn disruption_budget(operator: &str, namespace: &str) -> Value {
    let name = format!("{operator}-controller-manager");
    let group = "policy/v1";
    let mut budget = document(
        operator,
        group,
        "PodDisruptionBudget",
        &name,
        Some(namespace),
    );
    let spec = json!({
        "maxUnavailable": 1,
        "selector": {"matchLabels": pod_labels(operator)},
    });
    if let Some(fields) = budget.as_object_mut() {
        fields.insert("spec".to_owned(), spec);
    }
    budget
}

/// Returns the Service of the metrics.
pub fn metrics_service(operator: &str, namespace: &str, port: u16, is_secure: bool) -> Value {
    let name = metrics_service_name(operator);
    let mut service = document(operator, "v1", "Service", &name, Some(namespace));
    set_label(&mut service, "control-plane", CONTROL_PLANE);
    let spec = json!({
        "ports": [{
            "name": if is_secure { "https" } else { "http" },
            "port": port, "protocol": "TCP", "targetPort": port,
        }],
        "selector": pod_labels(operator),
    });
    if let Some(fields) = service.as_object_mut() {
        fields.insert("spec".to_owned(), spec);
    }
    service
}

/// Returns the name of the Service of the metrics: kubebuilder's, or a shorter one if that is too
/// long for a Service.
pub(crate) fn metrics_service_name(operator: &str) -> String {
    let name = format!("{operator}-controller-manager-metrics-service");
    match name.len() <= SERVICE_NAME_MAX {
        true => name,
        false => format!("{operator}-metrics-service"),
    }
}

pub(crate) fn set_label(object: &mut Value, label: &str, value: &str) {
    let labels = object
        .get_mut("metadata")
        .and_then(|it| it.get_mut("labels"));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert(label.to_owned(), json!(value));
    }
}

#[cfg(test)]
mod tests;
