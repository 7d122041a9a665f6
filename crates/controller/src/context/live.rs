//! `Context::live`: reads from the server, and the namespace rules that reads from the server and
//! from the cache share.

use std::sync::Arc;

use opkit_cache::Selection;
use opkit_client::{Client, Kind, ListOptions, Object, ObjectKey};

use crate::context::{Context, Term};
use crate::error::ReadError;
use crate::object::owner::Owner;
use crate::reads::cross_namespace;
use crate::record::trace::Trace;

/// Reads from the API server instead of the cache, which see every write that the server has
/// acknowledged; see [`Context::live`]. The controller need not declare the kinds, but the
/// operator's role must allow the reads.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use opkit::{Action, Context, Error, Result};
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
///     // Each licence costs money: a stale read must not lead to a second one.
///     match cx.live().get::<Secret>("licence").await? {
///         Some(_) => Ok(Action::await_change()),
///         None => Err(Error::msg("there is no licence yet")),
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Live {
    client: Client,
    owner: Arc<Owner>,
    term: Arc<Term>,
    trace: Arc<Trace>,
}

impl<S> Context<S> {
    /// Returns reads like [`get`](Context::get) and [`list`](Context::list), but from the server
    /// (quorum reads) instead of the cache. Each read sends a request.
    pub fn live(&self) -> Live {
        Live {
            client: Client::new(self.term.client.kube()),
            owner: self.owner.clone(),
            term: self.term.clone(),
            trace: self.trace.clone(),
        }
    }
}

impl Live {
    /// Returns an object, or `None` if it does not exist. A key is `name`, which means the
    /// namespace of the reconciled object, or `(namespace, name)`.
    ///
    /// # Errors
    /// When the request fails, or the object cannot be decoded as its Rust type. Also when the kind
    /// is namespaced, but neither the key nor the reconciled object has a namespace.
    ///
    /// # Cancel safety
    /// The future can be dropped at any time.
    pub async fn get<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<Arc<K>>, ReadError> {
        let key = key_of::<K>(self.owner.key.namespace.as_deref(), key)?;
        cross_namespace::check::<K>(&self.term.cluster.reads, &self.owner, &key)?;
        self.trace.read_live();
        Ok(self.client.get_opt(key).await?.map(Arc::new))
    }

    /// Returns the selected objects, read page by page. A selection without a namespace selects the
    /// namespace of the reconciled object, unless it selects [all
    /// namespaces](Selection::all_namespaces).
    ///
    /// # Errors
    /// When a request fails, an object cannot be decoded as its Rust type, or the selection is by
    /// an index, which only the cache has.
    ///
    /// # Cancel safety
    /// The future can be dropped at any time.
    pub async fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        let selection = selection_of::<K>(self.owner.key.namespace.as_deref(), selection);
        if let Some((index, _)) = selection.index {
            return Err(ReadError::LiveIndex {
                kind: Box::new(Kind::of::<K>()),
                index,
            });
        }
        self.trace.read_live();
        let mut options = ListOptions::new();
        if let Some(namespace) = &selection.namespace {
            options = options.in_namespace(namespace);
        }
        if let Some(labels) = &selection.labels {
            options = options.labels(&labels.to_string());
        }
        let objects = self.client.list_all::<K>(&options).await?;
        let is_owned = |object: &K| {
            selection.owner_uid.as_ref().is_none_or(|uid| {
                let owners = object.meta().owner_references.iter().flatten();
                owners.into_iter().any(|owner| owner.uid == *uid)
            })
        };
        let is_granted = |object: &K| {
            let key = ObjectKey::of(object.meta());
            cross_namespace::check::<K>(&self.term.cluster.reads, &self.owner, &key).is_ok()
        };
        let objects = objects.into_iter().filter(is_owned).filter(is_granted);
        Ok(objects.map(Arc::new).collect())
    }
}

/// Returns `key`, completed with `namespace` if the kind is namespaced and the key has no
/// namespace.
pub(crate) fn key_of<K: Object>(
    namespace: Option<&str>,
    key: impl Into<ObjectKey>,
) -> Result<ObjectKey, ReadError> {
    let kind = Kind::of::<K>();
    let key = key.into();
    if !kind.namespaced {
        return Ok(key);
    }
    let key = key.or_namespace(namespace);
    match key.namespace {
        Some(_) => Ok(key),
        None => Err(ReadError::NoNamespace {
            kind: Box::new(kind),
            name: key.name,
        }),
    }
}

/// Returns `selection`, restricted to `namespace` if the kind is namespaced and the selection names
/// neither a namespace nor all namespaces.
pub(crate) fn selection_of<K: Object>(
    namespace: Option<&str>,
    selection: impl Into<Selection>,
) -> Selection {
    let mut selection = selection.into();
    let is_unsaid = selection.namespace.is_none() && !selection.all_namespaces;
    if is_unsaid && Kind::of::<K>().namespaced {
        selection.namespace = namespace.map(str::to_owned);
    }
    selection
}

#[cfg(test)]
mod tests;
