//! References across namespaces: refused unless the operator declares them with `cross_namespace`
//! and the declared function grants the reference. Without this rule, a user who may write objects
//! in one namespace could make the operator read private objects of another namespace, or write
//! there.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use opkit_client::{GroupResource, Kind, Object, ObjectKey};

use crate::error::ReadError;
use crate::object::owner::Owner;
use crate::reads::MapContext;

/// A reference from an object in one namespace to an object in another.
///
/// # Examples
/// A reference that an annotation on the referenced object grants:
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::Secret;
/// use opkit::{MapContext, Reference};
///
/// fn granted(reference: &Reference, cx: &MapContext) -> bool {
///     let Ok(Some(secret)) = cx.get::<Secret>(reference.to.clone()) else { return false };
///     let annotations = secret.metadata.annotations.iter().flatten();
///     let mut grants = annotations.filter(|(name, _)| *name == "shop.opkit.dev/granted-to");
///     grants.any(|(_, to)| Some(to) == reference.from.namespace.as_ref())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// Kind of the referring object.
    pub from_kind: Kind,
    /// Key of the referring object.
    pub from: ObjectKey,
    /// Kind of the referenced object.
    pub to_kind: Kind,
    /// Key of the referenced object.
    pub to: ObjectKey,
    /// Whether the reconcile wants to apply the referenced object
    /// ([`Context::apply_unowned`](crate::Context::apply_unowned)), not only read it. Such an
    /// object may not exist yet.
    pub is_applied: bool,
}

type Grant = dyn Fn(&Reference, &MapContext) -> bool + Send + Sync;

/// The functions that grant references across namespaces, by the group and resource of the
/// referenced object. The Rust type, the API version, and whether only metadata is read do not
/// matter, because the objects are the same.
#[derive(Clone, Default)]
pub(crate) struct Grants {
    by_resource: HashMap<GroupResource, Arc<Grant>>,
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants")
            .field("len", &self.by_resource.len())
            .finish_non_exhaustive()
    }
}

impl Grants {
    pub(crate) fn insert<C: Object>(
        &mut self,
        grant: impl Fn(&Reference, &MapContext) -> bool + Send + Sync + 'static,
    ) {
        let resource = resource_of(&Kind::of::<C>());
        self.by_resource.insert(resource, Arc::new(grant));
    }
}

/// Returns the group and resource of a kind. All API versions of a kind, and its form with metadata
/// only, have the same group and resource.
pub(crate) fn resource_of(kind: &Kind) -> GroupResource {
    GroupResource::new(&kind.group, &kind.plural)
}

/// Reports whether a change of the object `to` may cause a reconcile of the object `from`, which
/// refers to `to`. Across namespaces, this requires that the operator declares `cross_namespace`
/// for the kind. A grant is not required, so that a revoked grant or a deleted object is noticed.
pub(crate) fn leads(
    context: &MapContext,
    from: &ObjectKey,
    to_kind: &Kind,
    to: &ObjectKey,
) -> bool {
    let grants = &context.grants.by_resource;
    !crosses(from, to) || grants.contains_key(&resource_of(to_kind))
}

/// Checks that `owner` may read an object of kind `C`. If the controller declares `C` with
/// `references` and the object is in another namespace, the reference must be granted.
pub(crate) fn check<C: Object>(
    context: &MapContext,
    owner: &Owner,
    key: &ObjectKey,
) -> Result<(), ReadError> {
    match crosses(&owner.key, key) {
        true => check_kind(context, owner, &Kind::of::<C>(), key),
        false => Ok(()),
    }
}

/// Same as [`check`], for a kind that is known only at run time.
pub(crate) fn check_kind(
    context: &MapContext,
    owner: &Owner,
    kind: &Kind,
    key: &ObjectKey,
) -> Result<(), ReadError> {
    match context.declared.referenced.contains(&resource_of(kind)) {
        true => check_granted(context, owner, kind, key, false),
        false => Ok(()),
    }
}

/// Checks that `owner` may refer to the object: to read it, or to apply it if `is_applied`. If the
/// object is in another namespace, the reference must be granted.
pub(crate) fn check_granted(
    context: &MapContext,
    owner: &Owner,
    kind: &Kind,
    key: &ObjectKey,
    is_applied: bool,
) -> Result<(), ReadError> {
    if !crosses(&owner.key, key) {
        return Ok(());
    }
    let resource = resource_of(kind);
    let reference = Reference {
        from_kind: (*context.controller.kind).clone(),
        from: owner.key.key().clone(),
        to_kind: kind.clone(),
        to: key.clone(),
        is_applied,
    };
    let grant = context.grants.by_resource.get(&resource);
    match grant.is_some_and(|grant| grant(&reference, context)) {
        true => Ok(()),
        false => Err(ReadError::NotGranted {
            kind: Box::new(reference.to_kind),
            key: reference.to,
            from: owner.to_string(),
        }),
    }
}

/// Reports whether the two objects are in different namespaces. False if one of them is
/// cluster-scoped.
fn crosses(from: &ObjectKey, to: &ObjectKey) -> bool {
    from.namespace.is_some() && to.namespace.is_some() && from.namespace != to.namespace
}
