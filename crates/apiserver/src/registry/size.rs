//! The maximum size of an object.

use opkit_apimachinery::protobuf;
use opkit_apimachinery::size::json_size;
use serde_json::Value;

use super::Registry;
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};

/// Maximum size in bytes of a request to etcd: the default of etcd's flag `--max-request-bytes`.
const OBJECT_MAX: usize = 1536 * 1024;

impl Registry {
    /// Refuses an object that is too large for etcd. As in Kubernetes, the error has the code 500
    /// and no reason.
    pub(super) fn check_size(&self, kind: &Kind, object: &Value) -> ApiResult<()> {
        if json_size(object) <= OBJECT_MAX {
            return Ok(());
        }
        // Kubernetes stores built-in kinds as protobuf, which is shorter than JSON.
        let stored = (!kind.is_custom()).then(|| protobuf::encode(object).ok());
        match stored.flatten() {
            Some(stored) if stored.len() <= OBJECT_MAX => Ok(()),
            _ => Err(ApiError::without_reason(
                500,
                "etcdserver: request is too large",
            )),
        }
    }
}
