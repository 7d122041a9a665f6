//! The requests of `Context::apply`: create, read and apply a child, and store the response.

use std::any::TypeId;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Object, Patch, RequestError, WriteOptions};
use serde_json::Value;
use tracing::debug;

use super::desired::{Desired, upgrade_patch};
use crate::context::Context;
use crate::error::ApplyError;
use crate::object::owner::Head;

/// Result of a request to create a child.
pub(crate) enum Created {
    /// The child was created by this request; contains the response.
    Now(bytes::Bytes),
    /// An object with this name existed before; contains the server's error.
    Before(RequestError),
}

/// Metadata of a child before it is applied.
pub(crate) struct Current {
    meta: ObjectMeta,
    /// Whether `managedFields` is complete. It is not complete in the cache, which keeps only the
    /// entries of this controller.
    is_whole: bool,
}

impl Current {
    /// Creates a `Current` from metadata that the server returned.
    pub(crate) fn whole(meta: ObjectMeta) -> Self {
        Self {
            meta,
            is_whole: true,
        }
    }

    /// Creates a `Current` from metadata in the cache.
    pub(crate) fn cached(meta: ObjectMeta) -> Self {
        Self {
            meta,
            is_whole: false,
        }
    }
}

impl<S> Context<S> {
    /// Applies `desired` to an existing child of the reconciled object.
    pub(crate) async fn apply_onto<C: Object>(
        &self,
        desired: &Desired,
        current: Current,
    ) -> Result<Arc<C>, ApplyError> {
        let response = self.patch(desired, current).await?;
        self.observe_applied(desired, &response)
    }

    /// Stores the response to an apply in the cache and in the memory of applied children, and
    /// returns the child.
    pub(crate) fn observe_applied<C: Object>(
        &self,
        desired: &Desired,
        response: &[u8],
    ) -> Result<Arc<C>, ApplyError> {
        let child: Arc<C> = Arc::new(self.decode(desired, response)?);
        if let Ok(lister) = self.term.cluster.reads.lister::<C>() {
            lister.informer().observe_response(response);
            let json = serde_json::to_value(&*child).unwrap_or(Value::Null);
            let manager = self.field_manager();
            let kind = TypeId::of::<C>();
            self.term
                .cluster
                .applied
                .remember(kind, desired, child.meta(), &json, manager);
            self.drop_deleted_children();
        }
        Ok(child)
    }

    /// Removes children that are no longer in the cache from the memory of applied children.
    pub(crate) fn drop_deleted_children(&self) {
        let declared = &self.term.cluster.reads.declared.typed;
        self.term.cluster.applied.drop_deleted(|kind, key| {
            let informer = declared.get(&kind);
            informer.is_some_and(|informer| informer.stored(key).is_some())
        });
    }

    /// Creates the child, unless an object with this name exists.
    pub(crate) async fn create(&self, desired: &Desired) -> Result<Created, ApplyError> {
        let (kind, key) = (&desired.kind, &desired.key);
        let options = WriteOptions::for_manager(self.field_manager());
        let namespace = key.namespace.as_deref();
        match self
            .term
            .client
            .create(kind, namespace, &desired.content, &options)
            .await
        {
            Ok(response) => {
                debug!(kind = kind.kind, %key, "created");
                self.trace.wrote("create", kind, key, "");
                Ok(Created::Now(response))
            }
            Err(error) if error.is_already_exists() => Ok(Created::Before(error)),
            Err(error) => Err(self.failed(desired, error)),
        }
    }

    /// Reads the child from the server. Returns `None` if there is no object with this name.
    pub(crate) async fn live_child<C: Object>(
        &self,
        desired: &Desired,
    ) -> Result<Option<Arc<C>>, ApplyError> {
        self.trace.read_live();
        match self.term.client.get(&desired.kind, &desired.key).await {
            Ok(response) => Ok(Some(Arc::new(self.decode(desired, &response)?))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.failed(desired, error)),
        }
    }

    /// Applies `desired`. If this controller owns fields of the child by its creation, transfers
    /// them to the fields that it owns by apply first; see `upgrade_patch`.
    async fn patch(&self, desired: &Desired, current: Current) -> Result<bytes::Bytes, ApplyError> {
        let Current {
            meta: mut current,
            mut is_whole,
        } = current;
        let (client, manager) = (&self.term.client, self.field_manager());
        let (kind, key) = (&desired.kind, &desired.key);
        let options = WriteOptions::for_manager(manager);
        loop {
            if !desired.is_at(&current) {
                return Err(self.not_at_version(desired, current.resource_version));
            }
            let Some(upgrade) = upgrade_patch(&current, manager, &[]) else {
                break;
            };
            if !is_whole {
                current = self.live_meta(desired).await?;
                is_whole = true;
                continue;
            }
            match client
                .patch(kind, key, None, Patch::Json(&upgrade), &options)
                .await
            {
                Ok(response) => {
                    current = self.decode::<Head>(desired, &response)?.metadata;
                    break;
                }
                // The child changed since it was read: the patch tests its version.
                Err(error) if error.is_invalid() || error.is_conflict() => {
                    let seen = current.resource_version;
                    current = self.live_meta(desired).await?;
                    if current.resource_version == seen {
                        return Err(self.failed(desired, error));
                    }
                }
                Err(error) => return Err(self.failed(desired, error)),
            }
        }
        let version = desired.resource_version.as_ref();
        let version = version.and(current.resource_version.as_deref());
        let body = desired.body(current.uid.as_deref(), version);
        debug!(kind = kind.kind, %key, "applying");
        let response = client
            .patch(kind, key, None, Patch::Apply(&body), &options.force())
            .await;
        let response = response.map_err(|error| self.failed(desired, error))?;
        self.trace.wrote("apply", kind, key, "");
        Ok(response)
    }

    /// Reads the metadata of the child from the server.
    ///
    /// # Errors
    /// When the object is not a child of the reconciled object, is being deleted, or the request
    /// fails.
    async fn live_meta(&self, desired: &Desired) -> Result<ObjectMeta, ApplyError> {
        self.trace.read_live();
        let live = self.term.client.get(&desired.kind, &desired.key).await;
        let live = live.map_err(|error| self.failed(desired, error))?;
        let meta = self.decode::<Head>(desired, &live)?.metadata;
        self.check(desired, &meta)?;
        Ok(meta)
    }

    /// Decodes a response of a request for `desired`.
    pub(crate) fn decode<T: serde::de::DeserializeOwned>(
        &self,
        desired: &Desired,
        bytes: &[u8],
    ) -> Result<T, ApplyError> {
        serde_json::from_slice(bytes).map_err(|cause| ApplyError::Json {
            kind: Box::new(desired.kind.clone()),
            key: desired.key.clone(),
            cause,
        })
    }

    /// Returns the error of a failed request for `desired`.
    pub(crate) fn failed(&self, desired: &Desired, cause: RequestError) -> ApplyError {
        ApplyError::Request {
            kind: Box::new(desired.kind.clone()),
            key: desired.key.clone(),
            manager: self.field_manager().to_owned(),
            cause,
        }
    }
}
