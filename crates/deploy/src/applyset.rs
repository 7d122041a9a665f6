//! The inventory of a deployment: an ApplySet, as `kubectl apply --applyset` keeps it.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::ObjectReference;

/// Label of the parent object with the id of the set.
pub const ID_LABEL: &str = "applyset.kubernetes.io/id";
/// Label of each member with the id of the set.
pub const PART_OF_LABEL: &str = "applyset.kubernetes.io/part-of";
/// Annotation of the parent with the tool that writes the set.
pub const TOOLING_ANNOTATION: &str = "applyset.kubernetes.io/tooling";
/// Annotation of the parent with the kinds of the members.
pub const CONTAINS_ANNOTATION: &str = "applyset.kubernetes.io/contains-group-kinds";
/// Annotation of the parent with the namespaces of the members, apart from its own.
pub const NAMESPACES_ANNOTATION: &str = "applyset.kubernetes.io/additional-namespaces";

/// Annotation of the parent with the CRDs that were ever deployed. They are not members.
const CRDS_ANNOTATION: &str = "deploy.opkit.dev/custom-resource-definitions";
/// Annotation of the parent with the objects that the operator creates when it runs, as JSON.
const RUNTIME_ANNOTATION: &str = "deploy.opkit.dev/runtime-objects";

/// ApplySet of an operator in a namespace. Its parent is a Secret.
///
/// # Examples
/// ```
/// use opkit_deploy::ApplySet;
/// let set = ApplySet::new("robot-operator", "robots");
/// assert_eq!(set.parent_name(), "robot-operator-applyset");
/// assert!(set.id().starts_with("applyset-") && set.id().ends_with("-v1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplySet {
    operator: String,
    namespace: String,
    id: String,
    /// Kinds of the members, such as `Deployment.apps`.
    pub(crate) kinds: BTreeSet<String>,
    /// Namespaces of the members, with that of the parent.
    pub(crate) namespaces: BTreeSet<String>,
    /// Names of CRDs.
    pub(crate) crds: BTreeSet<String>,
    /// Objects that the operator creates when it runs.
    pub(crate) runtime_objects: Vec<Value>,
}

impl ApplySet {
    /// Creates the set of an operator, without members.
    pub fn new(operator: &str, namespace: &str) -> Self {
        let mut set = Self {
            operator: operator.to_owned(),
            namespace: namespace.to_owned(),
            id: String::new(),
            kinds: BTreeSet::new(),
            namespaces: [namespace.to_owned()].into(),
            crds: BTreeSet::new(),
            runtime_objects: Vec::new(),
        };
        // The hash of name, namespace, kind and group of the parent; the core group is empty.
        let parent = format!("{}.{namespace}.Secret.", set.parent_name());
        let hash = URL_SAFE_NO_PAD.encode(digest(&SHA256, parent.as_bytes()));
        set.id = format!("applyset-{hash}-v1");
        set
    }

    /// Returns the id of the set.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the Secret that is the parent of the set.
    pub fn parent_name(&self) -> String {
        format!("{}-applyset", self.operator)
    }

    /// Adds the kind and the namespace of a member.
    pub(crate) fn add(&mut self, member: &ObjectReference) {
        self.kinds.insert(member.group_kind());
        self.namespaces.extend(member.namespace.clone());
    }

    /// Adds everything that an earlier state of the set contains.
    pub(crate) fn add_all(&mut self, earlier: &Self) {
        self.kinds.extend(earlier.kinds.iter().cloned());
        self.namespaces.extend(earlier.namespaces.iter().cloned());
        self.crds.extend(earlier.crds.iter().cloned());
        for object in &earlier.runtime_objects {
            if !self.runtime_objects.contains(object) {
                self.runtime_objects.push(object.clone());
            }
        }
    }

    /// Returns the parent.
    pub(crate) fn parent(&self) -> Value {
        let join = |names: &BTreeSet<String>| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            names.join(",")
        };
        let mut others = self.namespaces.clone();
        others.remove(&self.namespace);
        let tool = concat!("opkit/v", env!("CARGO_PKG_VERSION"));
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "deploy.opkit.dev/applyset",
            "metadata": {
                "name": self.parent_name(), "namespace": self.namespace,
                "labels": {
                    ID_LABEL: self.id,
                    "app.kubernetes.io/name": self.operator,
                    "app.kubernetes.io/managed-by": "opkit",
                },
                "annotations": {
                    TOOLING_ANNOTATION: tool,
                    CONTAINS_ANNOTATION: join(&self.kinds),
                    NAMESPACES_ANNOTATION: join(&others),
                    CRDS_ANNOTATION: join(&self.crds),
                    RUNTIME_ANNOTATION: Value::from(self.runtime_objects.clone()).to_string(),
                },
            },
        })
    }

    /// Returns the set that a parent describes.
    pub(crate) fn read(operator: &str, namespace: &str, parent: &Value) -> Self {
        let mut set = Self::new(operator, namespace);
        let annotations = parent.pointer("/metadata/annotations");
        let text = |name: &str| {
            let text = annotations.and_then(|it| it.get(name)?.as_str());
            text.unwrap_or_default()
        };
        let names = |name: &str| -> Vec<String> {
            let names = text(name).split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        set.kinds.extend(names(CONTAINS_ANNOTATION));
        set.namespaces.extend(names(NAMESPACES_ANNOTATION));
        set.crds.extend(names(CRDS_ANNOTATION));
        // An unreadable annotation means that another tool wrote the parent.
        set.runtime_objects = serde_json::from_str(text(RUNTIME_ANNOTATION)).unwrap_or_default();
        set
    }
}

#[cfg(test)]
mod tests;
