//! Requests of a keeper.

use http::Method;
use opkit_client::{Kind, ObjectKey, Patch, RequestError, RestClient, WriteOptions};
use serde_json::{Value, json};

use crate::bundle::BundleTarget;
use crate::server_time::of_last_write;

/// Annotation that only dry runs write.
const CLOCK: &str = "opkit.dev/clock";

/// Outcome of reading the clock of the API server.
#[derive(Debug)]
pub(crate) enum ClockRead {
    /// Time in seconds since 1970.
    Time(i64),
    /// Another replica wrote the Secret at the same time.
    Conflict,
    /// The API server does not record the times of writes.
    Unsupported,
}

/// Client of a keeper, for its Secret and its targets.
#[derive(Debug)]
pub(crate) struct Api {
    client: RestClient,
    secret: ObjectKey,
    /// Field manager of all writes.
    manager: String,
}

pub(crate) fn secret_kind() -> Kind {
    Kind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
    }
}

impl Api {
    pub(crate) fn new(client: RestClient, secret: ObjectKey, manager: String) -> Self {
        Self {
            client,
            secret,
            manager,
        }
    }

    pub(crate) fn client(&self) -> &RestClient {
        &self.client
    }

    pub(crate) fn secret(&self) -> &ObjectKey {
        &self.secret
    }

    pub(crate) fn manager(&self) -> &str {
        &self.manager
    }

    pub(crate) async fn read_secret(&self) -> Result<Option<Value>, RequestError> {
        self.read(&secret_kind(), &self.secret).await
    }

    /// Reads an object; returns `None` if there is none.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<Option<Value>, RequestError> {
        let path = kind.path(key.namespace.as_deref()).name(&key.name);
        let object = self.client.resource_request(Method::GET, &path)?;
        match object.typed().await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the Secret if `secret` has no `resourceVersion`, otherwise replaces it. Returns the
    /// stored Secret.
    pub(crate) async fn write_secret(&self, secret: &Value) -> Result<Value, RequestError> {
        self.write(secret, false).await
    }

    /// Reads the time of the API server, from the metadata of a write that is not stored.
    pub(crate) async fn read_clock(
        &self,
        secret: Option<&Value>,
    ) -> Result<ClockRead, RequestError> {
        let mut secret = secret.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": self.secret.name, "namespace": self.secret.namespace},
            })
        });
        if let Some(Value::Object(metadata)) = secret.get_mut("metadata") {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Value::Object(annotations) = annotations {
                // A value that changes with each call, so that the write changes something.
                annotations.insert(CLOCK.to_owned(), json!(opkit_random::uuid()));
            }
        }
        match self.write(&secret, true).await {
            Ok(secret) => {
                let time = of_last_write(&secret, &self.manager);
                Ok(time.map_or(ClockRead::Unsupported, ClockRead::Time))
            }
            Err(error)
                if error.is_conflict() || error.is_already_exists() || error.is_not_found() =>
            {
                Ok(ClockRead::Conflict)
            }
            Err(error) => Err(error),
        }
    }

    /// Applies a patch to a target, with the fields of the patch taken from other managers.
    pub(crate) async fn apply(
        &self,
        target: &BundleTarget,
        patch: &Value,
    ) -> Result<(), RequestError> {
        let options = WriteOptions::for_manager(&self.manager).force();
        let (kind, key) = (target.kind(), target.key());
        self.client
            .patch(&kind, &key, None, Patch::Apply(patch), &options)
            .await?;
        Ok(())
    }

    async fn write(&self, secret: &Value, is_dry_run: bool) -> Result<Value, RequestError> {
        let kind = secret_kind();
        let collection = kind.path(self.secret.namespace.as_deref());
        let request = match secret.pointer("/metadata/resourceVersion") {
            None => self.client.resource_request(Method::POST, &collection),
            Some(_) => {
                let path = collection.name(&self.secret.name);
                self.client.resource_request(Method::PUT, &path)
            }
        };
        let mut request = request?.query("fieldManager", &self.manager);
        if is_dry_run {
            request = request.query("dryRun", "All");
        }
        request.json(secret).typed().await
    }
}
