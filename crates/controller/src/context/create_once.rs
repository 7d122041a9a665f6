//! `Context::create_once`: creates a child and never changes it.

use std::sync::Arc;

use opkit_client::Object;

use crate::context::Context;
use crate::context::apply::desired::Relation;
use crate::context::apply::send::Created;
use crate::error::ApplyError;

impl<S> Context<S> {
    /// Creates `child` with the reconciled object as its controlling owner, if no such child
    /// exists, and returns the existing or created child. Use this method for content that is
    /// generated once, such as a password.
    ///
    /// An existing child is never overwritten, whatever it contains, and [`prune`](Context::prune)
    /// never deletes it. The child is deleted with its owner. A change of the child causes a
    /// reconcile, as for other children. A Secret may have `stringData`, unlike in
    /// [`apply`](Context::apply).
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use opkit::{Action, Context, Result};
    ///
    /// # fn random() -> String { "generated".to_owned() }
    /// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    ///     let mut secret = Secret::default();
    ///     secret.metadata.name = map.metadata.name.clone();
    ///     secret.string_data = Some([("password".to_owned(), random())].into());
    ///     let secret = cx.create_once(secret).await?; // the Secret of the first reconcile
    ///     cx.prune().await?; // it stays
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ApplyError::NotDeclared`] if the controller neither
    /// [creates](crate::Controller::creates_once) nor [owns](crate::Controller::owns) the
    /// kind. [`ApplyError::NotOurs`] if an object with this name exists that the reconciled object
    /// does not control; it is not changed. [`ApplyError::Deleting`] if the child is being deleted:
    /// the retry creates it again after that. Also when the child is in another namespace, or a
    /// request fails.
    ///
    /// # Cancel safety
    /// If the future is dropped, the child may be created; the next call returns it.
    pub async fn create_once<C: Object>(&self, child: C) -> Result<Arc<C>, ApplyError> {
        let desired = self.desired(child, Relation::Once)?;
        let found = match self.term.cluster.reads.lister::<C>() {
            Ok(lister) => lister.get(&desired.key).ok().flatten(),
            Err(_) => self.live_child::<C>(&desired).await?,
        };
        // The cache may be stale about an object of another owner: the server decides.
        let found = found.filter(|child| self.is_child(&desired, child.meta()));
        let child = match found {
            Some(child) => child,
            None => match self.create(&desired).await? {
                Created::Now(response) => {
                    if let Ok(lister) = self.term.cluster.reads.lister::<C>() {
                        lister.informer().observe_response(&response);
                    }
                    return self.decode(&desired, &response).map(Arc::new);
                }
                Created::Before(error) => match self.live_child::<C>(&desired).await? {
                    Some(child) => child,
                    // The child was deleted meanwhile: the next attempt creates it.
                    None => return Err(self.failed(&desired, error)),
                },
            },
        };
        self.check(&desired, child.meta())?;
        Ok(child)
    }
}
