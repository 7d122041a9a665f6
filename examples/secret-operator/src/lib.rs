//! An operator that copies Secrets to namespaces that they are shared with.
//!
//! Whoever may write a SecretCopy in one namespace must not thereby read the Secrets of all others,
//! which the operator can. So opkit refuses to read across namespaces what an object merely names,
//! unless the operator declares such references and a function of its own grants the one in
//! question. Here the owner of a Secret grants it, by an annotation on the Secret that lists
//! namespaces.

mod secret_copy;

use opkit::k8s_openapi::api::core::v1::Secret;
use opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit::{ReadError, prelude::*};

pub use secret_copy::{SecretCopy, SecretCopySpec, SecretCopyStatus, SecretReference};

/// The annotation of a Secret with the namespaces that may copy it, separated by commas.
pub const SHARE_WITH: &str = "secret.opkit.dev/share-with";

/// The whole operator.
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

/// The Secrets whose changes matter to a copy: the original, its annotation included, and what has
/// the copy's own name, which may be somebody else's and go away.
fn secrets_of(copy: &SecretCopy) -> Vec<ObjectKey> {
    vec![copy.spec.key(), copy.name_any().into()]
}

/// Whether the owner of a Secret shares it with the namespace of the object that names it. A Secret
/// that does not exist is shared with nobody: who may not read it does not learn whether it is
/// there.
fn granted(reference: &Reference, cx: &MapContext) -> bool {
    let Ok(Some(secret)) = cx.get::<Secret>(reference.to.clone()) else {
        return false;
    };
    let shared_with = secret.annotations().get(SHARE_WITH);
    let mut namespaces = shared_with.iter().flat_map(|list| list.split(','));
    namespaces.any(|name| Some(name.trim()) == reference.from.namespace.as_deref())
}

/// Keeps one copy as its original is; without a grant, or without it, there is none.
async fn reconcile(copy: Arc<SecretCopy>, cx: Context) -> Result<Action> {
    let ready = match cx.get::<Secret>(copy.spec.key()) {
        Ok(Some(original)) => match cx.apply(desired_secret(&copy, &original)).await {
            Ok(_) => Condition::new("Ready", true).reason("Copied"),
            Err(error) if error.is_not_ours() => Condition::new("Ready", false)
                .reason("NameTaken")
                .message(error.to_string()),
            Err(error) => return Err(error.into()),
        },
        // In the same namespace, where no grant is needed.
        Ok(None) => Condition::new("Ready", false)
            .reason("NotFound")
            .message(format!("there is no Secret {}", copy.spec.key())),
        Err(ReadError::NotGranted { key, .. }) => {
            let name = cx.key().namespace.as_deref().unwrap_or_default();
            let message = format!("{key} is not shared with {name} by its annotation {SHARE_WITH}");
            Condition::new("Ready", false)
                .reason("NotGranted")
                .message(message)
        }
        Err(error) => return Err(error.into()),
    };
    // What this run did not apply goes: after a grant was taken back, the copy.
    cx.prune().await?;
    cx.update_status(&copy, |status| status.conditions.set(&ready))
        .await?;
    Ok(Action::await_change())
}

/// The original's content, and nothing of its metadata: least of all the grant.
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
