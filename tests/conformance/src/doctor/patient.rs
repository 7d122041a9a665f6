//! An operator that is examined.

use k8s_openapi::api::apps::v1::Deployment;
use opkit::client::{DeleteOptions, DynamicClient, DynamicResource, Kind, Patch, Unstructured};
use opkit::manifests::Settings;
use opkit::prelude::*;
use opkit::testing::Capability;
use opkit_deploy::{Deployer, Progress, Release};
use opkit_doctor::{Doctor, Facts, OperatorManifests, Report, Severity};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

/// A resource: group, kind, plural, and whether it is namespaced.
pub(super) type Resource = (&'static str, &'static str, &'static str, bool);

pub(super) const API_SERVICES: Resource =
    ("apiregistration.k8s.io", "APIService", "apiservices", false);
pub(super) const CRDS: Resource = (
    "apiextensions.k8s.io",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    false,
);
pub(super) const DEPLOYMENTS: Resource = ("apps", "Deployment", "deployments", true);
pub(super) const EVENTS: Resource = ("", "Event", "events", true);
pub(super) const LEASES: Resource = ("coordination.k8s.io", "Lease", "leases", true);
pub(super) const NAMESPACES: Resource = ("", "Namespace", "namespaces", false);
pub(super) const PODS: Resource = ("", "Pod", "pods", true);
pub(super) const QUOTAS: Resource = ("", "ResourceQuota", "resourcequotas", true);
pub(super) const ROLES: Resource = (
    "rbac.authorization.k8s.io",
    "ClusterRole",
    "clusterroles",
    false,
);
pub(super) const ROLE_BINDINGS: Resource = (
    "rbac.authorization.k8s.io",
    "ClusterRoleBinding",
    "clusterrolebindings",
    false,
);
pub(super) const SECRETS: Resource = ("", "Secret", "secrets", true);
pub(super) const SERVICE_ACCOUNTS: Resource = ("", "ServiceAccount", "serviceaccounts", true);
pub(super) const SERVICES: Resource = ("", "Service", "services", true);
pub(super) const WEBHOOKS: Resource = (
    "admissionregistration.k8s.io",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    false,
);

/// Number of reports until a finding must be there, or gone; a passing test needs few.
const REPORTS_MAX: u32 = 600;

/// Secret with the serving certificate.
pub(super) const CERTIFICATE: &str = "certificates";

pub(super) struct Patient {
    pub(super) manifests: OperatorManifests,
    pub(super) plane: ControlPlane,
    /// A part of all names, known to this test only.
    pub(super) unique: String,
}

/// Checks that a report has a finding with these words in its sentence or command.
#[track_caller]
pub(super) fn has(report: &Report, severity: Severity, check: &str, words: &[&str]) {
    assert!(
        is_in(report, severity, check, words),
        "{check} {words:?} is not in\n{report}"
    );
}

fn is_in(report: &Report, severity: Severity, check: &str, words: &[&str]) -> bool {
    report.findings.iter().any(|finding| {
        let command = finding.command.as_deref().unwrap_or_default();
        let text = format!("{} {command}", finding.message);
        finding.severity == severity
            && finding.check == check
            && words.iter().all(|word| text.contains(word))
    })
}

impl Patient {
    /// Creates an operator that is not deployed.
    pub(super) fn new(plane: &ControlPlane) -> opkit::Result<Self> {
        let namespace = plane.namespace();
        let start = namespace.len().saturating_sub(8);
        let unique = namespace.get(start..).unwrap_or(namespace).to_owned();
        let operator = format!("patient-{unique}");
        let mut settings = Settings::default();
        settings.namespace = Some(namespace.to_owned());
        settings.image = Some("acme/patient:1.0.0".to_owned());
        let rule = opkit::operator::PolicyRule::new("", ["configmaps"], ["get", "list"]);
        let model = Operator::new(&*operator).rule(rule).manifests()?;
        let mut manifests = OperatorManifests::new(&*operator, "1.0.0", namespace);
        let objects = model.objects(&settings).into_iter();
        manifests.objects = objects.map(|it| it.object).collect();
        let mut patient = Self {
            manifests,
            plane: plane.clone(),
            unique,
        };
        let (crd, service) = (patient.crd(), patient.service());
        let webhooks = patient.webhook_configuration();
        patient.manifests.objects.extend([crd, service, webhooks]);
        patient.manifests.runtime_objects = vec![
            json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": CERTIFICATE, "namespace": namespace}}),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "leader", "namespace": namespace}}),
        ];
        Ok(patient)
    }

    /// Deploys an operator, and waits until it has no findings.
    pub(super) async fn deployed(plane: &ControlPlane) -> opkit::Result<Self> {
        plane.require(Capability::ControllerManager)?;
        let patient = Self::new(plane)?;
        let mut release = Release::new(&patient.manifests.operator, "1.0.0", plane.namespace());
        for object in &patient.manifests.objects {
            release.add(object.clone());
        }
        let deployer = Deployer::new(plane.client());
        deployer.deploy(&release, &mut |_: Progress| {}).await?;
        patient.certify(&patient.host()).await?;
        patient.add_instance("one", plane.namespace()).await?;
        let mut last = None;
        for _ in 0..REPORTS_MAX {
            let report = patient.report().await?;
            if report.findings.is_empty() {
                return Ok(patient);
            }
            last = Some(report);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("a healthy operator has findings:\n{}", last.unwrap());
    }

    /// Deletes what is outside of the namespace of the test.
    pub(super) async fn remove(self) -> opkit::Result {
        for object in &self.manifests.objects {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            for resource in [&WEBHOOKS, &CRDS, &ROLES, &ROLE_BINDINGS] {
                if object["kind"] == resource.1 {
                    self.delete(resource, name).await?;
                }
            }
        }
        Ok(())
    }

    pub(super) async fn facts(&self) -> opkit::Result<Facts> {
        let doctor = Doctor::new(self.plane.client());
        Ok(doctor.read(self.manifests.clone()).await?)
    }

    pub(super) async fn report(&self) -> opkit::Result<Report> {
        Ok(self.facts().await?.examine())
    }

    pub(super) async fn report_as(&self, client: kube::Client) -> opkit::Result<Report> {
        let facts = Doctor::new(client).read(self.manifests.clone()).await?;
        Ok(facts.examine())
    }

    /// Waits until there is a finding with these words.
    pub(super) async fn finds(
        &self,
        severity: Severity,
        check: &str,
        words: &[&str],
    ) -> opkit::Result<Report> {
        self.finds_after(0, severity, check, words).await
    }

    /// Waits until there is a finding with these words, if this many hours had passed.
    pub(super) async fn finds_after(
        &self,
        hours: i64,
        severity: Severity,
        check: &str,
        words: &[&str],
    ) -> opkit::Result<Report> {
        let mut last = None;
        for _ in 0..REPORTS_MAX {
            let mut facts = self.facts().await?;
            facts.now += jiff::SignedDuration::from_hours(hours);
            let report = facts.examine();
            if is_in(&report, severity, check, words) {
                return Ok(report);
            }
            last = Some(report);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{check} {words:?} is not in\n{}", last.unwrap());
    }

    pub(super) fn resource(&self, resource: &Resource) -> DynamicResource {
        let (group, kind, plural, namespaced) = resource;
        self.of_kind(Kind {
            group: (*group).to_owned(),
            version: "v1".to_owned(),
            kind: (*kind).to_owned(),
            plural: (*plural).to_owned(),
            namespaced: *namespaced,
        })
    }

    fn of_kind(&self, kind: Kind) -> DynamicResource {
        DynamicClient::new(self.plane.client()).resource(kind)
    }

    /// Returns the client of the operator's kind.
    pub(super) fn instances(&self) -> DynamicResource {
        self.of_kind(Kind {
            group: self.group(),
            version: "v1".to_owned(),
            kind: "Patient".to_owned(),
            plural: "patients".to_owned(),
            namespaced: true,
        })
    }

    pub(super) async fn create(&self, resource: &Resource, object: Value) -> opkit::Result {
        let object = Unstructured::from(object);
        self.resource(resource).create(&object).await?;
        Ok(())
    }

    pub(super) async fn patch(
        &self,
        resource: &Resource,
        name: &str,
        patch: Value,
    ) -> opkit::Result {
        self.resource(resource)
            .patch(name, Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    pub(super) async fn delete(&self, resource: &Resource, name: &str) -> opkit::Result {
        let deleted = self
            .resource(resource)
            .delete(name, &DeleteOptions::background())
            .await;
        match deleted {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Changes the Deployment, whose Pods are replaced at once.
    pub(super) async fn patch_deployment(&self, mut patch: Value) -> opkit::Result {
        patch["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": null});
        self.patch(&DEPLOYMENTS, &self.deployment(), patch).await
    }

    /// Creates an object of the operator's kind, which is ready.
    pub(super) async fn add_instance(&self, name: &str, namespace: &str) -> opkit::Result {
        let instance =
            json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"size": 1}});
        let instances = self.instances();
        instances.create(&Unstructured::from(instance)).await?;
        let status = json!({"status": {"observedGeneration": 1, "conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": jiff::Timestamp::now().to_string(),
        }]}});
        let key = opkit::client::ObjectKey {
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        instances
            .subresource("status")
            .patch(key, Patch::Merge(&status))
            .await?;
        Ok(())
    }

    /// Creates a certificate for a name, and writes it and its authority to the cluster.
    pub(super) async fn certify(&self, name: &str) -> opkit::Result {
        let (serving, authority) = issue(name);
        let secret = json!({
            "metadata": {"name": CERTIFICATE}, "data": {"tls.crt": base64(&serving)},
        });
        self.delete(&SECRETS, CERTIFICATE).await?;
        self.create(&SECRETS, secret).await?;
        self.trust(&authority).await
    }

    /// Writes an authority to the webhook configuration.
    pub(super) async fn trust(&self, authority: &str) -> opkit::Result {
        let mut webhooks = self.webhook_configuration()["webhooks"].clone();
        webhooks[0]["clientConfig"]["caBundle"] = json!(base64(authority));
        self.patch(&WEBHOOKS, &self.webhooks(), json!({"webhooks": webhooks}))
            .await
    }

    pub(super) fn group(&self) -> String {
        format!("{}.opkit.dev", self.unique)
    }

    pub(super) fn crd_name(&self) -> String {
        format!("patients.{}", self.group())
    }

    pub(super) fn deployment(&self) -> String {
        format!("{}-controller-manager", self.manifests.operator)
    }

    pub(super) fn webhooks(&self) -> String {
        format!("{}-validating", self.manifests.operator)
    }

    pub(super) fn role(&self) -> String {
        format!("{}-manager-role", self.manifests.operator)
    }

    /// Returns the DNS name of the webhooks.
    pub(super) fn host(&self) -> String {
        format!("webhooks.{}.svc", self.plane.namespace())
    }

    /// Waits until a Pod of the Deployment has gates, and returns its name.
    pub(super) async fn gated_pod(&self) -> opkit::Result<String> {
        let gates = json!({"spec": {"template": {"spec": {"schedulingGates": [{"name": "test.opkit.dev/wait"}]}}}});
        self.patch_deployment(gates).await?;
        let gated = |deployment: &Deployment| {
            let status = deployment.status.clone().unwrap_or_default();
            status.available_replicas.unwrap_or_default() == 0
                && status.updated_replicas.unwrap_or_default() == 1
        };
        self.plane.eventually(self.deployment(), gated).await?;
        let pods = self.resource(&PODS);
        let options = opkit::client::ListOptions::new().in_namespace(self.plane.namespace());
        let pods = pods.list(&options).await?.items;
        let mut gated = pods
            .iter()
            .filter(|pod| pod.get(&["spec", "schedulingGates"]).is_some());
        Ok(gated.next().expect("a Pod with gates").name().to_owned())
    }

    fn crd(&self) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd_name()},
            "spec": {
                "group": self.group(), "scope": "Namespaced",
                "names": {"plural": "patients", "singular": "patient", "kind": "Patient",
                    "listKind": "PatientList", "shortNames": ["pt"]},
                "versions": [version("v1", true), version("v1alpha1", false)],
            },
        })
    }

    fn service(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "webhooks", "namespace": self.plane.namespace()},
            "spec": {
                "ports": [{"name": "webhook", "port": 443, "targetPort": 9443}],
                "selector": {"app.kubernetes.io/name": self.manifests.operator},
            },
        })
    }

    /// Returns a configuration with a webhook that is called for objects with a label only.
    pub(super) fn webhook_configuration(&self) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.webhooks()},
            "webhooks": [{
                "name": format!("v.{}", self.group()),
                "clientConfig": {"service": {
                    "name": "webhooks", "namespace": self.plane.namespace(), "port": 443,
                }},
                "rules": [{"apiGroups": [self.group()], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["patients"]}],
                "objectSelector": {"matchLabels": {"checked": "true"}},
                "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 10,
                "admissionReviewVersions": ["v1"],
            }],
        })
    }
}

fn version(name: &str, storage: bool) -> Value {
    let condition = json!({"type": "object", "properties": {
        "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
        "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }});
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "status": {"type": "object", "properties": {
                "observedGeneration": {"type": "integer"},
                "conditions": {"type": "array", "items": condition},
            }},
        }}},
    })
}

/// Returns a serving certificate and its authority, which are valid for ninety days.
pub(super) fn issue(name: &str) -> (String, String) {
    let day = |days: i64| {
        let now = jiff::Timestamp::now().as_second();
        let time = std::time::Duration::from_secs((now + days * 86_400).unsigned_abs());
        rcgen::date_time_ymd(1970, 1, 1) + time
    };
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (day(-1), day(365));
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (day(-1), day(90));
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &issuer).unwrap().pem(), authority)
}

pub(super) fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
