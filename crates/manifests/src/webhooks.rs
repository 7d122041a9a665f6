//! Webhook configurations, the Service of the webhook server, and cert-manager's objects.

use serde_json::{Value, json};

use crate::object::document;

/// Port of the Service.
const SERVICE_PORT: u16 = 443;
/// Name of the Secret that cert-manager writes the certificate to; kubebuilder's name.
pub const CERTIFICATE_SECRET: &str = "webhook-server-cert";

/// Label of a namespace with its name, which Kubernetes sets.
pub(crate) const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// Manifests of an operator's webhooks: the mutating and the validating webhook configuration, and
/// the Service of the webhook server. There is no `caBundle` in them: it is written when the
/// operator runs, and a manifest that is applied again must not empty it.
///
/// # Examples
/// ```
/// use opkit_manifests::WebhookManifests;
/// use serde_json::json;
/// let entry = json!({
///     "name": "validate.robot.v1.robot.opkit.dev",
///     "clientConfig": {"service": {"path": "/validate-robot-opkit-dev-v1-robot"}},
/// });
/// let manifests = WebhookManifests::new("robot-operator", "robot-operator-system").validating(entry);
/// let documents = manifests.documents();
/// assert_eq!(documents[1]["webhooks"][0]["clientConfig"]["service"]["port"], 443);
/// ```
#[derive(Debug, Clone)]
pub struct WebhookManifests {
    operator: String,
    /// First part of the names of all objects.
    prefix: String,
    /// First part of the names of the configurations, if it is another one.
    configuration_prefix: Option<String>,
    namespace: String,
    port: u16,
    mutating: Vec<Value>,
    validating: Vec<Value>,
    cert_manager: bool,
    /// Namespaces whose objects the API server sends to the webhooks; empty for all.
    namespaces: Vec<String>,
}

impl WebhookManifests {
    /// Creates the manifests of an operator that runs in `namespace`, without webhooks.
    pub fn new(operator: impl Into<String>, namespace: impl Into<String>) -> Self {
        let operator = operator.into();
        Self {
            prefix: operator.clone(),
            configuration_prefix: None,
            operator,
            namespace: namespace.into(),
            port: 9443,
            mutating: Vec::new(),
            validating: Vec::new(),
            cert_manager: false,
            namespaces: Vec::new(),
        }
    }

    /// Replaces the first part of the names of all objects, for one of several instances of the
    /// operator in one cluster.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Replaces the first part of the names of the webhook configurations alone.
    pub fn configuration_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.configuration_prefix = Some(prefix.into());
        self
    }

    /// Sets the port that the webhook server listens on; 9443 by default.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Limits the webhooks to objects in these namespaces, and cluster-scoped objects. An empty
    /// list means all namespaces.
    pub fn namespaces(mut self, namespaces: Vec<String>) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Adds an entry of the mutating webhook configuration. The path in its client configuration is
    /// completed with the Service.
    pub fn mutating(mut self, webhook: Value) -> Self {
        self.mutating.push(self.completed(webhook));
        self
    }

    /// Adds an entry of the validating webhook configuration, as [`mutating`](Self::mutating) does.
    pub fn validating(mut self, webhook: Value) -> Self {
        self.validating.push(self.completed(webhook));
        self
    }

    /// Sets whether cert-manager issues the certificate: adds an Issuer and a Certificate, and the
    /// annotation with which cert-manager writes the `caBundle`.
    pub fn cert_manager(mut self, enabled: bool) -> Self {
        self.cert_manager = enabled;
        self
    }

    /// Returns the name of the Service.
    pub fn service_name(&self) -> String {
        format!("{}-webhook-service", self.prefix)
    }

    /// Returns the namespace of the Service.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the DNS names under which the API server reaches the Service.
    pub fn dns_names(&self) -> [String; 2] {
        self.dns_names_in(&self.namespace)
    }

    /// Returns the DNS names of the Service if it is in another namespace.
    pub fn dns_names_in(&self, namespace: &str) -> [String; 2] {
        let host = format!("{}.{namespace}.svc", self.service_name());
        [host.clone(), format!("{host}.cluster.local")]
    }

    /// Returns the value of the annotation with which cert-manager writes the `caBundle`, or `None`
    /// without cert-manager. CRDs with a conversion webhook need it too.
    pub fn inject_ca_from(&self) -> Option<String> {
        let name = self.certificate_name();
        self.cert_manager
            .then(|| format!("{}/{name}", self.namespace))
    }

    /// Returns the manifests: the Service, cert-manager's objects if chosen, and the
    /// configurations.
    pub fn documents(&self) -> Vec<Value> {
        let mut documents = vec![self.service()];
        if self.cert_manager {
            documents.extend([self.issuer(), self.certificate()]);
        }
        documents.extend(self.configurations());
        documents
    }

    /// Returns the webhook configurations alone.
    pub fn configurations(&self) -> Vec<Value> {
        let sorts = [
            ("Mutating", "mutating", &self.mutating),
            ("Validating", "validating", &self.validating),
        ];
        let used = sorts.into_iter().filter(|(_, _, all)| !all.is_empty());
        used.map(|(sort, name, webhooks)| {
            let kind = format!("{sort}WebhookConfiguration");
            let name = format!("{name}-webhook-configuration");
            let group = "admissionregistration.k8s.io/v1";
            let mut configuration = self.document(group, &kind, &name, false);
            if let Some(prefix) = &self.configuration_prefix {
                let name = json!(format!("{prefix}-{name}"));
                set_in(&mut configuration, "metadata", "name", name);
            }
            if let Some(certificate) = self.inject_ca_from() {
                let annotations = json!({"cert-manager.io/inject-ca-from": certificate});
                set_in(&mut configuration, "metadata", "annotations", annotations);
            }
            let mut webhooks = webhooks.clone();
            if !self.namespaces.is_empty() {
                webhooks.iter_mut().for_each(|webhook| self.limit(webhook));
            }
            set(&mut configuration, "webhooks", json!(webhooks));
            configuration
        })
        .collect()
    }

    fn service(&self) -> Value {
        let mut service = self.document("v1", "Service", "webhook-service", true);
        let spec = json!({
            "ports": [{
                "name": "webhook", "port": SERVICE_PORT, "protocol": "TCP",
                "targetPort": self.port,
            }],
            "selector": {
                "app.kubernetes.io/name": self.operator, "control-plane": "controller-manager",
            },
        });
        set(&mut service, "spec", spec);
        service
    }

    fn issuer(&self) -> Value {
        let mut issuer = self.document("cert-manager.io/v1", "Issuer", "selfsigned-issuer", true);
        set(&mut issuer, "spec", json!({"selfSigned": {}}));
        issuer
    }

    fn certificate(&self) -> Value {
        let group = "cert-manager.io/v1";
        let mut certificate = self.document(group, "Certificate", "serving-cert", true);
        let issuer = format!("{}-selfsigned-issuer", self.prefix);
        let spec = json!({
            "dnsNames": self.dns_names(),
            "issuerRef": {"kind": "Issuer", "name": issuer},
            "secretName": CERTIFICATE_SECRET,
        });
        set(&mut certificate, "spec", spec);
        certificate
    }

    fn certificate_name(&self) -> String {
        format!("{}-serving-cert", self.prefix)
    }

    /// Adds the Service to the path of an entry.
    fn completed(&self, mut webhook: Value) -> Value {
        let path = webhook.pointer("/clientConfig/service/path").cloned();
        let service = json!({
            "name": self.service_name(), "namespace": self.namespace,
            "path": path.unwrap_or_default(), "port": SERVICE_PORT,
        });
        set(&mut webhook, "clientConfig", json!({"service": service}));
        webhook
    }

    /// Adds the namespaces to the namespace selector of an entry.
    fn limit(&self, webhook: &mut Value) {
        let requirement = json!({
            "key": NAMESPACE_LABEL, "operator": "In", "values": self.namespaces,
        });
        let Some(fields) = webhook.as_object_mut() else {
            return;
        };
        let selector = fields
            .entry("namespaceSelector")
            .or_insert_with(|| json!({}));
        if let Some(selector) = selector.as_object_mut() {
            let all = selector.entry("matchExpressions").or_insert(json!([]));
            if let Some(all) = all.as_array_mut() {
                all.push(requirement);
            }
        }
    }

    fn document(&self, api_version: &str, kind: &str, name: &str, is_namespaced: bool) -> Value {
        let name = format!("{}-{name}", self.prefix);
        let namespace = is_namespaced.then_some(self.namespace.as_str());
        document(&self.operator, api_version, kind, &name, namespace)
    }
}

fn set(document: &mut Value, field: &str, value: Value) {
    if let Some(fields) = document.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

fn set_in(document: &mut Value, parent: &str, field: &str, value: Value) {
    if let Some(parent) = document.get_mut(parent) {
        set(parent, field, value);
    }
}

#[cfg(test)]
mod tests;
