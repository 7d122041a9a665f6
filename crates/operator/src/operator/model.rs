//! The model of an operator: its objects in a cluster, as `manifests` prints them.

use std::ffi::OsString;

use k8s_openapi::api::apps::v1::Deployment;
use opkit_apimachinery::names::DNS_LABEL_MAX;
use opkit_manifests::{
    CERTIFICATE_SECRET, DeploymentManifest, MetricsPort, Model, Part, metrics_service,
};
use serde_json::{Value, json};

use super::{Operator, RunOptions, WEBHOOK_PORT, WebhookCertificates};
use crate::arguments::{BindAddress, CommandLine, Flags};
use crate::manifests::printing;
use crate::{OperatorError, entry};

/// Port of the metrics in a cluster; kubebuilder's.
const METRICS_PORT: u16 = 8443;
/// Port of the probes in a cluster; kubebuilder's.
const PROBE_PORT: u16 = 8081;
/// Time between the operator's own limit for a shutdown and SIGKILL, in seconds.
const KILL_MARGIN: u64 = 10;

/// Function that changes the Deployment as JSON.
pub(super) type ChangeDeployment =
    Box<dyn FnOnce(Value) -> Result<Value, serde_json::Error> + Send>;

/// Returns a function that decodes the Deployment, changes it and encodes it again. An operator
/// that does not change its Deployment does not contain the code for this.
pub(super) fn change_deployment(
    change: impl FnOnce(&mut Deployment) + Send + 'static,
) -> ChangeDeployment {
    Box::new(|object| {
        let mut deployment: Deployment = serde_json::from_value(object)?;
        change(&mut deployment);
        serde_json::to_value(deployment)
    })
}

impl Operator {
    /// Returns the manifests that the command `manifests` prints without flags, as a model from
    /// which the objects for one cluster are rendered.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; pub use opkit_operator as manifests; }
    /// use opkit::Operator;
    /// use opkit::manifests::Settings;
    ///
    /// let model = Operator::new("map-operator").manifests()?;
    /// let mut settings = Settings::default();
    /// settings.replicas = Some(2);
    /// let objects = model.objects(&settings);
    /// assert!(objects.iter().any(|it| it.object["kind"] == "PodDisruptionBudget"));
    /// # Ok::<(), opkit_operator::OperatorError>(())
    /// ```
    ///
    /// # Errors
    /// If a name of the operator is not valid in Kubernetes, or an object cannot be encoded.
    pub fn manifests(self) -> Result<Model, OperatorError> {
        self.check(&[])?;
        let line = CommandLine::new("operator", &[])?;
        let name = self.name.clone();
        let parsed = line.parse([OsString::from("operator"), OsString::from("manifests")]);
        // There are no arguments that could be wrong; a variable of the environment could be.
        let (arguments, _) = parsed.map_err(|error| OperatorError::Arguments {
            operator: name,
            problem: error.to_string(),
        })?;
        let mut flags = arguments.flags;
        flags.namespace = Vec::new();
        self.model(flags)
    }

    /// Returns the model of an operator that runs in a cluster with these flags. Flags that are not
    /// given have their value in a Deployment: a leader is elected, and metrics and probes are
    /// served.
    pub(super) fn model(mut self, mut flags: Flags) -> Result<Model, OperatorError> {
        flags.leader_elect.get_or_insert(true);
        let every = |port| BindAddress(Some((std::net::Ipv6Addr::UNSPECIFIED, port).into()));
        flags
            .metrics_bind_address
            .get_or_insert(every(METRICS_PORT));
        flags
            .health_probe_bind_address
            .get_or_insert(every(PROBE_PORT));
        let (arguments, grace) = (arguments(&flags), flags.graceful_shutdown_timeout);
        let options = RunOptions::from(flags);

        self.check_service_name()?;
        let rbac = self.rbac(&options);
        let namespace = rbac.own_namespace();
        let version = entry::version().unwrap_or("latest");
        let mut model = Model::new(&self.name, version, &namespace);
        model.namespaced = self.namespaced;
        for crd in &self.crds {
            let crd = serde_json::to_value(crd).map_err(printing)?;
            model.add(Part::Crd, crd);
        }
        for document in rbac.documents() {
            let is_namespace = document.get("kind").is_some_and(|kind| kind == "Namespace");
            let part = match is_namespace {
                true => Part::Manager,
                false => Part::Rbac,
            };
            model.add(part, document);
        }
        model.add_kind_roles();

        model.webhook_port = options
            .webhook_bind_address
            .filter(|_| self.has_webhooks())
            .map(|address| address.port());
        let is_cert_manager = self.webhooks.certificates == WebhookCertificates::CertManager;
        let mut deployment = DeploymentManifest::new(&self.name, &namespace)
            .image(format!("{}:{version}", self.name))
            .arguments(arguments)
            .termination_grace_seconds(grace.as_secs().saturating_add(KILL_MARGIN))
            .probe_port(options.health_probe_bind_address.map(|it| it.port()))
            .webhook_port(model.webhook_port);
        if is_cert_manager && model.webhook_port.is_some() {
            deployment = deployment.webhook_secret(Some(CERTIFICATE_SECRET.to_owned()));
        }
        deployment = match (options.namespaces.is_empty(), self.namespaced) {
            (false, _) => deployment.variable("WATCH_NAMESPACE", &options.namespaces.join(",")),
            (true, true) => deployment.field_variable("WATCH_NAMESPACE", "metadata.namespace"),
            (true, false) => deployment,
        };
        let mut deployment = deployment.document();
        for change in std::mem::take(&mut self.deployment) {
            deployment = change(deployment).map_err(printing)?;
        }
        model.add(Part::Manager, deployment);
        if let Some(address) = options.metrics_bind_address {
            let secure = options
                .metrics_secure
                .unwrap_or(!address.ip().is_loopback());
            let port = address.port();
            model.metrics = Some(MetricsPort { port, secure });
            let service = metrics_service(&self.name, &namespace, port, secure);
            model.add(Part::Manager, service);
        }
        if let Some(webhooks) = self.webhook_manifests(&options) {
            for document in webhooks.documents() {
                let group = document.get("apiVersion").and_then(Value::as_str);
                let is_cert_manager = group.is_some_and(|it| it.starts_with("cert-manager.io/"));
                let part = match is_cert_manager {
                    true => Part::Certmanager,
                    false => Part::Webhook,
                };
                model.add(part, document);
            }
        }
        model.runtime_objects = self.runtime_objects(&options, &namespace);
        for policy in self.policies() {
            model.add(Part::Policy, policy.clone());
        }
        Ok(model)
    }

    /// Checks that the names of the operator's Services are valid.
    fn check_service_name(&self) -> Result<(), OperatorError> {
        let (_, service) = self.webhook_service();
        if service.len() <= DNS_LABEL_MAX {
            return Ok(());
        }
        Err(OperatorError::Name {
            what: "the operator's name",
            name: self.name.clone(),
            problem: format!(
                "a Service would be {service:?}, which must be no more than {DNS_LABEL_MAX} bytes"
            ),
        })
    }

    /// Returns the objects that the operator creates for itself: its Lease, and the Secret with the
    /// certificates of its webhooks.
    fn runtime_objects(&self, options: &RunOptions, namespace: &str) -> Vec<Value> {
        let object = |api_version: &str, kind: &str, name: &str, namespace: &str| {
            json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {"name": name, "namespace": namespace},
            })
        };
        let mut objects = Vec::new();
        if let Some(election) = self.election(options) {
            let namespace = election.namespace.as_deref().unwrap_or(namespace);
            let name = &election.lease_name;
            objects.push(object("coordination.k8s.io/v1", "Lease", name, namespace));
        }
        if let Some(own) = self.own_certificates(options, namespace) {
            objects.push(object("v1", "Secret", &own.secret(), namespace));
        }
        objects
    }
}

/// Returns the arguments of the operator in its Deployment: those that differ from the defaults of
/// `run`. The watched namespaces are an environment variable.
fn arguments(flags: &Flags) -> Vec<String> {
    let mut arguments = Vec::new();
    match flags.leader_elect {
        Some(true) => arguments.push("--leader-elect".to_owned()),
        // An operator may declare a Lease, and then elects a leader unless told otherwise.
        Some(false) => arguments.push("--leader-elect=false".to_owned()),
        None => {}
    }
    if let Some(namespace) = &flags.leader_election_namespace {
        arguments.push(format!("--leader-election-namespace={namespace}"));
    }
    let addresses = [
        ("metrics", &flags.metrics_bind_address),
        ("health-probe", &flags.health_probe_bind_address),
    ];
    for (server, address) in addresses {
        if let Some(BindAddress(Some(address))) = address {
            let address = match address.ip().is_unspecified() {
                true => format!(":{}", address.port()),
                false => address.to_string(),
            };
            arguments.push(format!("--{server}-bind-address={address}"));
        }
    }
    if let Some(is_secure) = flags.metrics_secure {
        arguments.push(format!("--metrics-secure={is_secure}"));
    }
    if let Some(path) = &flags.metrics_cert_path {
        arguments.push(format!("--metrics-cert-path={}", path.display()));
    }
    if flags.webhook_port != WEBHOOK_PORT {
        arguments.push(format!("--webhook-port={}", flags.webhook_port));
    }
    if let Some(path) = &flags.webhook_cert_path {
        arguments.push(format!("--webhook-cert-path={}", path.display()));
    }
    let delay = flags.webhook_shutdown_delay;
    if delay != RunOptions::default().webhook_shutdown_delay {
        arguments.push(format!("--webhook-shutdown-delay={}", delay.as_secs()));
    }
    let grace = flags.graceful_shutdown_timeout;
    if grace != RunOptions::default().grace_period {
        arguments.push(format!("--graceful-shutdown-timeout={}", grace.as_secs()));
    }
    arguments
}

#[cfg(test)]
mod tests;
