//! Server-side apply.

use serde_json::{Value, json};

use super::merge::Configuration;
use super::prepare::WrittenBy;
use super::scale::ScaleChange;
use super::{Registry, Write, identity};
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::Committed;
use crate::target::Target;

impl Registry {
    /// Applies a configuration, and returns the stored object and whether the object was created.
    pub(super) async fn apply(
        &self,
        target: &Target,
        config: &Value,
        write: &Write,
    ) -> ApiResult<(Committed, bool)> {
        let config = self.configuration(target, config, write)?;
        if target.subresource == "scale" {
            let change = ScaleChange::Apply(&config.body);
            let object = self.update_scale(target, write, &change).await?;
            return Ok((object, false));
        }
        if target.subresource.is_empty() && self.stored(target).is_err() {
            let uid = object::uid(&config.body);
            if !uid.is_empty() {
                let reason = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object \
                     was found"
                );
                return Err(ApiError::conflict(&target.kind, &target.name, &reason));
            }
            let new = self.merge(&config, None)?;
            match self.create_by(WrittenBy::Apply, target, new, write).await {
                Ok(created) => return Ok((created, true)),
                // Another client created the object meanwhile: apply to that object.
                Err(error) if error.code == 409 => {}
                Err(error) => return Err(error),
            }
        }
        let merge = |live: &Value| self.merge(&config, Some(live));
        let object = self
            .modify_by(WrittenBy::Apply, target, write, merge)
            .await?;
        Ok((object, false))
    }

    /// Checks the body of an apply request, and removes the fields that a request on this target
    /// cannot set.
    fn configuration<'a>(
        &self,
        target: &'a Target,
        body: &Value,
        write: &'a Write,
    ) -> ApiResult<Configuration<'a>> {
        let kind = &target.kind;
        identity::check_type(kind, &target.subresource, body)?;
        identity::check_name(target, body)?;
        identity::check_namespace(target, body)?;
        let mut body = body.clone();
        object::set_meta(&mut body, "name", json!(target.name));
        if kind.subresource("status").is_some() && target.subresource.is_empty() {
            object::set(&mut body, &["status"], Value::Null);
        }
        match target.subresource.as_str() {
            "status" | "approval" => object::set(&mut body, &["spec"], Value::Null),
            "ephemeralcontainers" => {
                let path = ["spec", "ephemeralContainers"];
                let containers = object::at(&body, &path).clone();
                object::set(&mut body, &["spec"], Value::Null);
                object::set(&mut body, &path, containers);
            }
            _ => {}
        }
        Ok(Configuration {
            target,
            body,
            manager: &write.manager,
            force: write.force,
        })
    }
}
