//! `Context::adopt`: takes over a child that has no controller yet.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Object, Patch, RequestError, WriteOptions};
use tracing::debug;

use crate::context::Context;
use crate::context::apply::annotation::{APPLIED, is_applied_by};
use crate::context::apply::desired::{Desired, Relation, upgrade_patch};
use crate::error::ApplyError;
use crate::object::owner::{Head, controller_of};

/// Largest number of retries if another client changes the child between read and write.
const ATTEMPTS: usize = 10;

impl<S> Context<S> {
    /// Same as [`apply`](Context::apply), but also takes over an existing child that has no
    /// controller. The fields that the field managers `managers` have set are taken over too: this
    /// controller then owns these fields, and those that `child` does not contain are removed.
    /// Fields of other managers stay.
    ///
    /// A child that the reconciled object controls but that this controller has not applied yet is
    /// taken over as well. Such a child was applied by a controller with another name, or by an
    /// operator that did not use opkit.
    ///
    /// The name of the field manager that created the child is in the child's
    /// `metadata.managedFields`, such as `helm`, `kubectl-client-side-apply` or `kubectl`. If the
    /// child is already taken over or does not exist, `adopt` does the same as `apply`.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use opkit::{Action, Context, Result};
    ///
    /// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    ///     let mut secret = Secret::default();
    ///     secret.metadata.name = map.metadata.name.clone();
    ///     cx.adopt(secret, ["helm"]).await?; // a chart installed it before
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ApplyError::NotDeclared`] if the controller does not [own](crate::Controller::owns) the
    /// kind. [`ApplyError::NotOurs`] if another object controls the child, which is not changed
    /// then. Otherwise same as `apply`.
    ///
    /// # Cancel safety
    /// If the future is dropped, the fields may be taken over and the child not yet applied; the
    /// next call continues from there.
    pub async fn adopt<C: Object>(
        &self,
        child: C,
        managers: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Arc<C>, ApplyError> {
        let managers: Vec<String> = managers.into_iter().map(Into::into).collect();
        let desired = self.desired(child, Relation::Owned)?;
        let lister = self.term.cluster.reads.lister::<C>().ok();
        let cached = lister.and_then(|lister| lister.get(&desired.key).ok().flatten());
        if cached.is_some_and(|child| self.is_adopted(child.meta())) {
            return self.apply_desired(&desired).await;
        }
        let mut failed: Option<(ObjectMeta, TakeOverError)> = None;
        let mut attempts = 0;
        loop {
            let live = self.live_child::<C>(&desired).await?;
            let Some(live) = live.filter(|live| !self.is_adopted(live.meta())) else {
                return self.apply_desired(&desired).await;
            };
            let meta = live.meta();
            if controller_of(meta).is_some() && !self.owner.controls(&meta.into()) {
                return Err(self.not_ours(&desired, meta));
            }
            self.check_lives(&desired, meta)?;
            if !desired.is_at(meta) {
                let found = meta.resource_version.clone();
                return Err(self.not_at_version(&desired, found));
            }
            if let Some((before, error)) = failed
                && (before.resource_version == meta.resource_version || attempts > ATTEMPTS)
            {
                return Err(self.take_over_failed(&desired, error));
            }
            match self.take_over::<C>(&desired, meta.clone(), &managers).await {
                // The child changed since it was read: read it again and check its controller.
                Err(error) if is_changed(&error) => failed = Some((meta.clone(), error)),
                result => return result.map_err(|error| self.take_over_failed(&desired, error)),
            }
            attempts += 1;
        }
    }

    /// Reports whether the reconciled object controls the child and this controller has applied it
    /// before.
    fn is_adopted(&self, child: &ObjectMeta) -> bool {
        let annotations = child.annotations.as_ref();
        let applied = annotations.and_then(|annotations| annotations.get(APPLIED));
        self.owner.controls(&child.into())
            && applied.is_some_and(|applied| is_applied_by(applied, self.field_manager()))
    }

    /// Transfers the fields of `managers` to this controller, then applies `desired` at the
    /// resource version that the transfer returned. So the apply fails if another client changes
    /// the child in between.
    async fn take_over<C: Object>(
        &self,
        desired: &Desired,
        mut meta: ObjectMeta,
        managers: &[String],
    ) -> Result<Arc<C>, TakeOverError> {
        let (client, manager) = (&self.term.client, self.field_manager());
        let (kind, key) = (&desired.kind, &desired.key);
        debug!(kind = kind.kind, %key, "adopting");
        if let Some(patch) = upgrade_patch(&meta, manager, managers) {
            let (patch, options) = (Patch::Json(&patch), WriteOptions::for_manager(manager));
            let response = client.patch(kind, key, None, patch, &options).await;
            let response = response.map_err(TakeOverError::Request)?;
            let head: Head = self
                .decode(desired, &response)
                .map_err(TakeOverError::Read)?;
            meta = head.metadata;
        }
        let body = desired.body(meta.uid.as_deref(), meta.resource_version.as_deref());
        let options = WriteOptions::for_manager(manager).force();
        let response = client
            .patch(kind, key, None, Patch::Apply(&body), &options)
            .await
            .map_err(TakeOverError::Request)?;
        self.trace.wrote("apply", kind, key, "");
        self.observe_applied(desired, &response)
            .map_err(TakeOverError::Read)
    }

    fn take_over_failed(&self, desired: &Desired, error: TakeOverError) -> ApplyError {
        match error {
            TakeOverError::Request(cause) => self.failed(desired, cause),
            TakeOverError::Read(error) => error,
        }
    }
}

/// An error while a child is taken over.
enum TakeOverError {
    Request(RequestError),
    Read(ApplyError),
}

/// Reports whether the request failed because another client changed or deleted the child since it
/// was read.
fn is_changed(error: &TakeOverError) -> bool {
    matches!(error, TakeOverError::Request(error)
        if error.is_conflict() || error.is_invalid() || error.is_not_found())
}
