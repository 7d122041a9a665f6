//! Writes of the server's own objects that do not pass webhooks and policies.
//!
//! These are the objects of a new cluster, and the addresses of Services, which are reserved while
//! another write is prepared. Such a write never waits, so it needs no task.

use futures::FutureExt;
use serde_json::Value;

use super::{DeleteOptions, Registry, Write};
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;

impl Registry {
    /// Creates an object as this field manager.
    pub(crate) fn create_directly(
        &self,
        target: &Target,
        object: Value,
        manager: &str,
    ) -> ApiResult<Committed> {
        let mut write = Write::directly_by(manager);
        let created = self.create(target, object, &mut write).now_or_never();
        created.unwrap_or_else(|| Err(has_waited(target)))
    }

    /// Changes an object as this field manager.
    pub(crate) fn modify_directly(
        &self,
        target: &Target,
        manager: &str,
        change: impl Fn(&Value) -> ApiResult<Value> + Send,
    ) -> ApiResult<Committed> {
        let mut write = Write::directly_by(manager);
        let modified = self.modify(target, &mut write, change).now_or_never();
        modified.unwrap_or_else(|| Err(has_waited(target)))
    }

    /// Deletes an object as this field manager.
    pub(crate) fn delete_directly(&self, target: &Target, manager: &str) -> ApiResult<()> {
        let write = Write::directly_by(manager);
        let options = DeleteOptions::default();
        let deleted = self.delete(target, &options, &write).now_or_never();
        let deleted = deleted.unwrap_or_else(|| Err(has_waited(target)));
        deleted.map(|_| ())
    }
}

fn has_waited(target: &Target) -> ApiError {
    let resource = target.kind.group_resource();
    ApiError::internal(format!("a direct write of {resource} has waited"))
}
