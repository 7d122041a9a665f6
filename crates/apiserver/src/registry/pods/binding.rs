//! The subresource `binding`, with which a scheduler assigns a Pod to a node.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Map, Value, json};

use super::set_condition;
use crate::object;
use crate::registry::{Registry, Write, identity};
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

/// The content of a Binding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binding {
    pub(crate) node: String,
    /// UID that the Pod must have, if not empty.
    uid: String,
    /// Resource version that the Pod must have, if not empty.
    resource_version: String,
    annotations: Map<String, Value>,
    labels: Map<String, Value>,
}

impl Binding {
    /// Returns a binding to a node, without conditions on the Pod.
    pub(crate) fn to(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            ..Self::default()
        }
    }

    /// Reads a `Binding` object for the Pod `name`.
    pub(crate) fn parse(name: &str, body: &Value) -> ApiResult<Self> {
        if object::name(body) != name {
            let message = "name in URL does not match name in Binding object";
            return Err(ApiError::bad_request(message));
        }
        let mut errors = Vec::new();
        let kind = object::at(body, &["target", "kind"]);
        if !matches!(kind.as_str().unwrap_or_default(), "" | "Node") {
            let supported = ["Node", "<empty>"];
            errors.push(FieldError::not_supported("target.kind", kind, &supported));
        }
        let node = object::text(body, &["target", "name"]);
        if node.is_empty() {
            errors.push(FieldError::required("target.name", ""));
        }
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        match texts.as_slice() {
            [] => {}
            [one] => return Err(ApiError::without_reason(500, one.as_str())),
            many => {
                let message = format!("[{}]", many.join(", "));
                return Err(ApiError::without_reason(500, message));
            }
        }
        let map = |field: &str| {
            let map = object::at(body, &["metadata", field]).as_object();
            map.cloned().unwrap_or_default()
        };
        Ok(Self {
            node: node.to_owned(),
            uid: object::uid(body).to_owned(),
            resource_version: object::meta(body, "resourceVersion").to_owned(),
            annotations: map("annotations"),
            labels: map("labels"),
        })
    }
}

impl Registry {
    /// Binds a Pod to a node. As in Kubernetes, no field manager owns the fields that this sets.
    pub(crate) async fn bind(
        &self,
        pod: &Target,
        binding: &Binding,
        dry_run: bool,
    ) -> ApiResult<()> {
        let target = pod.clone().subresource("binding");
        let now = self.clock.now_rfc3339();
        // Admission has seen the Binding.
        let write = Write {
            dry_run,
            is_direct: true,
            ..Write::default()
        };
        self.modify_unmanaged(&target, &write, |live| {
            check(pod, binding, live)?;
            let mut new = live.clone();
            object::set(&mut new, &["spec", "nodeName"], json!(binding.node));
            object::set(&mut new, &["status", "nominatedNodeName"], Value::Null);
            for (field, values) in [
                ("annotations", &binding.annotations),
                ("labels", &binding.labels),
            ] {
                for (key, value) in values {
                    object::set(&mut new, &["metadata", field, key], value.clone());
                }
            }
            let scheduled = json!({"type": "PodScheduled", "status": "True"});
            set_condition(&mut new, scheduled, &now);
            Ok(new)
        })
        .await?;
        Ok(())
    }
}

/// Checks that the Pod `live` can be bound.
fn check(pod: &Target, binding: &Binding, live: &Value) -> ApiResult<()> {
    let precondition = |what: &str, wanted: &str, found: &str| {
        Err(identity::precondition_failed(pod, what, wanted, found))
    };
    if !binding.uid.is_empty() && binding.uid != object::uid(live) {
        return precondition("UID", &binding.uid, object::uid(live));
    }
    let version = object::meta(live, "resourceVersion");
    if !binding.resource_version.is_empty() && binding.resource_version != version {
        return precondition("ResourceVersion", &binding.resource_version, version);
    }
    let name = pod.name.as_str();
    let node = object::text(live, &["spec", "nodeName"]);
    let why = if object::is_deleting(live) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if !object::items(live, &["spec", "schedulingGates"]).is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(ApiError::subresource_conflict(
        &pod.kind, "binding", name, &why,
    ))
}
