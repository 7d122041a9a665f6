//! Kinds that a controller reads without watching them.

use opkit_client::Object;

use crate::builder::Controller;
use crate::reads::UncachedKind;

impl<K, S: Send + Sync + 'static> Controller<K, S> {
    /// Allows [`Context::fetch`](crate::Context::fetch) and
    /// [`fetch_list`](crate::Context::fetch_list) of the kind `C`, which is not cached for that:
    /// each read sends a request. For objects that are rarely read, or of which the operator reads
    /// a few out of many. A change of such an object causes no reconcile. The generated permissions
    /// allow `get` and `list`, but not `watch`.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use opkit::{Action, Context, Controller, Result};
    ///
    /// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    ///     let token = cx.fetch::<Secret>("token").await?;
    ///     println!("has a token: {}", token.is_some());
    ///     Ok(Action::await_change())
    /// }
    /// let controller = Controller::new(reconcile).uncached::<Secret>();
    /// ```
    pub fn uncached<C: Object>(mut self) -> Self {
        self.spec.uncached.push(UncachedKind::of::<C>(false));
        self
    }

    /// Same as [`uncached`](Controller::uncached), but reads the cache first, if this or another
    /// controller of the operator caches the kind `C`: an object that is in the cache costs no
    /// request. An object that is not, costs one, each time. A list is read from the cache if the
    /// cache has all objects of the namespace, that is, if it has no selector. For a kind that is
    /// cached in part.
    pub fn cached_or_live<C: Object>(mut self) -> Self {
        self.spec.uncached.push(UncachedKind::of::<C>(true));
        self
    }
}
