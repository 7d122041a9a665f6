//! The model of an operator, which its binary prints, and from which the manifests for one cluster
//! are rendered.

mod placement;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::deployment::{CONTAINER, disruption_budget};
use crate::kind_roles::kind_roles;
use crate::object::text;

/// Version of the model's JSON. A binary and a command that are built with different versions of
/// opkit understand each other as long as this is the same.
pub const MODEL_VERSION: &str = "model.opkit.dev/v1";

/// Objects that an operator needs, in the operator's default namespace and with one replica, and
/// the facts that other manifests are rendered from.
///
/// # Examples
/// ```
/// use opkit_manifests::{Model, Part, Settings};
/// use serde_json::json;
///
/// let mut model = Model::new("robot-operator", "1.0.0", "robot-operator-system");
/// model.add(Part::Manager, json!({
///     "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "robot-operator-system"},
/// }));
/// let mut settings = Settings::default();
/// settings.namespace = Some("robots".to_owned());
/// assert_eq!(model.objects(&settings)[0].object["metadata"]["name"], "robots");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Model {
    /// [`MODEL_VERSION`].
    pub api_version: String,
    /// Name of the operator.
    pub operator: String,
    /// Version of the operator's package.
    pub version: String,
    /// Namespace of the objects.
    pub namespace: String,
    /// Whether the operator is limited to the namespace in which it runs.
    #[serde(default)]
    pub namespaced: bool,
    /// Port of the metrics; `None` if they are not served.
    #[serde(default)]
    pub metrics: Option<MetricsPort>,
    /// Port of the webhook server; `None` without webhooks.
    #[serde(default)]
    pub webhook_port: Option<u16>,
    /// Objects, each with the part of the manifests that it belongs to.
    pub objects: Vec<ModelObject>,
    /// Objects that the operator itself creates when it runs, such as its Lease, each with
    /// `apiVersion`, `kind`, name and namespace.
    #[serde(default)]
    pub runtime_objects: Vec<Value>,
}

/// Port on which an operator serves metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsPort {
    /// Number of the port.
    pub port: u16,
    /// Whether the metrics are served over TLS to authorized clients.
    pub secure: bool,
}

/// Object of a [`Model`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelObject {
    /// Part of the manifests.
    pub part: Part,
    /// The object.
    pub object: Value,
}

/// Part of the manifests; kubebuilder has a directory for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Part {
    /// CustomResourceDefinitions.
    Crd,
    /// Namespace, Deployment, PodDisruptionBudget and the Service of the metrics.
    Manager,
    /// ServiceAccount, roles and role bindings.
    Rbac,
    /// Webhook configurations with their Service.
    Webhook,
    /// cert-manager's objects for the webhooks.
    Certmanager,
    /// Admission policies.
    Policy,
    /// ServiceMonitor of the Prometheus operator.
    Prometheus,
    /// NetworkPolicies.
    NetworkPolicy,
    /// Dashboard for Grafana.
    Grafana,
    /// Sample objects.
    Samples,
}

impl Part {
    /// Returns the name of the directory of this part.
    pub fn directory(self) -> &'static str {
        match self {
            Self::Crd => "crd",
            Self::Manager => "manager",
            Self::Rbac => "rbac",
            Self::Webhook => "webhook",
            Self::Certmanager => "certmanager",
            Self::Policy => "policy",
            Self::Prometheus => "prometheus",
            Self::NetworkPolicy => "network-policy",
            Self::Grafana => "grafana",
            Self::Samples => "samples",
        }
    }
}

/// Settings of one cluster.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Image of the operator; that of the model by default.
    pub image: Option<String>,
    /// Namespace of the operator; that of the model by default.
    pub namespace: Option<String>,
    /// Number of replicas; that of the model by default.
    pub replicas: Option<u32>,
    /// Name of the role with the operator's permissions; `<operator>-manager-role` by default.
    pub role_name: Option<String>,
    /// Whether a ServiceMonitor is rendered.
    pub prometheus: bool,
    /// Whether NetworkPolicies are rendered.
    pub network_policy: bool,
    /// Whether a dashboard for Grafana is rendered.
    pub grafana: bool,
}

/// The error of reading a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The text is not a model.
    #[error("the operator does not print a model of its manifests: {0}")]
    Parse(serde_json::Error),
    /// The model is of another version.
    #[error(
        "the operator prints its manifests as {found}, and this command reads {MODEL_VERSION}: build both with the same version of opkit"
    )]
    Version {
        /// Version of the model.
        found: String,
    },
}

impl Model {
    /// Creates a model without objects.
    pub fn new(operator: &str, version: &str, namespace: &str) -> Self {
        Self {
            api_version: MODEL_VERSION.to_owned(),
            operator: operator.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            namespaced: false,
            metrics: None,
            webhook_port: None,
            objects: Vec::new(),
            runtime_objects: Vec::new(),
        }
    }

    /// Adds an object.
    pub fn add(&mut self, part: Part, object: Value) {
        self.objects.push(ModelObject { part, object });
    }

    /// Adds the roles admin, editor and viewer for the users of each CRD of the model.
    pub fn add_kind_roles(&mut self) {
        let namespace = self.namespaced.then_some(self.namespace.as_str());
        let crds = self.objects.iter().filter(|it| it.part == Part::Crd);
        let roles: Vec<_> = crds
            .flat_map(|crd| kind_roles(&self.operator, &crd.object, namespace))
            .collect();
        for role in roles {
            self.add(Part::Rbac, role);
        }
    }

    /// Reads a model from JSON.
    ///
    /// # Errors
    /// If the text is not a model, or a model of another version.
    pub fn parse(json: &str) -> Result<Self, ModelError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            api_version: String,
        }
        let version: Version = serde_json::from_str(json).map_err(ModelError::Parse)?;
        if version.api_version != MODEL_VERSION {
            return Err(ModelError::Version {
                found: version.api_version,
            });
        }
        serde_json::from_str(json).map_err(ModelError::Parse)
    }

    /// Returns the objects for these settings, in the order in which a cluster can create them.
    pub fn objects(&self, settings: &Settings) -> Vec<ModelObject> {
        let namespace = settings.namespace.as_deref().unwrap_or(&self.namespace);
        let mut objects = self.objects.clone();
        let (operator, metrics) = (self.operator.as_str(), self.metrics);
        let mut add = |part, new: Vec<Value>| {
            objects.extend(new.into_iter().map(|object| ModelObject { part, object }));
        };
        let replicas = settings.replicas.unwrap_or_else(|| self.replicas());
        if replicas > 1 {
            add(
                Part::Manager,
                vec![disruption_budget(operator, &self.namespace)],
            );
        }
        if settings.prometheus {
            add(
                Part::Prometheus,
                crate::monitoring::service_monitor(operator, &self.namespace, metrics),
            );
        }
        if settings.network_policy {
            let port = self.webhook_port;
            let policies =
                crate::network_policy::policies(operator, &self.namespace, metrics, port);
            add(Part::NetworkPolicy, policies);
        }
        if settings.grafana {
            let dashboard = crate::grafana::config_map(operator, &self.namespace);
            add(Part::Grafana, vec![dashboard]);
        }
        for ModelObject { object, .. } in &mut objects {
            placement::place(object, &self.namespace, namespace);
            if text(object, "/kind") == "Deployment" {
                set_deployment(object, replicas, settings.image.as_deref());
            }
            if let Some(role) = &settings.role_name {
                placement::rename_role(object, &format!("{operator}-manager-role"), role);
            }
        }
        let existing = is_builtin_namespace(namespace);
        objects.retain(|it| !(existing && text(&it.object, "/kind") == "Namespace"));
        objects.sort_by_cached_key(|it| (order(text(&it.object, "/kind")), key(&it.object)));
        objects
    }

    /// Returns the objects that the operator itself creates when it runs in this namespace.
    pub fn runtime_objects(&self, settings: &Settings) -> Vec<Value> {
        let namespace = settings.namespace.as_deref().unwrap_or(&self.namespace);
        let mut objects = self.runtime_objects.clone();
        for object in &mut objects {
            placement::place(object, &self.namespace, namespace);
        }
        objects
    }

    /// Returns the CRDs.
    pub fn crds(&self) -> Vec<&Value> {
        let crds = self.objects.iter().filter(|it| it.part == Part::Crd);
        crds.map(|it| &it.object).collect()
    }

    /// Returns the image in the operator's Deployment.
    pub fn image(&self) -> Option<&str> {
        let deployment = self.deployment()?;
        let containers = deployment.pointer("/spec/template/spec/containers")?;
        let mut containers = containers.as_array()?.iter();
        let manager = containers.find(|it| text(it, "/name") == CONTAINER)?;
        manager.get("image")?.as_str()
    }

    /// Returns the objects of each part.
    pub(crate) fn parts(objects: Vec<ModelObject>) -> BTreeMap<Part, Vec<Value>> {
        let mut parts: BTreeMap<Part, Vec<Value>> = BTreeMap::new();
        for ModelObject { part, object } in objects {
            parts.entry(part).or_default().push(object);
        }
        parts
    }

    fn deployment(&self) -> Option<&Value> {
        let mut objects = self.objects.iter().map(|it| &it.object);
        objects.find(|object| text(object, "/kind") == "Deployment")
    }

    fn replicas(&self) -> u32 {
        let replicas = self
            .deployment()
            .and_then(|it| it.pointer("/spec/replicas"));
        let replicas = replicas.and_then(Value::as_u64);
        replicas.and_then(|it| it.try_into().ok()).unwrap_or(1)
    }
}

/// Reports whether Kubernetes creates the namespace itself, so that no manifest should.
fn is_builtin_namespace(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}

/// Sets replicas, and the image of the operator's container.
fn set_deployment(deployment: &mut Value, replicas: u32, image: Option<&str>) {
    if let Some(spec) = deployment.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let containers = deployment.pointer_mut("/spec/template/spec/containers");
    let containers = containers.and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        if text(container, "/name") == CONTAINER
            && let (Some(image), Some(fields)) = (image, container.as_object_mut())
        {
            fields.insert("image".to_owned(), image.into());
        }
    }
}

fn key(object: &Value) -> (String, String, String) {
    let field = |pointer: &str| text(object, pointer).to_owned();
    (
        field("/kind"),
        field("/metadata/namespace"),
        field("/metadata/name"),
    )
}

/// Returns the position of a kind in the order of creation: what others refer to comes first, and
/// webhooks, which may refuse other objects, come last.
pub(crate) fn order(kind: &str) -> usize {
    const ORDER: [&str; 18] = [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ConfigMap",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "NetworkPolicy",
        "Service",
        "Issuer",
        "Certificate",
        "Deployment",
        "PodDisruptionBudget",
        "ServiceMonitor",
        "",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let position = |wanted: &str| ORDER.iter().position(|kind| *kind == wanted);
    position(kind).or_else(|| position("")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
