//! A request in the version in which a webhook or a policy wants it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Attributes, Operation};
use crate::kinds::Kind;
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;

/// A request, with its objects converted to one version.
#[derive(Debug)]
pub(crate) struct Presented<'a> {
    pub(crate) attributes: &'a Attributes<'a>,
    /// The kind of the resource, in the version of the objects.
    pub(crate) kind: Arc<Kind>,
    /// The new object. Null for a delete.
    pub(crate) object: Value,
    /// The object before the request. Null for a create.
    pub(crate) old: Value,
}

impl<'a> Presented<'a> {
    /// Converts the objects of a request to the version of `kind`.
    pub(crate) async fn new(
        registry: &Registry,
        attributes: &'a Attributes<'a>,
        kind: Arc<Kind>,
        object: Option<&Value>,
    ) -> ApiResult<Self> {
        let convert = async |object: Option<&Value>| match object {
            Some(object) => convert(registry, attributes, &kind, object).await,
            None => Ok(Value::Null),
        };
        Ok(Self {
            object: convert(object).await?,
            old: convert(attributes.old).await?,
            kind: kind.clone(),
            attributes,
        })
    }
}

/// Converts an object of a request to the version of `kind`. The object of a subresource with a
/// kind of its own, such as a Scale, is not converted.
async fn convert(
    registry: &Registry,
    attributes: &Attributes<'_>,
    kind: &Arc<Kind>,
    object: &Value,
) -> ApiResult<Value> {
    let requested = attributes.kind();
    let is_same = requested.group == kind.group && requested.version == kind.version;
    if is_same || has_own_kind(requested, &attributes.target.subresource) {
        return Ok(object.clone());
    }
    registry
        .convert_request(requested, kind, object.clone())
        .await
}

/// Converts an object that was presented in the version of `kind` back to that of the request.
pub(crate) async fn convert_back(
    registry: &Registry,
    attributes: &Attributes<'_>,
    kind: &Arc<Kind>,
    object: Value,
) -> ApiResult<Value> {
    let requested = attributes.kind();
    let is_same = requested.group == kind.group && requested.version == kind.version;
    if is_same || has_own_kind(requested, &attributes.target.subresource) {
        return Ok(object);
    }
    registry.convert_request(kind, requested, object).await
}

fn has_own_kind(kind: &Kind, subresource: &str) -> bool {
    kind.subresource(subresource)
        .is_some_and(|subresource| subresource.response.is_some())
}

/// Returns the fields of an AdmissionRequest, except the objects, the options and `dryRun`.
pub(crate) fn fields(presented: &Presented<'_>) -> Map<String, Value> {
    let attributes = presented.attributes;
    let subresource = attributes.target.subresource.as_str();
    let mut fields = Map::new();
    let mut set = |field: &str, value: Value| {
        if !matches!(&value, Value::String(text) if text.is_empty()) {
            fields.insert(field.to_owned(), value);
        }
    };
    set("kind", kind_reference(&presented.kind, subresource));
    set("resource", resource_reference(&presented.kind));
    set("subResource", json!(subresource));
    set(
        "requestKind",
        kind_reference(attributes.kind(), subresource),
    );
    set("requestResource", resource_reference(attributes.kind()));
    set("requestSubResource", json!(subresource));
    set("name", json!(attributes.name));
    set("namespace", json!(attributes.namespace()));
    set("operation", json!(attributes.operation.as_str()));
    set("userInfo", attributes.user().to_user_info());
    fields
}

fn resource_reference(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "resource": kind.plural})
}

/// Returns group, version and kind of the objects of a kind, or of a subresource of it.
fn kind_reference(kind: &Kind, subresource: &str) -> Value {
    let own = kind
        .subresource(subresource)
        .and_then(|subresource| subresource.response.as_ref());
    match own {
        Some((group, version, kind)) => {
            json!({"group": group, "version": version, "kind": kind})
        }
        None => json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
    }
}

/// Fields of `metadata` that a new object does not have yet when it is mutated.
const NOT_YET_SET: [&str; 3] = ["creationTimestamp", "generation", "uid"];

/// Fields that are removed from a new object while it is mutated. As in Kubernetes, the server sets
/// them later, and generates the name later.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    fields: Vec<(&'static str, Value)>,
}

impl Hidden {
    /// Removes the fields from the object of a create. Does nothing for other operations.
    pub(crate) fn take(attributes: &Attributes<'_>, object: &mut Value) -> Self {
        let is_stored = attributes.target.subresource.is_empty();
        if attributes.operation != Operation::Create || !is_stored {
            return Self::default();
        }
        let is_generated = attributes.name.is_empty();
        let names = NOT_YET_SET
            .into_iter()
            .chain(is_generated.then_some("name"));
        let metadata = object::as_map(object)
            .get_mut("metadata")
            .and_then(Value::as_object_mut);
        let Some(metadata) = metadata else {
            return Self::default();
        };
        let fields = names.filter_map(|name| Some((name, metadata.remove(name)?)));
        Self {
            fields: fields.collect(),
        }
    }

    /// Sets the fields again. A name that was set meanwhile stays.
    pub(crate) fn restore(self, object: &mut Value) {
        for (field, value) in self.fields {
            if field != "name" || object::name(object).is_empty() {
                object::set_meta(object, field, value);
            }
        }
    }
}
