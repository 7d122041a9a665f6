//! The plugin `OwnerReferencesPermissionEnforcement`, which is off by default.

use serde_json::Value;

use super::{Attributes, Operation};
use crate::authentication::Identity;
use crate::authorization::{Attributes as AccessAttributes, Decision};
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;

/// Checks that the user may change the owner references of an object: the user must be allowed to
/// delete the object, and to change the finalizers of each owner whose deletion the object blocks
/// from now on.
pub(super) async fn check(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &Value,
) -> ApiResult<()> {
    // The control plane's own controllers may change all owner references.
    let Some(user) = &attributes.write.user else {
        return Ok(());
    };
    let is_handled = matches!(attributes.operation, Operation::Create | Operation::Update);
    let target = attributes.target;
    let kind = &target.kind;
    let is_pod_status =
        kind.group.is_empty() && kind.plural == "pods" && target.subresource == "status";
    if !is_handled || is_pod_status || owners(attributes.old) == owners(Some(object)) {
        return Ok(());
    }
    if attributes.operation == Operation::Update {
        let mut access = AccessAttributes::of_resource("delete", &kind.group, &kind.plural)
            .in_namespace(attributes.namespace())
            .named(attributes.name);
        access.version = kind.version.as_str().into();
        access.subresource = target.subresource.as_str().into();
        if let Some(why) = refusal(registry, user, &access).await {
            let text = "cannot set an ownerRef on a resource you can't delete";
            return Err(attributes.forbid(format!("{text}: {why}")));
        }
    }
    let blocking = new_blocking(attributes.old, object);
    if blocking.is_empty() {
        return Ok(());
    }
    let mut any = AccessAttributes::of_resource("update", "*", "*").named("*");
    any.version = "*".into();
    any.subresource = "finalizers".into();
    if refusal(registry, user, &any).await.is_none() {
        return Ok(());
    }
    for owner in blocking {
        check_owner(registry, attributes, user, owner).await?;
    }
    Ok(())
}

/// Checks that the user may change the finalizers of an owner.
async fn check_owner(
    registry: &Registry,
    attributes: &Attributes<'_>,
    user: &Identity,
    owner: &Value,
) -> ApiResult<()> {
    let (api_version, of) = (
        object::text(owner, &["apiVersion"]),
        object::text(owner, &["kind"]),
    );
    let found = registry
        .catalog
        .find(|kind| kind.api_version() == api_version && kind.kind == of);
    let Some(kind) = found else {
        return Err(attributes.forbid(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
             APIVersion {api_version} Kind {of}: no matches for kind {of:?} in version \
             {api_version:?}"
        )));
    };
    let mut access = AccessAttributes::of_resource("update", &kind.group, &kind.plural)
        .named(object::text(owner, &["name"]));
    access.version = kind.version.as_str().into();
    access.subresource = "finalizers".into();
    if kind.namespaced {
        access = access.in_namespace(attributes.namespace());
    }
    match refusal(registry, user, &access).await {
        None => Ok(()),
        Some(why) => Err(attributes.forbid(format!(
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set \
             finalizers on: {why}"
        ))),
    }
}

/// Returns the reason for which the authorizers do not allow an access, or `None` if they do.
async fn refusal(
    registry: &Registry,
    user: &Identity,
    access: &AccessAttributes<'_>,
) -> Option<String> {
    let authorizer = &registry.authorizer;
    let decision: Decision = authorizer.authorize(&registry.store, user, access).await;
    let error = decision.error.as_deref().unwrap_or("<nil>");
    (!decision.is_allowed()).then(|| format!("{}, {error}", decision.reason))
}

fn owners(object: Option<&Value>) -> &[Value] {
    object.map_or(&[], |object| {
        object::items(object, &["metadata", "ownerReferences"])
    })
}

fn is_blocking(owner: &Value) -> bool {
    object::at(owner, &["blockOwnerDeletion"]) == true
}

/// Returns the owners whose deletion `new` blocks and `old` does not block.
fn new_blocking<'a>(old: Option<&Value>, new: &'a Value) -> Vec<&'a Value> {
    let was_blocking = |owner: &Value| {
        let mut old = owners(old).iter();
        let before = old.rfind(|old| object::at(old, &["uid"]) == object::at(owner, &["uid"]));
        before.is_some_and(is_blocking)
    };
    let blocking = owners(Some(new)).iter().filter(|owner| is_blocking(owner));
    blocking.filter(|owner| !was_blocking(owner)).collect()
}
