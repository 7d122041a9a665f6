//! The operator's own certificates for its webhooks: which objects they concern, and the
//! permissions that the operator needs for them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_certificates::{BundleTarget, KeeperOptions, Periods, TargetKind};
use opkit_client::{hostname, pod_namespace};
use opkit_manifests::{PolicyRule, WebhookManifests};
use serde_json::Value;

/// Secret, Service and configurations of an operator whose webhooks have certificates of their own
/// authority.
#[derive(Debug)]
pub(crate) struct OwnCertificates {
    operator: String,
    manifests: WebhookManifests,
    targets: Vec<BundleTarget>,
}

impl OwnCertificates {
    pub(crate) fn new(
        operator: &str,
        manifests: WebhookManifests,
        crds: &[CustomResourceDefinition],
    ) -> Self {
        let text = |value: &Value, path: &str| {
            let text = value.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let configurations = manifests.configurations();
        let configurations = configurations.iter().map(|configuration| BundleTarget {
            kind: match text(configuration, "/kind").starts_with("Mutating") {
                true => TargetKind::Mutating,
                false => TargetKind::Validating,
            },
            name: text(configuration, "/metadata/name"),
        });
        let converted = crds.iter().filter(|crd| {
            let conversion = crd.spec.conversion.as_ref();
            conversion.is_some_and(|conversion| conversion.webhook.is_some())
        });
        let converted = converted.map(|crd| BundleTarget {
            kind: TargetKind::CustomResourceDefinition,
            name: crd.metadata.name.clone().unwrap_or_default(),
        });
        Self {
            operator: operator.to_owned(),
            targets: configurations.chain(converted).collect(),
            manifests,
        }
    }

    /// Returns the name of the Secret.
    pub(crate) fn secret(&self) -> String {
        format!("{}-webhook-certificates", self.operator)
    }

    /// Returns the permissions on objects without a namespace: to read the targets and to write
    /// their `caBundle`.
    pub(crate) fn rules(&self) -> Vec<PolicyRule> {
        let kinds = [
            (TargetKind::Mutating, "mutatingwebhookconfigurations"),
            (TargetKind::Validating, "validatingwebhookconfigurations"),
            (
                TargetKind::CustomResourceDefinition,
                "customresourcedefinitions",
            ),
        ];
        let rules = kinds.into_iter().map(|(kind, resource)| {
            let targets = self.targets.iter().filter(|target| target.kind == kind);
            let names: Vec<&str> = targets.map(|target| target.name.as_str()).collect();
            let group = match kind {
                TargetKind::CustomResourceDefinition => "apiextensions.k8s.io",
                _ => "admissionregistration.k8s.io",
            };
            let rule = PolicyRule::new(group, [resource], ["get", "list", "patch", "watch"]);
            rule.cluster_scoped().named(names)
        });
        rules.filter(|rule| !rule.names.is_empty()).collect()
    }

    /// Returns the options of the task that keeps the certificates. In a pod, its namespace is the
    /// one that counts, because manifests can be installed in another namespace than they were
    /// printed for.
    pub(crate) fn keeper(&self) -> KeeperOptions {
        let namespace = pod_namespace().unwrap_or_else(|| self.manifests.namespace().to_owned());
        KeeperOptions {
            operator: self.operator.clone(),
            secret: self.secret(),
            replica: hostname().unwrap_or_else(|| self.operator.clone()),
            names: self.manifests.dns_names_in(&namespace).to_vec(),
            namespace,
            targets: self.targets.clone(),
            periods: Periods::default(),
        }
    }
}
