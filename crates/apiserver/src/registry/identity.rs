//! Checks that the body and the path of a request name the same object.

use serde_json::Value;

use crate::kinds::Kind;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

/// Checks that the name in the body is the name in the path. A body without a name is accepted.
pub(super) fn check_name(target: &Target, body: &Value) -> ApiResult<()> {
    let name = object::name(body);
    if name.is_empty() || name == target.name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        target.name
    )))
}

/// Checks that the namespace in the body is the namespace in the path. A body without a namespace
/// is accepted.
pub(super) fn check_namespace(target: &Target, body: &Value) -> ApiResult<()> {
    let namespace = object::namespace(body);
    if !target.kind.namespaced || namespace.is_empty() || namespace == target.namespace {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// Checks that an apply configuration has the kind and the API version that the path names.
pub(super) fn check_type(kind: &Kind, subresource: &str, config: &Value) -> ApiResult<()> {
    let (version, name) = (
        object::text(config, &["apiVersion"]),
        object::text(config, &["kind"]),
    );
    if subresource == "scale" || (version == kind.api_version() && name == kind.kind) {
        return Ok(());
    }
    let version = if version.contains('/') {
        version.to_owned()
    } else {
        format!("/{version}")
    };
    let message = format!("invalid object type: {version}, Kind={name}");
    Err(ApiError::bad_request(message))
}

/// Checks that the resource version and the UID in `new`, if they are set, are those of the live
/// object.
pub(super) fn check_versions(target: &Target, live: &Value, new: &Value) -> ApiResult<()> {
    let read = object::meta(new, "resourceVersion");
    if !read.is_empty() && read.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {read:?}: invalid syntax");
        return Err(ApiError::without_reason(500, message));
    }
    if !read.is_empty() && read != object::meta(live, "resourceVersion") {
        return Err(ApiError::modified(&target.kind, &target.name));
    }
    let (wanted, found) = (object::uid(new), object::uid(live));
    if !wanted.is_empty() && wanted != found {
        let reason = format!(
            "Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        );
        return Err(ApiError::conflict(&target.kind, &target.name, &reason));
    }
    Ok(())
}
