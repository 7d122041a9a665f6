//! The plugin `AlwaysPullImages`, which is off by default: each container of a Pod pulls its image
//! when it starts.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::object;

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Reports whether the plugin ignores an update of a Pod: no container has a new image.
pub(super) fn is_ignored(new: &Value, old: Option<&Value>) -> bool {
    let images = |pod: &Value| -> Vec<String> {
        let containers = LISTS
            .iter()
            .flat_map(|list| object::items(pod, &["spec", list]));
        containers
            .map(|container| object::text(container, &["image"]).to_owned())
            .collect()
    };
    old.is_some_and(|old| {
        let old = images(old);
        images(new).iter().all(|image| old.contains(image))
    })
}

/// Sets the pull policies of a Pod.
pub(super) fn admit(pod: &mut Value) {
    let always = || json!("Always");
    for list in LISTS {
        let containers = pod.pointer_mut(&format!("/spec/{list}"));
        let containers = containers.and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            object::set(container, &["imagePullPolicy"], always());
        }
    }
    let volumes = pod.pointer_mut("/spec/volumes");
    let volumes = volumes.and_then(Value::as_array_mut);
    for image in volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| volume.get_mut("image"))
    {
        object::set(image, &["pullPolicy"], always());
    }
}

/// Returns the errors in the pull policies of a Pod.
pub(super) fn errors(pod: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut check = |field: String, policy: &Value| {
        if policy != "Always" {
            let text = json!(policy.as_str().unwrap_or_default());
            errors.push(FieldError::not_supported(field, &text, &["Always"]));
        }
    };
    for list in LISTS {
        for (index, container) in object::items(pod, &["spec", list]).iter().enumerate() {
            let field = format!("spec.{list}[{index}].imagePullPolicy");
            check(field, object::at(container, &["imagePullPolicy"]));
        }
    }
    for (index, volume) in object::items(pod, &["spec", "volumes"]).iter().enumerate() {
        if let Some(image) = volume.get("image") {
            let field = format!("spec.volumes[{index}].image.pullPolicy");
            check(field, object::at(image, &["pullPolicy"]));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
