//! The `scale` subresource: reads and writes the number of replicas of an object as an
//! `autoscaling/v1` Scale, for any kind that declares the path of the replicas.

use opkit_apimachinery::selector::LabelSelector;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::{Registry, Write, from_storage};
use crate::kinds::ScalePaths;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;

impl Registry {
    pub(super) fn get_scale(&self, target: &Target) -> ApiResult<Value> {
        let object = from_storage(&target.kind, self.stored(target)?.decode());
        Ok(scale_of(&paths(target)?, &object))
    }

    /// Changes the number of replicas of an object through its `scale` subresource, and returns the
    /// object.
    pub(super) fn update_scale(
        &self,
        target: &Target,
        write: &mut Write,
        change: impl Fn(&Value) -> ApiResult<Value>,
    ) -> ApiResult<Committed> {
        let paths = paths(target)?;
        let spec_path = steps(&paths.spec_replicas);
        self.modify(target, write, |live| {
            let scale = change(&scale_of(&paths, live))?;
            let version = object::meta(&scale, "resourceVersion");
            if !version.is_empty() && version != object::meta(live, "resourceVersion") {
                return Err(ApiError::modified(&target.kind, &target.name));
            }
            let replicas = object::at(&scale, &["spec", "replicas"]);
            if !replicas.is_null() && !replicas.is_i64() {
                return Err(ApiError::patch_refused());
            }
            if replicas.as_i64().is_some_and(|replicas| replicas < 0) && !target.kind.is_custom() {
                let detail = "must be greater than or equal to 0";
                let error = FieldError::invalid("spec.replicas", replicas, detail);
                return Err(ApiError::invalid_scale(&target.name, error));
            }
            let mut new = live.clone();
            object::set(&mut new, &spec_path, json!(replicas));
            Ok(new)
        })
    }

    /// Returns the `autoscaling/v1` Scale of a stored object.
    pub(crate) fn scale_from(&self, target: &Target, object: &Value) -> ApiResult<Value> {
        Ok(scale_of(
            &paths(target)?,
            &from_storage(&target.kind, object.clone()),
        ))
    }
}

fn paths(target: &Target) -> ApiResult<ScalePaths> {
    let subresource = target
        .kind
        .subresource("scale")
        .ok_or_else(ApiError::no_such_resource)?;
    Ok(subresource.scale.clone().unwrap_or_else(|| ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: None,
    }))
}

fn steps(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

fn scale_of(paths: &ScalePaths, object: &Value) -> Value {
    let metadata: serde_json::Map<String, Value> = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ]
    .into_iter()
    .map(|field| {
        (
            field.to_owned(),
            object::at(object, &["metadata", field]).clone(),
        )
    })
    .filter(|(_, value)| !value.is_null())
    .collect();
    let mut spec = json!({});
    let replicas = object::int(object, &steps(&paths.spec_replicas));
    if replicas != 0 {
        object::set_field(&mut spec, "replicas", json!(replicas));
    }
    let mut status = json!({"replicas": object::int(object, &steps(&paths.status_replicas))});
    let selector = match &paths.label_selector {
        Some(path) => object::text(object, &steps(path)).to_owned(),
        None => LabelSelector::from_object(object::at(object, &["spec", "selector"]))
            .map(|selector| selector.to_string())
            .unwrap_or_default(),
    };
    if !selector.is_empty() {
        object::set_field(&mut status, "selector", json!(selector));
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    })
}
