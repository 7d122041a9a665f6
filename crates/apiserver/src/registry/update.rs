//! Update of an object or of one of its subresources.

use serde_json::Value;

use super::prepare::WrittenBy;
use super::scale::ScaleChange;
use super::{Registry, Write, identity, metadata, rules};
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;

impl Registry {
    /// Replaces the object by `body`, and returns the stored object and whether the object was
    /// created. For some kinds an update creates an object that does not exist.
    pub(crate) async fn update(
        &self,
        target: &Target,
        mut body: Value,
        write: &mut Write,
    ) -> ApiResult<(Committed, bool)> {
        write.warnings.extend(metadata::dedup_owners(&mut body));
        if target.subresource != "scale" {
            self.check_unknown_fields(&target.kind, &body, write)?;
        }
        identity::check_name(target, &body)?;
        if object::name(&body).is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                target.name
            )));
        }
        if rules::is_created_by_update(&target.kind)
            && target.subresource.is_empty()
            && self.stored(target).is_err()
        {
            let created = self
                .create_by(WrittenBy::Update, target, body, write)
                .await?;
            return Ok((created, true));
        }
        if target.subresource == "scale" {
            let change = |_: &Value| Ok(body.clone());
            let stored = self
                .update_scale(target, write, &ScaleChange::Update(&change))
                .await?;
            return Ok((stored, false));
        }
        if object::meta(&body, "resourceVersion").is_empty() && rules::needs_version(&target.kind) {
            return Err(ApiError::no_version(&target.kind, &target.name));
        }
        let updated = self.modify(target, write, |_| Ok(body.clone())).await?;
        Ok((updated, false))
    }
}
