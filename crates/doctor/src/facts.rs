//! What is known about an operator and its cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::value::{kind, name, namespace, text};
use crate::{Finding, Look, Report, checks};

/// Manifests of an operator, as they are for one cluster.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct OperatorManifests {
    /// Name of the operator.
    pub operator: String,
    /// Version of the operator.
    pub version: String,
    /// Namespace of the operator.
    pub namespace: String,
    /// Objects that a deployment creates, with the CRDs.
    pub objects: Vec<Value>,
    /// Objects that the operator itself creates when it runs, such as its Lease.
    pub runtime_objects: Vec<Value>,
}

/// Verbs on a resource that the user lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Denied {
    /// Resource with its group, such as `clusterroles.rbac.authorization.k8s.io`.
    pub resource: String,
    /// Namespace; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// Verbs.
    pub verbs: Vec<String>,
}

/// An operator's manifests, and the objects in the cluster that concern it.
///
/// # Examples
/// ```
/// use jiff::Timestamp;
/// use opkit_doctor::{Facts, OperatorManifests};
/// use serde_json::json;
///
/// let mut manifests = OperatorManifests::new("robot-operator", "1.0.0", "robots");
/// manifests.objects.push(json!({
///     "apiVersion": "apps/v1", "kind": "Deployment",
///     "metadata": {"name": "robot-operator-controller-manager", "namespace": "robots"},
/// }));
/// let report = Facts::new(manifests, Timestamp::now()).examine();
/// assert!(report.is_failure());
/// assert!(report.to_string().contains("deployment/robot-operator-controller-manager does not exist"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Facts {
    /// The operator's manifests.
    pub manifests: OperatorManifests,
    /// Name and version of the cluster.
    pub cluster: String,
    /// Time of the diagnosis.
    pub now: Timestamp,
    /// Permissions of a deployment that the user lacks.
    pub denied: Vec<Denied>,
    /// Kinds that could not be read, with the reason.
    pub unread: BTreeMap<String, String>,
    /// Objects of Kubernetes' own kinds, and the operator's CRDs.
    pub objects: Vec<Value>,
    /// Objects of the operator's kinds.
    pub instances: Vec<Value>,
    /// Objects of the newest revision that was deployed; `None` if there is none.
    pub deployed: Option<Vec<Value>>,
    /// Earlier states of the objects of the operator's kinds, the oldest first.
    pub looks: Vec<Look>,
}

impl OperatorManifests {
    /// Creates manifests without objects.
    pub fn new(
        operator: impl Into<String>,
        version: impl Into<String>,
        namespace: impl Into<String>,
    ) -> Self {
        Self {
            operator: operator.into(),
            version: version.into(),
            namespace: namespace.into(),
            ..Self::default()
        }
    }

    /// Returns the objects of a kind.
    pub(crate) fn all<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a Value> {
        let objects = self.objects.iter();
        objects.filter(move |object| kind(object) == wanted)
    }
}

impl Facts {
    /// Creates facts of a cluster without objects.
    pub fn new(manifests: OperatorManifests, now: Timestamp) -> Self {
        Self {
            manifests,
            cluster: String::new(),
            now,
            denied: Vec::new(),
            unread: BTreeMap::new(),
            objects: Vec::new(),
            instances: Vec::new(),
            deployed: None,
            looks: Vec::new(),
        }
    }

    /// Returns the problems, the failures first.
    pub fn examine(&self) -> Report {
        let mut findings: Vec<Finding> = checks::all(self);
        findings.sort_by_key(|finding| finding.severity);
        Report {
            cluster: self.cluster.clone(),
            operator: self.manifests.operator.clone(),
            may_deploy: self.denied.is_empty(),
            findings,
        }
    }

    /// Returns the objects of a kind in the cluster.
    pub(crate) fn all<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a Value> {
        let objects = self.objects.iter();
        objects.filter(move |object| kind(object) == wanted)
    }

    /// Returns an object in the cluster.
    pub(crate) fn find(
        &self,
        kind: &str,
        wanted_namespace: Option<&str>,
        wanted_name: &str,
    ) -> Option<&Value> {
        let mut objects = self.objects.iter();
        objects.find(|object| {
            text(object, "/kind") == kind
                && namespace(object) == wanted_namespace
                && name(object) == wanted_name
        })
    }

    /// Returns the object in the cluster with the identity of an object of the manifests.
    pub(crate) fn live(&self, object: &Value) -> Option<&Value> {
        self.find(kind(object), namespace(object), name(object))
    }

    /// Reports whether an object of the manifests is missing. A kind that could not be read has no
    /// missing objects.
    pub(crate) fn is_missing(&self, object: &Value) -> bool {
        self.is_read(kind(object)) && self.live(object).is_none()
    }

    /// Reports whether all objects of a kind were read.
    pub(crate) fn is_read(&self, kind: &str) -> bool {
        !self.unread.contains_key(kind)
    }

    /// Returns the operator's Deployment in the manifests.
    pub(crate) fn expected_deployment(&self) -> Option<&Value> {
        self.manifests.all("Deployment").next()
    }

    /// Returns the operator's Deployment in the cluster.
    pub(crate) fn deployment(&self) -> Option<&Value> {
        self.live(self.expected_deployment()?)
    }

    /// Reports whether a replica of the operator is available.
    pub(crate) fn is_running(&self) -> bool {
        self.deployment()
            .is_some_and(|it| crate::value::int(it, "/status/availableReplicas") > 0)
    }

    /// Returns the image of the operator's container in a Deployment.
    pub(crate) fn image(deployment: &Value) -> &str {
        let containers = crate::value::items(deployment, "/spec/template/spec/containers");
        let manager = containers.iter().find(|it| text(it, "/name") == "manager");
        manager
            .or(containers.first())
            .map_or("", |it| text(it, "/image"))
    }

    /// Reports whether the operator in the cluster has the image of the manifests.
    pub(crate) fn runs_this_build(&self) -> bool {
        let images = self.deployment().zip(self.expected_deployment());
        images.is_some_and(|(live, expected)| Self::image(live) == Self::image(expected))
    }

    /// Returns the Pods of the operator.
    pub(crate) fn pods(&self) -> Vec<&Value> {
        let Some(deployment) = self.deployment().or_else(|| self.expected_deployment()) else {
            return Vec::new();
        };
        let selector = deployment.pointer("/spec/selector").unwrap_or(&Value::Null);
        let Ok(selector) = opkit_apimachinery::selector::LabelSelector::from_object(selector)
        else {
            return Vec::new();
        };
        let pods = self.all("Pod");
        pods.filter(|pod| {
            namespace(pod) == namespace(deployment) && selector.matches(crate::value::labels(pod))
        })
        .collect()
    }
}
