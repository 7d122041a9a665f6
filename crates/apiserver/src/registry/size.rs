//! How large an object may be.

use opkit_apimachinery::protobuf;
use opkit_apimachinery::size::json_size;
use serde_json::Value;

use super::Registry;
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};

/// Number of bytes that etcd takes in one request, by default: `--max-request-bytes`.
const OBJECT_MAX: usize = 1536 * 1024;

impl Registry {
    /// Refuses an object that etcd would refuse, with the response that Kubernetes then has: 500,
    /// and no reason.
    pub(super) fn check_size(&self, kind: &Kind, object: &Value) -> ApiResult<()> {
        if json_size(object) <= OBJECT_MAX {
            return Ok(());
        }
        // Built-in kinds are stored as protobuf, which is shorter.
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
