//! Objects of custom resources in the version of a request.
//!
//! Objects are stored in the storage version of their CRD. When an object is read, unknown fields
//! are removed and the defaults of the stored version are set, because the schema may have changed
//! since the object was stored; the object is then converted to the version of the request.

use std::sync::Arc;

use serde_json::Value;

use super::{Registry, conversion, convert};
use crate::kinds::Kind;
use crate::object;
use crate::status::ApiResult;
use crate::store::Stored;

impl Registry {
    /// Converts a stored object to the version of `kind`.
    pub(crate) async fn read_from_storage(&self, kind: &Kind, object: Value) -> ApiResult<Value> {
        let Some(versions) = kind.versions() else {
            return Ok(convert::from_storage(kind, object));
        };
        let mut object = object;
        versions.normalize(&mut object);
        let converted = conversion::convert(self, kind, vec![object], &kind.api_version()).await?;
        Ok(converted.into_iter().next().unwrap_or_default())
    }

    /// Converts an object from the version of `kind` to the storage version.
    pub(super) async fn to_storage(&self, kind: &Kind, object: &mut Value) -> ApiResult<()> {
        let Some(versions) = kind.versions() else {
            convert::to_storage(kind, object);
            return Ok(());
        };
        if kind.api_version() == versions.storage {
            return Ok(());
        }
        let taken = vec![std::mem::take(object)];
        let converted = conversion::convert(self, kind, taken, &versions.storage).await?;
        *object = converted.into_iter().next().unwrap_or_default();
        // Text that is stored needs no defaults when it is read.
        versions.normalize(object);
        Ok(())
    }

    /// Converts an object of a request between two kinds that have the same stored objects, such
    /// as two versions of a custom resource.
    pub(crate) async fn convert_request(
        &self,
        from: &Kind,
        to: &Kind,
        mut object: Value,
    ) -> ApiResult<Value> {
        if from.is_custom() {
            let api_version = to.api_version();
            let converted = conversion::convert(self, to, vec![object], &api_version).await?;
            return Ok(converted.into_iter().next().unwrap_or_default());
        }
        convert::to_storage(from, &mut object);
        Ok(convert::from_storage(to, object))
    }

    /// Returns stored objects as they are in the version of `kind`. An object is returned unchanged
    /// if its stored text can be used.
    pub(crate) async fn readable_all(
        &self,
        kind: &Kind,
        mut objects: Vec<Arc<Stored>>,
    ) -> ApiResult<Vec<Arc<Stored>>> {
        let Some(versions) = kind.versions() else {
            return Ok(objects);
        };
        let is_old = |stored: &Arc<Stored>| !versions.is_current(kind, stored);
        let decode = |stored: &Arc<Stored>| {
            let mut object = stored.decode();
            versions.normalize(&mut object);
            object
        };
        let old: Vec<Value> = objects
            .iter()
            .filter(|stored| is_old(stored))
            .map(decode)
            .collect();
        if old.is_empty() {
            return Ok(objects);
        }
        let converted = conversion::convert(self, kind, old, &kind.api_version()).await?;
        let old = objects.iter_mut().filter(|stored| is_old(stored));
        for (stored, object) in old.zip(converted) {
            *stored = Arc::new(stored.with_object(&object));
        }
        Ok(objects)
    }

    /// Returns a stored object as it is in the version of `kind`.
    pub(crate) async fn readable(
        &self,
        kind: &Kind,
        stored: Arc<Stored>,
    ) -> ApiResult<Arc<Stored>> {
        let mut readable = self.readable_all(kind, vec![stored.clone()]).await?;
        Ok(readable.pop().unwrap_or(stored))
    }

    /// Reports whether a write changes the stored object. Objects of built-in kinds are not changed
    /// by another version alone.
    pub(super) fn is_changed(&self, kind: &Kind, new: &Value, before: &Value) -> bool {
        if kind.is_custom() {
            return new != before;
        }
        let is_same = |(field, value): (&String, &Value)| {
            field == "apiVersion" || before.get(field) == Some(value)
        };
        let count = |object: &Value| object.as_object().map_or(0, serde_json::Map::len);
        let mut fields = new.as_object().into_iter().flatten();
        count(new) != count(before)
            || !fields.all(is_same)
            || object::at(before, &["apiVersion"]).is_null()
    }
}
