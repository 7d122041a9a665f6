//! Validation of Pods and of Pod templates.

use opkit_apimachinery::structural::FieldError;
use serde_json::json;

use super::field::{Errors, Field};
use super::pod_specs::{self, Context};
use super::{containers, selectors};

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Adds the errors in the spec of a Pod that is created or updated.
pub(super) fn pod(pod: &Field<'_>, errors: &mut Errors) {
    let (metadata, spec) = (pod.get("metadata"), pod.get("spec"));
    annotations(&metadata.get("annotations"), &spec, errors);
    let context = Context {
        metadata: Some(&metadata),
        claims: None,
    };
    pod_specs::pod_spec(&spec, context, errors);
    if spec.get("serviceAccountName").is_empty() {
        let volumes = spec.get("volumes").items();
        let sources = volumes.flat_map(|volume| volume.at(&["projected", "sources"]).items());
        for token in sources.map(|source| source.get("serviceAccountToken")) {
            if token.is_set() {
                let detail = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&token, detail);
            }
        }
    }
    containers::padded_images(&spec.get("containers"), errors);
    containers::padded_images(&spec.get("initContainers"), errors);
}

/// Adds the errors in annotations that have a meaning for Pods.
fn annotations(annotations: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    let mirror = annotations.get(MIRROR);
    if mirror.is_set() && spec.get("nodeName").is_empty() {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid_value(annotations.key(MIRROR), json!(mirror.text()), detail);
    }
    let cost = annotations.get(DELETION_COST);
    let text = cost.text();
    let is_canonical =
        text == "0" || text.starts_with(['-', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    if cost.is_set() && !(is_canonical && text.parse::<i32>().is_ok()) {
        let path = annotations.key(DELETION_COST);
        errors.invalid_value(path, json!(text), "must be a 32bit integer");
    }
}

/// Adds the errors in the template of the Pods of a workload.
pub(super) fn template(template: &Field<'_>, claims: Option<&Field<'_>>, errors: &mut Errors) {
    let metadata = template.get("metadata");
    let (labels, notes) = (metadata.get("labels"), metadata.get("annotations"));
    // The paths of labels and annotations in messages do not have `metadata` in them.
    selectors::labels(&labels.renamed(template.join("labels")), errors);
    let notes = notes.renamed(template.join("annotations"));
    selectors::annotations(&notes, errors);
    let spec = template.get("spec");
    annotations(&notes, &spec, errors);
    let metadata = None;
    pod_specs::pod_spec(&spec, Context { metadata, claims }, errors);
    if !spec.get("ephemeralContainers").is_empty() {
        let path = spec.join("ephemeralContainers");
        let detail = "ephemeral containers not allowed in pod template";
        errors.0.push(FieldError::forbidden(path, detail));
    }
}

/// Adds the errors in a PodTemplate.
pub(super) fn pod_template(object: &Field<'_>, errors: &mut Errors) {
    template(&object.get("template"), None, errors);
}
