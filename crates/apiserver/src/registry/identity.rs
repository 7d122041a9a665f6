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
pub(crate) fn check_namespace(target: &Target, body: &Value) -> ApiResult<()> {
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
    let is_wanted = match subresource {
        "scale" => version == "autoscaling/v1" && name == "Scale",
        _ => version == kind.api_version() && name == kind.kind,
    };
    if is_wanted {
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
        return Err(precondition_failed(target, "UID", wanted, found));
    }
    Ok(())
}

/// Returns the error for an object whose UID or resource version is not that of the request. As in
/// Kubernetes, the message has the key of the object in etcd.
pub(super) fn precondition_failed(
    target: &Target,
    what: &str,
    wanted: &str,
    found: &str,
) -> ApiError {
    let kind = &target.kind;
    let resource = match kind.is_custom() {
        true => format!("{}/{}", kind.group, kind.plural),
        false => etcd_prefix(kind).to_owned(),
    };
    let place = [
        resource.as_str(),
        target.namespace.as_str(),
        target.name.as_str(),
    ];
    let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
    let reason = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in \
         object meta: {found}",
        place.join("/")
    );
    ApiError::conflict(kind, &target.name, &reason)
}

/// Returns the prefix of the keys of a built-in kind in etcd.
fn etcd_prefix(kind: &Kind) -> &str {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("", "nodes") => "minions",
        ("", "replicationcontrollers") => "controllers",
        ("networking.k8s.io", "ingresses") => "ingress",
        (_, plural) => plural,
    }
}
