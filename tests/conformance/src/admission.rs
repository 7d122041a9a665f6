//! Admission: webhooks that change and refuse objects.

mod lies;
pub(crate) mod server;
mod webhooks;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use opkit::prelude::*;
use serde_json::{Value, json};
use server::WebhookServer;

/// Webhooks that are registered until [`Registered::remove`] is called.
struct Registered {
    client: Client,
    name: String,
}

impl Registered {
    /// Registers webhooks for the ConfigMaps in the namespace of the test. `fields` are merged into
    /// each webhook; `path` names the handler.
    async fn create(
        plane: &ControlPlane,
        server: &WebhookServer,
        mutating: &[(&str, Value)],
        validating: &[(&str, Value)],
    ) -> opkit::Result<Self> {
        let client = plane.client();
        let name = plane.namespace().to_owned();
        let webhooks = |all: &[(&str, Value)]| -> Vec<Value> {
            let one = |(path, fields): &(&str, Value)| webhook(plane, server, path, fields);
            all.iter().map(one).collect()
        };
        if !mutating.is_empty() {
            let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
                "metadata": {"name": name}, "webhooks": webhooks(mutating),
            }))?;
            let api = Api::all(client.clone());
            api.create(&PostParams::default(), &configuration).await?;
        }
        if !validating.is_empty() {
            let configuration: ValidatingWebhookConfiguration = serde_json::from_value(json!({
                "metadata": {"name": name}, "webhooks": webhooks(validating),
            }))?;
            let api = Api::all(client.clone());
            api.create(&PostParams::default(), &configuration).await?;
        }
        let registered = Self { client, name };
        registered.wait_until_active(plane, server).await?;
        Ok(registered)
    }

    /// Waits until the API server calls the webhooks: a real one reads its configurations with a
    /// delay. Each attempt creates a ConfigMap with another name.
    async fn wait_until_active(
        &self,
        plane: &ControlPlane,
        server: &WebhookServer,
    ) -> opkit::Result {
        let api: Api<ConfigMap> = Api::namespaced(plane.client(), plane.namespace());
        for attempt in 0..500 {
            let probe = config_map(&format!("probe-{attempt}"), json!({}));
            let created = api.create(&PostParams::default(), &probe).await;
            let is_called = server.has_seen("probe-");
            if is_called || created.is_err() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the webhooks of {} are not called", self.name)
    }

    /// Removes the webhooks.
    async fn remove(self) -> opkit::Result {
        let delete = DeleteParams::default();
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let _ = mutating.delete(&self.name, &delete).await;
        let _ = validating.delete(&self.name, &delete).await;
        Ok(())
    }
}

fn webhook(plane: &ControlPlane, server: &WebhookServer, path: &str, fields: &Value) -> Value {
    let mut webhook = json!({
        "name": format!("{}.example.com", path.trim_start_matches('/')),
        "clientConfig": {"url": server.url(path), "caBundle": server.ca_bundle},
        "rules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }],
        "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": plane.namespace()},
        },
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        webhook[field] = value.clone();
    }
    webhook
}

fn config_map(name: &str, data: Value) -> ConfigMap {
    let map = json!({"metadata": {"name": name}, "data": data});
    serde_json::from_value(map).unwrap()
}

/// Creates a ConfigMap, and returns it or the error of the API server.
async fn create(plane: &ControlPlane, name: &str) -> Result<ConfigMap, Box<Status>> {
    let api: Api<ConfigMap> = Api::namespaced(plane.client(), plane.namespace());
    match api
        .create(&PostParams::default(), &config_map(name, json!({})))
        .await
    {
        Ok(created) => Ok(created),
        Err(kube::Error::Api(status)) => Err(status),
        Err(error) => panic!("{error}"),
    }
}
