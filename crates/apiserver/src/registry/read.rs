//! Reads of one object and of lists.

use std::cell::LazyCell;
use std::sync::Arc;

use opkit_apimachinery::selector::{FieldSelector, LabelSelector};
use opkit_apimachinery::shard::{ShardError, ShardSelector};
use serde_json::Value;

use super::{Registry, from_storage};
use crate::kinds::Kind;
use crate::query::Query;
use crate::status::{ApiError, ApiResult};
use crate::store::Stored;
use crate::target::Target;

/// The selectors of a list, watch or deletecollection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    labels: Option<LabelSelector>,
    /// The field selector, and the kind whose rules give the values of the selected fields.
    fields: Option<(FieldSelector, Arc<Kind>)>,
    shard: Option<ShardSelector>,
}

impl Filter {
    /// Parses `labelSelector` and `fieldSelector`, and checks that `kind` supports the fields in
    /// the field selector.
    pub(crate) fn parse(kind: &Arc<Kind>, query: &Query) -> ApiResult<Self> {
        let labels = query
            .get("labelSelector")
            .map(LabelSelector::parse)
            .transpose()
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = query
            .get("fieldSelector")
            .map(FieldSelector::parse)
            .transpose()
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        for requirement in fields.iter().flat_map(FieldSelector::requirements) {
            let field = requirement.field.as_str();
            let known = matches!(field, "metadata.name" | "metadata.namespace")
                || kind.field_selectors().contains(&field);
            if !known {
                let is_builtin = !kind.is_custom();
                let message = if is_builtin && kind.field_selectors().is_empty() {
                    format!(
                        "{field:?} is not a known field selector: only \"metadata.name\", \
                         \"metadata.namespace\""
                    )
                } else {
                    format!("field label not supported: {field}")
                };
                return Err(ApiError::bad_request(message));
            }
        }
        Ok(Self {
            labels,
            fields: fields.map(|fields| (fields, kind.clone())),
            shard: None,
        })
    }

    /// Adds the `shardSelector` of the request, which in Kubernetes needs a feature gate.
    pub(crate) fn sharded(mut self, query: &Query) -> ApiResult<Self> {
        self.shard = query
            .get("shardSelector")
            .map(str::parse)
            .transpose()
            .map_err(|error: ShardError| {
                ApiError::without_reason(500, format!("invalid shard selector: {error}"))
            })?;
        Ok(self)
    }

    /// Reports whether there is a label or field selector. A shard selector does not count, because
    /// the `remainingItemCount` of Kubernetes includes all shards.
    pub(crate) fn selects(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    /// Returns the shard selector.
    pub(crate) fn shard(&self) -> Option<&ShardSelector> {
        self.shard.as_ref()
    }

    pub(super) fn is_everything(&self) -> bool {
        !self.selects() && self.shard.is_none()
    }

    /// Reports whether a stored object matches all selectors. Only a field selector for other
    /// fields than name and namespace decodes the object.
    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        self.labels
            .as_ref()
            .is_none_or(|selector| selector.matches(stored.labels().as_ref()))
            && self
                .shard
                .as_ref()
                .is_none_or(|shard| shard.matches(stored.uid(), stored.namespace()))
            && self.fields.as_ref().is_none_or(|(selector, kind)| {
                let object = LazyCell::new(|| from_storage(kind, stored.decode()));
                selector.matches(|field| {
                    Some(match field {
                        "metadata.name" => stored.name().to_owned(),
                        "metadata.namespace" => stored.namespace().to_owned(),
                        field => kind.field_value(&object, field),
                    })
                })
            })
    }
}

impl Registry {
    /// Returns the object that `target` names, in the API version of the request.
    pub(crate) async fn get(&self, target: &Target) -> ApiResult<Value> {
        if target.subresource == "scale" {
            return self.get_scale(target).await;
        }
        let stored = self.stored(target)?;
        self.read_from_storage(&target.kind, stored.decode()).await
    }

    /// Returns the object of a built-in kind that `target` names.
    pub(crate) fn get_builtin(&self, target: &Target) -> ApiResult<Value> {
        Ok(from_storage(&target.kind, self.stored(target)?.decode()))
    }

    /// Returns the stored objects of a kind, and the revision at which they were read.
    pub(crate) fn list(&self, target: &Target, filter: &Filter) -> (Vec<Arc<Stored>>, u64) {
        let namespace = Some(target.namespace.as_str()).filter(|n| !n.is_empty());
        let (mut objects, revision) = self.store.list_stored(&target.storage(), namespace);
        if !filter.is_everything() {
            objects.retain(|object| filter.matches(object));
        }
        (objects, revision)
    }
}
