//! References across namespaces: refused unless the operator declares them and its function grants
//! the one in question. Otherwise whoever may write an object in one namespace could have the
//! operator read, on their behalf, what another namespace keeps to itself, or write there.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use opkit_client::{GroupResource, Kind, Object, ObjectKey};

use crate::error::ReadError;
use crate::object::owner::Owner;
use crate::reads::MapContext;

/// An object of one namespace that names one of another.
///
/// # Examples
/// Granted by an annotation on the object that is named:
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
    /// The kind of the object that names another.
    pub from_kind: Kind,
    /// The object that names another.
    pub from: ObjectKey,
    /// The kind of the object that is named.
    pub to_kind: Kind,
    /// The object that is named.
    pub to: ObjectKey,
    /// Whether it is to be applied there
    /// ([`Context::apply_unowned`](crate::Context::apply_unowned)), and not only read. It may not
    /// exist yet.
    pub is_applied: bool,
}

type Grant = dyn Fn(&Reference, &MapContext) -> bool + Send + Sync;

/// What decides on references across namespaces, by the resource that is named: whatever the Rust
/// type and the version, metadata alone included, the objects are the same.
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

/// What the objects of a kind are, in every version and form.
pub(crate) fn resource_of(kind: &Kind) -> GroupResource {
    GroupResource::new(&kind.group, &kind.plural)
}

/// Whether a change of `to` may lead to `from`. Where references across namespaces are declared at
/// all it may, so that a grant that was taken back, or an object that is gone, is noticed.
pub(crate) fn leads(
    context: &MapContext,
    from: &ObjectKey,
    to_kind: &Kind,
    to: &ObjectKey,
) -> bool {
    let grants = &context.grants.by_resource;
    !crosses(from, to) || grants.contains_key(&resource_of(to_kind))
}

/// A kind whose objects are named by those of the controller's kind is read in another namespace
/// than that of `owner` only where that is granted.
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

/// As [`check`], of any kind.
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

/// An object in another namespace than that of `owner` is read or applied only where that is
/// granted.
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

/// Objects of the cluster scope are in no namespace that could be crossed.
fn crosses(from: &ObjectKey, to: &ObjectKey) -> bool {
    from.namespace.is_some() && to.namespace.is_some() && from.namespace != to.namespace
}
