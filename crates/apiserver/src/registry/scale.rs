//! The `scale` subresource: reads and writes the number of replicas of an object as an
//! `autoscaling/v1` Scale, for any kind that declares the path of the replicas.

mod managers;

use opkit_apimachinery::managedfields::{self, Manager};
use opkit_apimachinery::schema::Definitions;
use opkit_apimachinery::selector::LabelSelector;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::prepare::WrittenBy;
use super::{Registry, Write, identity, merge};
use crate::admission::{self, Attributes};
use crate::kinds::ScalePaths;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;
use managers::Mapping;

/// A change of a Scale.
pub(super) enum ScaleChange<'a> {
    /// By an update or patch: returns the new Scale for the live one.
    Update(&'a (dyn Fn(&Value) -> ApiResult<Value> + Sync)),
    /// By server-side apply of this configuration.
    Apply(&'a Value),
}

impl Registry {
    pub(super) async fn get_scale(&self, target: &Target) -> ApiResult<Value> {
        let stored = self.stored(target)?;
        let object = self
            .read_from_storage(&target.kind, stored.decode())
            .await?;
        Ok(scale_of(&paths(target)?, &object))
    }

    /// Changes the number of replicas of an object through its `scale` subresource, and returns the
    /// object.
    pub(super) async fn update_scale(
        &self,
        target: &Target,
        write: &Write,
        change: &ScaleChange<'_>,
    ) -> ApiResult<Committed> {
        let paths = paths(target)?;
        let spec_path = steps(&paths.spec_replicas);
        let api_version = target.kind.api_version();
        let mapping = Mapping {
            path: &spec_path,
            api_version: &api_version,
        };
        self.modify_by(WrittenBy::Storage, target, write, |live| {
            let managers = object::items(live, &["metadata", "managedFields"]);
            let mut before = scale_of(&paths, live);
            let of_scale = mapping.to_scale(managers);
            if !of_scale.is_empty() {
                object::set_meta(&mut before, "managedFields", json!(of_scale));
            }
            let scale = self.changed_scale(&before, write, change)?;
            if let ScaleChange::Apply(config) = change
                && target.kind.is_custom()
            {
                check_convertible(config, &before, &scale)?;
            }
            check_scale(target, live, &scale)?;
            let replicas = object::at(&scale, &["spec", "replicas"]);
            let mut new = live.clone();
            let replicas = replicas.as_i64().unwrap_or_default();
            object::set(&mut new, &spec_path, json!(replicas));
            let of_scale = object::items(&scale, &["metadata", "managedFields"]);
            let managers = mapping.to_parent(managers, of_scale);
            object::set_meta(&mut new, "managedFields", json!(managers));
            Ok(new)
        })
        .await
    }

    /// Runs the mutating phase of admission on the Scale of a changed object, and sets the replicas
    /// in the object.
    pub(super) async fn mutate_scale(
        &self,
        attributes: &Attributes<'_>,
        new: &mut Value,
    ) -> ApiResult<()> {
        let paths = paths(attributes.target)?;
        let old = attributes.old.map(|old| scale_of(&paths, old));
        let mut scale = scale_of(&paths, new);
        let attributes = Attributes {
            old: old.as_ref(),
            ..*attributes
        };
        admission::mutate(self, &attributes, &mut scale).await?;
        let replicas = object::int(&scale, &["spec", "replicas"]);
        object::set(new, &steps(&paths.spec_replicas), json!(replicas));
        Ok(())
    }

    /// Runs the validating phase of admission on the Scale of a changed object.
    pub(super) async fn validate_scale(
        &self,
        attributes: &Attributes<'_>,
        new: &Value,
    ) -> ApiResult<()> {
        let paths = paths(attributes.target)?;
        let old = attributes.old.map(|old| scale_of(&paths, old));
        let attributes = Attributes {
            old: old.as_ref(),
            ..*attributes
        };
        admission::validate(self, &attributes, Some(&scale_of(&paths, new))).await
    }

    /// Returns the new Scale with its managers.
    fn changed_scale(
        &self,
        before: &Value,
        write: &Write,
        change: &ScaleChange<'_>,
    ) -> ApiResult<Value> {
        let schema = self
            .schemas
            .definition("io.k8s.api.autoscaling.v1.Scale")
            .ok_or_else(|| ApiError::internal("no schema for Scale"))?;
        let typed = self.schemas.typed(&schema);
        let manager = Manager {
            name: &write.manager,
            api_version: managers::API_VERSION,
            subresource: "scale",
        };
        let time = self.clock.now_rfc3339();
        match change {
            ScaleChange::Update(change) => {
                let mut new = change(before)?;
                // As in Go, replicas that are left out are 0, and 0 is not in the JSON.
                if object::at(&new, &["spec", "replicas"]) == 0 {
                    object::set(&mut new, &["spec", "replicas"], Value::Null);
                }
                let status = object::at(before, &["status"]).clone();
                let mut comparable = new.clone();
                object::set(&mut comparable, &["status"], status);
                managedfields::update(Some(before), &mut comparable, &typed, &manager, &time);
                let managers = object::at(&comparable, &["metadata", "managedFields"]).clone();
                object::set_meta(&mut new, "managedFields", managers);
                Ok(new)
            }
            ScaleChange::Apply(config) => {
                let mut config = Value::clone(config);
                object::set(&mut config, &["status"], Value::Null);
                managedfields::apply(Some(before), &config, &typed, &manager, write.force, &time)
                    .map_err(merge::apply_error)
            }
        }
    }

    /// Returns the `autoscaling/v1` Scale of a stored object.
    pub(crate) async fn scale_from(&self, target: &Target, object: &Value) -> ApiResult<Value> {
        let object = self.read_from_storage(&target.kind, object.clone()).await?;
        Ok(scale_of(&paths(target)?, &object))
    }
}

/// Returns the error of Kubernetes for a server-side apply that changes the Scale of a custom
/// resource: its converter knows only the versions of the custom resource.
fn check_convertible(config: &Value, before: &Value, scale: &Value) -> ApiResult<()> {
    let replicas = |scale: &Value| object::int(scale, &["spec", "replicas"]);
    if replicas(before) == replicas(scale) {
        return Ok(());
    }
    let message = format!(
        "failed to convert new object ({}/{}; autoscaling/v1, Kind=Scale) to proper version: request \
         to convert CR to an invalid group/version: autoscaling/v1",
        object::namespace(config),
        object::name(config)
    );
    Err(ApiError::without_reason(500, message))
}

/// Checks the new Scale of the object `live`.
fn check_scale(target: &Target, live: &Value, scale: &Value) -> ApiResult<()> {
    let version = object::meta(scale, "resourceVersion");
    if !version.is_empty() && version != object::meta(live, "resourceVersion") {
        return Err(ApiError::modified(&target.kind, &target.name));
    }
    let (wanted, found) = (object::uid(scale), object::uid(live));
    if !wanted.is_empty() && wanted != found {
        let object = Target::new(&target.kind, &target.namespace, &target.name);
        return Err(identity::precondition_failed(&object, "UID", wanted, found));
    }
    let replicas = object::at(scale, &["spec", "replicas"]);
    if !replicas.is_null() && !replicas.is_i64() {
        return Err(ApiError::patch_refused());
    }
    if replicas.as_i64().is_some_and(|replicas| replicas < 0) && !target.kind.is_custom() {
        let detail = "must be greater than or equal to 0";
        let error = FieldError::invalid("spec.replicas", replicas, detail);
        return Err(ApiError::invalid_scale(&target.name, error));
    }
    Ok(())
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

/// Returns the selector of a workload. That of a ReplicationController is a map of labels.
fn selector_of(object: &Value) -> Value {
    let selector = object::at(object, &["spec", "selector"]);
    match object::text(object, &["kind"]) {
        "ReplicationController" => json!({"matchLabels": selector}),
        _ => selector.clone(),
    }
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
        None => LabelSelector::from_object(&selector_of(object))
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
