//! Migration by the controller of the cluster: a StorageVersionMigration of
//! `storagemigration.k8s.io`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{MANAGER, MigrationError, StorageMigration};
use crate::{ApiResource, DeleteOptions, Discovery, Kind, ObjectKey, RequestError, WriteOptions};

const GROUP: &str = "storagemigration.k8s.io";
const PLURAL: &str = "storageversionmigrations";
/// Interval at which the status is read.
const POLL: Duration = Duration::from_secs(1);

impl StorageMigration {
    /// Lets the cluster rewrite the objects: creates a StorageVersionMigration, waits until it
    /// succeeds, deletes it, and removes the old versions from `status.storedVersions` of the CRD.
    /// An object that exists from an interrupted migration is used.
    ///
    /// # Errors
    /// [`MigrationError::NoController`] if the cluster does not serve this API, which is not on by
    /// default in Kubernetes 1.36. If the migration fails, or takes longer than `timeout`.
    ///
    /// # Cancel safety
    /// The migration can be dropped at any time and started again.
    pub async fn run_by_cluster(&self, timeout: Duration) -> Result<(), MigrationError> {
        let kind = self.migration_kind().await?;
        let name = format!("opkit-{}-{}", self.crd, self.storage);
        let fail = |what: &'static str| {
            let name = name.clone();
            move |cause: RequestError| MigrationError::Object {
                what,
                name,
                cause: Box::new(cause),
            }
        };
        let object = self.migration(&kind, &name);
        let options = WriteOptions::for_manager(MANAGER);
        match self.rest.create(&kind, None, &object, &options).await {
            Err(error) if error.is_already_exists() => {}
            created => drop(created.map_err(fail("create"))?),
        }
        let key = ObjectKey::from(name.as_str());
        let deadline = Instant::now() + timeout;
        loop {
            let found = self.rest.get(&kind, &key).await.map_err(fail("read"))?;
            let found: Value = serde_json::from_slice(&found).unwrap_or_default();
            if let Some(message) = condition(&found, "Failed") {
                let _ = self
                    .rest
                    .delete(&kind, &key, &DeleteOptions::background())
                    .await;
                return Err(MigrationError::Failed { name, message });
            }
            if condition(&found, "Succeeded").is_some() {
                break;
            }
            if Instant::now() >= deadline {
                return Err(MigrationError::Timeout { name, timeout });
            }
            tokio::time::sleep(POLL).await;
        }
        let options = DeleteOptions::background();
        match self.rest.delete(&kind, &key, &options).await {
            Err(error) if error.is_not_found() => {}
            deleted => drop(deleted.map_err(fail("delete"))?),
        }
        self.clean().await
    }

    /// Returns the kind of StorageVersionMigrations in the version that the cluster serves.
    async fn migration_kind(&self) -> Result<Kind, MigrationError> {
        let discovered = Discovery::new(self.rest.kube()).get().await;
        let discovered = discovered.map_err(|_| MigrationError::NoController)?;
        let mut versions = ["v1", "v1beta1", "v1alpha1"].iter();
        let found = versions.find_map(|version| discovered.resource(GROUP, version, PLURAL));
        found
            .map(ApiResource::kind)
            .ok_or(MigrationError::NoController)
    }

    fn migration(&self, kind: &Kind, name: &str) -> Value {
        let (group, plural) = (&self.kind.group, &self.kind.plural);
        let resource = match kind.version.as_str() {
            "v1alpha1" => json!({"group": group, "version": self.storage, "resource": plural}),
            _ => json!({"group": group, "resource": plural}),
        };
        json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {"name": name},
            "spec": {"resource": resource},
        })
    }
}

/// Returns the message of a condition that is true.
fn condition(object: &Value, wanted: &str) -> Option<String> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let text = |it: &Value, name: &str| it.get(name)?.as_str().map(str::to_owned);
    let is_true = |it: &&Value| {
        text(it, "type").as_deref() == Some(wanted) && text(it, "status").as_deref() == Some("True")
    };
    let found = conditions.iter().find(is_true)?;
    Some(text(found, "message").unwrap_or_default())
}
