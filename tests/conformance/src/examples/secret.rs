//! The secret operator: references across namespaces, granted, refused and revoked.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use opkit::prelude::*;
use secret_operator::{SHARE_WITH, SecretCopy, SecretCopySpec, SecretReference, operator};
use serde_json::json;

use super::{RunningOperator, condition, golden_rules, object};

/// Namespace with secrets, beside the namespace of the test; `end` deletes it.
struct Vault {
    plane: ControlPlane,
    name: String,
    running: RunningOperator,
}

impl Vault {
    async fn start(plane: &ControlPlane) -> opkit::Result<Self> {
        let name = format!("{}-vault", plane.namespace());
        let namespace: Namespace = object(json!({"metadata": {"name": name}}));
        plane.apply(namespace).await?;
        let running = RunningOperator::start(plane, operator(), &[&name]).await?;
        let plane = plane.clone();
        Ok(Self {
            plane,
            name,
            running,
        })
    }

    /// Applies the secret `token`, shared with these namespaces.
    async fn keep(&self, token: &str, share_with: &str) -> opkit::Result {
        let mut secret: Secret = object(json!({"metadata": {
            "name": "token", "namespace": self.name, "annotations": {SHARE_WITH: share_with},
        }}));
        let data = ByteString(token.as_bytes().to_vec());
        secret.data = Some([("token".to_owned(), data)].into());
        self.plane.apply(secret).await?;
        Ok(())
    }

    /// Applies a SecretCopy of the secret under another name.
    async fn copy(&self, name: &str) -> opkit::Result {
        let from = SecretReference {
            namespace: self.name.clone(),
            name: "token".into(),
        };
        let copy = SecretCopy::new(name, SecretCopySpec { from });
        self.plane.apply(copy).await?;
        Ok(())
    }

    async fn end(self) -> opkit::Result {
        self.running.stop().await?;
        self.plane.delete::<Namespace>(self.name.as_str()).await
    }
}

fn ready(copy: &SecretCopy) -> Option<(bool, &str)> {
    let conditions = copy.status.as_ref().map(|status| &status.conditions);
    condition(copy.metadata.generation, conditions, "Ready")
}

fn holds(secret: &Secret, token: &str) -> bool {
    let data = secret.data.as_ref().and_then(|data| data.get("token"));
    data.is_some_and(|data| data.0 == token.as_bytes())
}

#[opkit::test]
async fn a_copy_follows_its_original_and_is_deleted_with_its_object(
    plane: ControlPlane,
) -> opkit::Result {
    let vault = Vault::start(&plane).await?;
    vault.keep("one", plane.namespace()).await?;
    vault.copy("mine").await?;
    plane
        .eventually("mine", |copy: &SecretCopy| copy.is_ready())
        .await?;
    let copy = plane.get::<Secret>("mine").await?.unwrap();
    assert!(holds(&copy, "one"));
    assert!(
        !copy.annotations().contains_key(SHARE_WITH),
        "the grant is not copied"
    );

    vault.keep("two", plane.namespace()).await?;
    plane
        .eventually("mine", |secret: &Secret| holds(secret, "two"))
        .await?;
    plane.delete::<SecretCopy>("mine").await?;
    plane.eventually_gone::<Secret>("mine").await?;
    vault.end().await
}

#[opkit::test]
async fn without_a_grant_nothing_is_copied_and_the_condition_has_a_reason(
    plane: ControlPlane,
) -> opkit::Result {
    let vault = Vault::start(&plane).await?;
    vault.keep("one", "other,another").await?;
    vault.copy("mine").await?;
    let refused = plane
        .eventually("mine", |copy: &SecretCopy| {
            ready(copy) == Some((false, "NotGranted"))
        })
        .await?;
    let status = refused.status.unwrap();
    let message = &status.conditions.get("Ready").unwrap().message;
    let want = format!(
        "{}/token is not shared with {}",
        vault.name,
        plane.namespace()
    );
    assert!(
        message.starts_with(&want) && message.contains(SHARE_WITH),
        "{message}"
    );
    assert!(plane.get::<Secret>("mine").await?.is_none());

    // Granted to several namespaces.
    vault
        .keep("one", &format!("else, {}", plane.namespace()))
        .await?;
    plane
        .eventually("mine", |copy: &SecretCopy| copy.is_ready())
        .await?;
    assert!(holds(&plane.get::<Secret>("mine").await?.unwrap(), "one"));
    vault.end().await
}

#[opkit::test]
async fn a_revoked_grant_deletes_the_copy(plane: ControlPlane) -> opkit::Result {
    let vault = Vault::start(&plane).await?;
    vault.keep("one", plane.namespace()).await?;
    vault.copy("mine").await?;
    plane
        .eventually("mine", |copy: &SecretCopy| copy.is_ready())
        .await?;
    let taken_back = |copy: &SecretCopy| ready(copy) == Some((false, "NotGranted"));
    vault.keep("one", "").await?;
    plane.eventually("mine", taken_back).await?;
    plane.eventually_gone::<Secret>("mine").await?;

    // So does the deletion of the original, which also revokes the grant.
    vault.keep("one", plane.namespace()).await?;
    plane
        .eventually("mine", |copy: &SecretCopy| copy.is_ready())
        .await?;
    plane
        .delete::<Secret>((vault.name.as_str(), "token"))
        .await?;
    plane.eventually("mine", taken_back).await?;
    plane.eventually_gone::<Secret>("mine").await?;
    vault.end().await
}

#[opkit::test]
async fn a_secret_of_another_client_is_not_overwritten(plane: ControlPlane) -> opkit::Result {
    let vault = Vault::start(&plane).await?;
    vault.keep("one", plane.namespace()).await?;
    let foreign: Secret = object(json!({"metadata": {"name": "mine"}}));
    let foreign = plane.apply(foreign).await?;
    vault.copy("mine").await?;
    plane
        .eventually("mine", |copy: &SecretCopy| {
            ready(copy) == Some((false, "NameTaken"))
        })
        .await?;
    let same = plane.get::<Secret>("mine").await?.unwrap();
    assert_eq!(
        same.metadata.resource_version,
        foreign.metadata.resource_version
    );

    // The copy is created as soon as the name is free, without a timer.
    plane.delete::<Secret>("mine").await?;
    plane
        .eventually("mine", |secret: &Secret| holds(secret, "one"))
        .await?;
    vault.end().await
}

#[opkit::test]
async fn a_restart_writes_nothing(plane: ControlPlane) -> opkit::Result {
    let mut vault = Vault::start(&plane).await?;
    vault.keep("one", plane.namespace()).await?;
    vault.copy("mine").await?;
    plane
        .eventually("mine", |copy: &SecretCopy| copy.is_ready())
        .await?;
    vault.running.stop().await?;
    vault.running = RunningOperator::start(&plane, operator(), &[&vault.name]).await?;
    let again = |_: &SecretCopy| vault.running.has_reconciled("secretcopy", "mine");
    plane.eventually("mine", again).await?;
    assert_eq!(vault.running.writes(), [""; 0]);
    vault.end().await
}

#[test]
fn the_permissions_are_least_privilege() -> opkit::Result {
    golden_rules(&operator())
}
