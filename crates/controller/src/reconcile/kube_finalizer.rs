//! kube's `finalizer` function, for reconcile functions with kube's signature that handle deletion
//! themselves.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use opkit_client::Object;
use serde_json::json;

use crate::context::finalizer::has;
use crate::reconcile::Action;

/// The reason for which [`finalizer`] calls the reconcile function. Has the same variants as kube's
/// `Event`.
#[derive(Debug, Clone)]
pub enum Event<K> {
    /// The object is not being deleted: the function has to apply the desired state.
    Apply(Arc<K>),
    /// The object is being deleted: the function has to clean up. If the function succeeds, the
    /// finalizer is removed.
    Cleanup(Arc<K>),
}

/// An error of [`finalizer`]. Has the same variants as kube's `Error`, except those that cannot
/// occur.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E: StdError + 'static> {
    /// The function failed for [`Event::Apply`].
    #[error("cannot apply the object")]
    ApplyFailed(#[source] E),
    /// The function failed for [`Event::Cleanup`].
    #[error("cannot clean up the object")]
    CleanupFailed(#[source] E),
    /// The request that adds the finalizer failed.
    #[error("cannot add the finalizer")]
    AddFinalizer(#[source] kube::Error),
    /// The request that removes the finalizer failed.
    #[error("cannot remove the finalizer")]
    RemoveFinalizer(#[source] kube::Error),
    /// The object has no name.
    #[error("the object has no name")]
    UnnamedObject,
}

/// Calls `reconcile` to apply an object, or to clean up after an object that is being deleted. Adds
/// the finalizer `name` before the first apply and removes the finalizer after the cleanup. Has the
/// same signature and rules as kube's function, so that a kube-rs operator only changes its
/// imports.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_controller::*; pub use opkit_controller as controller; }
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use opkit::Action;
/// use opkit::controller::finalizer::{Error, Event, finalizer};
///
/// struct Ctx {
///     client: kube::Client,
/// }
/// async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Ctx>) -> Result<Action, Error<kube::Error>> {
///     let maps = Api::<ConfigMap>::default_namespaced(ctx.client.clone());
///     finalizer(&maps, "opkit.dev/cleanup", map, |event| async {
///         match event {
///             Event::Apply(map) => println!("apply {:?}", map.metadata.name),
///             Event::Cleanup(map) => println!("clean up {:?}", map.metadata.name),
///         }
///         Ok(Action::await_change())
///     })
///     .await
/// }
/// ```
///
/// # Errors
/// When `reconcile` fails, or the finalizer cannot be written, for example because the object
/// changed since it was read; the next reconcile has the new version.
///
/// # Cancel safety
/// If the future is dropped, the cleanup may be done while the object still has the finalizer; the
/// next call cleans up again.
pub async fn finalizer<K, E, Fut>(
    api: &Api<K>,
    name: &str,
    object: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> Fut,
) -> Result<Action, Error<E>>
where
    K: Object + std::fmt::Debug,
    E: StdError + 'static,
    Fut: Future<Output = Result<Action, E>>,
{
    let meta = object.meta();
    let Some(object_name) = meta.name.clone() else {
        return Err(Error::UnnamedObject);
    };
    let write = async |finalizers: Vec<String>| {
        // The patch applies only to this version of this object.
        let patch = json!({"metadata": {
            "finalizers": finalizers,
            "resourceVersion": object.resource_version(),
            "uid": object.uid(),
        }});
        let parameters = PatchParams::default();
        let written = api
            .patch(&object_name, &parameters, &Patch::Merge(&patch))
            .await;
        written.map(drop)
    };
    let finalizers = || meta.finalizers.iter().flatten().cloned();
    match (has(meta, name), meta.deletion_timestamp.is_some()) {
        (true, false) => {
            let applied = reconcile(Event::Apply(object)).await;
            applied.map_err(Error::ApplyFailed)
        }
        (true, true) => {
            let cleaned = reconcile(Event::Cleanup(object.clone())).await;
            let action = cleaned.map_err(Error::CleanupFailed)?;
            let others = finalizers().filter(|other| other != name).collect();
            write(others).await.map_err(Error::RemoveFinalizer)?;
            Ok(action)
        }
        (false, false) => {
            let with = finalizers().chain([name.to_owned()]).collect();
            write(with).await.map_err(Error::AddFinalizer)?;
            // The server reports the write as a change, which is reconciled.
            Ok(Action::await_change())
        }
        (false, true) => Ok(Action::await_change()),
    }
}
