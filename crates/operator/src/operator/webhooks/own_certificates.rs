//! The operator's own certificates for its webhooks: which objects they concern, and the
//! permissions that the operator needs for them.

use std::net::IpAddr;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_apimachinery::names::check_dns_subdomain;
use opkit_certificates::{BundleTarget, KeeperOptions, Periods, TargetKind};
use opkit_client::{hostname, pod_namespace};
use opkit_manifests::{PolicyRule, WebhookManifests};
use serde_json::Value;

use crate::OperatorError;

#[cfg(test)]
mod tests;

/// Settings of the certificates that an operator creates for its own webhooks; see
/// [`WebhookCertificates::Own`](crate::WebhookCertificates::Own).
///
/// # Examples
/// An operator on a developer's machine, whose webhooks an API server calls by a URL:
/// ```
/// # mod opkit { pub use opkit_operator as operator; }
/// let mut options = opkit::operator::RunOptions::default();
/// options.webhook_bind_address = Some(([127, 0, 0, 1], 9443).into());
/// options.own_certificates.hosts = vec!["127.0.0.1".to_owned()];
/// options.own_certificates.namespace = Some("default".to_owned());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnCertificateOptions {
    /// DNS names and IP addresses of the certificate, beside the DNS names of the webhook Service:
    /// for configurations with a `url`, or with a Service of another name.
    pub hosts: Vec<String>,
    /// Name of the Secret; `<operator>-webhook-certificates` by default.
    pub secret: Option<String>,
    /// Namespace of the Secret; the pod's namespace by default, and outside of a pod the namespace
    /// of the manifests.
    pub namespace: Option<String>,
    /// Lifetimes of the certificates, and the delays of a rotation.
    pub periods: Periods,
}

impl OwnCertificateOptions {
    /// Checks the names.
    pub(crate) fn check(&self) -> Result<(), OperatorError> {
        let names = [
            ("the Secret of the webhook certificates", &self.secret),
            ("the namespace of the webhook certificates", &self.namespace),
        ];
        for (what, name) in names {
            check_name(what, name.iter(), check_dns_subdomain)?;
        }
        check_name("the webhook host", self.hosts.iter(), check_host)
    }
}

fn check_name<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a String>,
    check: fn(&str) -> Result<(), String>,
) -> Result<(), OperatorError> {
    for name in names {
        check(name).map_err(|problem| OperatorError::Name {
            what,
            name: name.clone(),
            problem,
        })?;
    }
    Ok(())
}

/// Checks that a certificate can be issued for a host.
///
/// # Errors
/// If the host is neither an IP address nor a DNS name. The error is the rule that it breaks.
pub(crate) fn check_host(host: &str) -> Result<(), String> {
    if host.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let problem = |rule| format!("it is no IP address, and as a DNS name: {rule}");
    check_dns_subdomain(host).map_err(problem)
}

/// Secret, Service and configurations of an operator whose webhooks have certificates of their own
/// authority.
#[derive(Debug)]
pub(crate) struct OwnCertificates {
    operator: String,
    manifests: WebhookManifests,
    targets: Vec<BundleTarget>,
    options: OwnCertificateOptions,
}

impl OwnCertificates {
    pub(crate) fn new(
        operator: &str,
        manifests: WebhookManifests,
        crds: &[CustomResourceDefinition],
        options: OwnCertificateOptions,
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
            options,
        }
    }

    /// Returns the name of the Secret.
    pub(crate) fn secret(&self) -> String {
        let default = || format!("{}-webhook-certificates", self.operator);
        self.options.secret.clone().unwrap_or_else(default)
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
        let namespace = self.options.namespace.clone().or_else(pod_namespace);
        let namespace = namespace.unwrap_or_else(|| self.manifests.namespace().to_owned());
        let mut names = self.manifests.dns_names_in(&namespace).to_vec();
        names.extend(self.options.hosts.iter().cloned());
        KeeperOptions {
            operator: self.operator.clone(),
            secret: self.secret(),
            replica: hostname().unwrap_or_else(|| self.operator.clone()),
            names,
            namespace,
            targets: self.targets.clone(),
            periods: self.options.periods.clone(),
        }
    }
}
