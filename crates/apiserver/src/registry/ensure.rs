//! Writes of objects that the control plane itself keeps, such as the endpoints of a Service.

use serde_json::Value;

use super::{Registry, Write};
use crate::object;
use crate::status::ApiResult;
use crate::target::Target;

impl Registry {
    /// Creates the object `desired` of a built-in kind, or gives the existing object its fields.
    /// In `metadata`, only labels and annotations are changed.
    pub(crate) async fn ensure(
        &self,
        group: &str,
        plural: &str,
        desired: &Value,
        manager: &str,
    ) -> ApiResult<()> {
        let kind = self.builtin(group, plural)?;
        let target = Target::new(&kind, object::namespace(desired), object::name(desired));
        if self.stored(&target).is_ok() {
            return self.overwrite(group, plural, desired, manager).await;
        }
        let collection = Target::new(&kind, object::namespace(desired), "");
        let mut write = Write::by(manager);
        match self.create(&collection, desired.clone(), &mut write).await {
            // Another task created the object meanwhile.
            Err(error) if error.code == 409 => {
                self.overwrite(group, plural, desired, manager).await
            }
            created => created.map(|_| ()),
        }
    }

    /// Gives an existing object the fields of `desired`. In `metadata`, only labels and annotations
    /// are changed.
    pub(crate) async fn overwrite(
        &self,
        group: &str,
        plural: &str,
        desired: &Value,
        manager: &str,
    ) -> ApiResult<()> {
        let kind = self.builtin(group, plural)?;
        let target = Target::new(&kind, object::namespace(desired), object::name(desired));
        self.modify(&target, &mut Write::by(manager), |live| {
            let mut new = live.clone();
            for (field, value) in desired.as_object().into_iter().flatten() {
                if field != "metadata" {
                    object::set(&mut new, &[field], value.clone());
                }
            }
            for field in ["labels", "annotations"] {
                let value = object::at(desired, &["metadata", field]).clone();
                object::set_meta(&mut new, field, value);
            }
            Ok(new)
        })
        .await?;
        Ok(())
    }
}
