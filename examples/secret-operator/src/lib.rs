//! An operator that copies Secrets to the namespaces that they are shared with.
//!
//! The operator can read all Secrets, but a user who may write a SecretCopy in one namespace must
//! not get access to them that way. So opkit refuses to read an object of another namespace only
//! because another object names it, unless the operator declares such references and its function
//! grants the one in question. Here the owner of a Secret grants it, with an annotation on the
//! Secret that lists namespaces.

mod secret_copy;

use opkit::controller::ReadError;
use opkit::k8s_openapi::api::core::v1::Secret;
use opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit::prelude::*;

pub use secret_copy::{SecretCopy, SecretCopySpec, SecretCopyStatus, SecretReference};

/// Annotation of a Secret with the namespaces that may copy it, separated by commas.
pub const SHARE_WITH: &str = "secret.opkit.dev/share-with";

/// Returns the operator.
pub fn operator() -> Operator {
    Operator::new("secret-operator")
        .crd::<SecretCopy>()
        .controller(
            Controller::new(reconcile)
                .owns::<Secret>()
                .references::<Secret>(secrets_of),
        )
        .cross_namespace::<Secret>(granted)
}

/// Returns the Secrets whose changes affect a copy: the original, with its annotation, and a Secret
/// with the copy's own name, which may belong to another controller until it is deleted.
fn secrets_of(copy: &SecretCopy) -> Vec<ObjectKey> {
    vec![copy.spec.key(), copy.name_any().into()]
}

/// Reports whether the owner of a Secret shares it with the namespace of the object that names it.
/// A missing Secret is not shared with any namespace, so that an unauthorized user cannot find out
/// whether it exists.
fn granted(reference: &Reference, cx: &MapContext) -> bool {
    let Ok(Some(secret)) = cx.get::<Secret>(reference.to.clone()) else {
        return false;
    };
    let shared_with = secret.annotations().get(SHARE_WITH);
    let mut namespaces = shared_with.iter().flat_map(|list| list.split(','));
    namespaces.any(|name| Some(name.trim()) == reference.from.namespace.as_deref())
}

/// Applies the copy of one Secret. Without a grant, or without the original, the copy is deleted.
async fn reconcile(copy: Arc<SecretCopy>, cx: Context) -> Result<Action> {
    let ready = match cx.get::<Secret>(copy.spec.key()) {
        Ok(Some(original)) => match cx.apply(desired_secret(&copy, &original)).await {
            Ok(_) => Condition::new("Ready", true).reason("Copied"),
            Err(error) if error.is_not_ours() => Condition::new("Ready", false)
                .reason("NameTaken")
                .message(error.to_string()),
            Err(error) => return Err(error.into()),
        },
        // The original is in the same namespace, so no grant is needed.
        Ok(None) => Condition::new("Ready", false)
            .reason("NotFound")
            .message(format!("there is no Secret {}", copy.spec.key())),
        Err(ReadError::NotGranted { key, .. }) => {
            let name = cx.key().namespace.as_deref().unwrap_or_default();
            let message = format!("{key} is not shared with {name} by its annotation {SHARE_WITH}");
            cx.event(Warning, "NotGranted", message.as_str());
            Condition::new("Ready", false)
                .reason("NotGranted")
                .message(message)
        }
        Err(error) => return Err(error.into()),
    };
    // Deletes the children that this run did not apply: after a grant was revoked, the copy.
    cx.prune().await?;
    cx.update_status(&copy, |status| status.conditions.set(&ready))
        .await?;
    Ok(Action::await_change())
}

/// Returns the copy, with the original's content but without its metadata, which includes the
/// grant.
fn desired_secret(copy: &SecretCopy, original: &Secret) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(copy.name_any()),
            ..Default::default()
        },
        data: original.data.clone(),
        type_: original.type_.clone(),
        ..Default::default()
    }
}
