//! kube's `finalizer` function, for reconcilers in kube's shape that handle deletion themselves.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use opkit_client::Object;
use serde_json::json;

use crate::context::finalizer::has;
use crate::reconcile::Action;

/// What to do with an object that has a finalizer. Same variants as kube's.
#[derive(Debug, Clone)]
pub enum Event<K> {
    /// Bring the world to what the object asks for.
    Apply(Arc<K>),
    /// The object is being deleted: clean up. Once this succeeds, the finalizer is removed.
    Cleanup(Arc<K>),
}

/// Why [`finalizer`] failed. Same variants as kube's, where they can occur.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E: StdError + 'static> {
    /// The function failed to apply.
    #[error("cannot apply the object")]
    ApplyFailed(#[source] E),
    /// The function failed to clean up.
    #[error("cannot clean up the object")]
    CleanupFailed(#[source] E),
    /// The finalizer could not be stored.
    #[error("cannot add the finalizer")]
    AddFinalizer(#[source] kube::Error),
    /// The finalizer could not be removed.
    #[error("cannot remove the finalizer")]
    RemoveFinalizer(#[source] kube::Error),
    /// The object has no name.
    #[error("the object has no name")]
    UnnamedObject,
}

/// Calls `reconcile` to apply an object that has the finalizer `name`, or to clean up after one
/// that is being deleted; stores and removes the finalizer around it. Same signature and rules as
/// kube's, so that a kube-rs operator moves over by changing its imports.
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
/// When `reconcile` fails, or the finalizer cannot be written, as when the object changed since it
/// was read: the next reconcile has it fresh.
///
/// # Cancel safety
/// Dropping it may leave the clean-up done and the finalizer in place; the next call cleans up
/// again.
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
        // At the version and of the object that were read, or not at all.
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
            // The write comes back as a change, which is reconciled.
            Ok(Action::await_change())
        }
        (false, true) => Ok(Action::await_change()),
    }
}
