//! The target of a request: a resource, an object or a subresource.

use std::borrow::Cow;
use std::sync::Arc;

use opkit_apimachinery::identity::ResourcePath;

use crate::kinds::{Catalog, Kind, NotServed};
use crate::registry::storage_name;
use crate::status::{ApiError, ApiResult};
use crate::store::Key;

/// The object or subresource that a request reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    /// Namespace; empty for cluster-scoped kinds, and for lists across all namespaces.
    pub(crate) namespace: String,
    /// Name of the object; empty for requests on a collection. In a create request, only the body
    /// has the name.
    pub(crate) name: String,
    /// Name of the subresource; empty for the object itself.
    pub(crate) subresource: String,
}

impl Target {
    /// Returns an object as the target of a request, or a collection if `name` is empty. The
    /// namespace is ignored for cluster-scoped kinds.
    pub(crate) fn new(kind: &Arc<Kind>, namespace: &str, name: &str) -> Self {
        let namespace = if kind.namespaced { namespace } else { "" };
        Self {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        }
    }

    /// Returns the target that `path` leads to.
    ///
    /// # Errors
    /// [`NotServed`] if no resource is served at the path.
    pub(crate) fn resolve(catalog: &Catalog, path: &ResourcePath<'_>) -> Result<Self, NotServed> {
        let text = |part: &Option<Cow<'_, str>>| part.as_deref().unwrap_or_default().to_owned();
        Ok(Self {
            kind: catalog.lookup(path)?,
            namespace: text(&path.namespace),
            name: text(&path.name),
            subresource: text(&path.subresource),
        })
    }

    /// Sets the subresource of the target.
    pub(crate) fn subresource(mut self, name: &str) -> Self {
        name.clone_into(&mut self.subresource);
        self
    }

    /// Reports whether the target is one object, and not a collection.
    pub(crate) fn is_object(&self) -> bool {
        !self.name.is_empty() || !self.subresource.is_empty()
    }

    /// Checks that the kind has the subresource of the target, and that this server supports the
    /// subresource.
    pub(crate) fn check_subresource(&self) -> ApiResult<()> {
        match self.subresource.as_str() {
            "" => Ok(()),
            // Custom resources have no handler for a subresource that the CRD does not declare.
            name if self.kind.subresource(name).is_none() => Err(match self.kind.is_custom() {
                true => self.not_found(),
                false => ApiError::no_such_resource(),
            }),
            "token" if self.kind.plural == "serviceaccounts" => Ok(()),
            "status"
            | "scale"
            | "finalize"
            | "approval"
            | "binding"
            | "eviction"
            | "ephemeralcontainers"
            | "resize"
            | "log"
            | "exec"
            | "attach"
            | "portforward"
            | "proxy" => Ok(()),
            name => Err(ApiError::not_modelled(&format!(
                "{}/{name}",
                self.kind.group_resource()
            ))),
        }
    }

    /// Returns the key of the object in the store.
    pub(crate) fn key(&self) -> Key {
        Key::new(self.namespace.as_str(), self.name.as_str())
    }

    /// Returns the resource name under which the store keeps the objects of the target's kind.
    pub(crate) fn storage(&self) -> String {
        storage_name(&self.kind)
    }

    /// Returns the 404 error for this target, if the object does not exist.
    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.kind, &self.name)
    }
}
