//! The `caBundle` of webhook configurations and CRDs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opkit_client::{Kind, ObjectKey};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::content::blocks;

#[cfg(test)]
mod tests;

/// Certificates of the authorities that API servers have to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bundle {
    /// Certificates as PEM.
    pub(crate) certificates: String,
    /// Whether no other authority is in use. If not, certificates that an object has stay in it.
    pub(crate) is_complete: bool,
}

impl Bundle {
    /// Returns the bundle for an object that has the bundle `present`, both as PEM.
    pub(crate) fn merged(&self, present: &str) -> String {
        let mut merged = self.certificates.clone();
        if self.is_complete {
            return merged;
        }
        for block in blocks(present) {
            let is_certificate = CertificateDer::from_pem_slice(block.as_bytes()).is_ok();
            if is_certificate && !merged.contains(&block) {
                merged.push_str(&block);
            }
        }
        merged
    }

    /// Returns the `caBundle` for a `clientConfig`, or `None` if it has the right one.
    fn for_client(&self, client: Option<&Value>) -> Option<String> {
        let present = client
            .and_then(|client| client.get("caBundle"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let decoded = STANDARD.decode(present).unwrap_or_default();
        let encoded = STANDARD.encode(self.merged(&String::from_utf8_lossy(&decoded)));
        (encoded != present).then_some(encoded)
    }
}

/// Kind of an object with a `caBundle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A MutatingWebhookConfiguration.
    Mutating,
    /// A ValidatingWebhookConfiguration.
    Validating,
    /// A CustomResourceDefinition with a conversion webhook.
    CustomResourceDefinition,
}

/// An object whose `caBundle` is kept up to date. The keeper owns this field alone, by server-side
/// apply with a field manager of its own, so that an apply of the object without `caBundle` does
/// not remove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleTarget {
    /// Kind of the object.
    pub kind: TargetKind,
    /// Name of the object.
    pub name: String,
}

impl BundleTarget {
    pub(crate) fn kind(&self) -> Kind {
        let (group, kind, plural) = match self.kind {
            TargetKind::Mutating => (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
            ),
            TargetKind::Validating => (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
            ),
            TargetKind::CustomResourceDefinition => (
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "customresourcedefinitions",
            ),
        };
        Kind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: false,
        }
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: None,
            name: self.name.clone(),
        }
    }

    /// Returns whether `object` has a bundle.
    pub(crate) fn has_bundle(&self, object: &Value) -> bool {
        let is_set = |client: Option<&Value>| {
            let bundle = client.and_then(|client| client.get("caBundle"));
            bundle
                .and_then(Value::as_str)
                .is_some_and(|bundle| !bundle.is_empty())
        };
        match self.kind {
            TargetKind::CustomResourceDefinition => {
                is_set(object.pointer("/spec/conversion/webhook/clientConfig"))
            }
            TargetKind::Mutating | TargetKind::Validating => {
                let webhooks = object.get("webhooks").and_then(Value::as_array);
                let mut webhooks = webhooks.into_iter().flatten();
                webhooks.any(|webhook| is_set(webhook.get("clientConfig")))
            }
        }
    }

    /// Returns the patch that gives `object` this bundle, or `None` if it has the bundle already or
    /// calls no webhook. The patch fails with a conflict if the object was changed meanwhile.
    pub(crate) fn patch(&self, object: &Value, bundle: &Bundle) -> Option<Value> {
        let content = match self.kind {
            TargetKind::CustomResourceDefinition => {
                let conversion = object.pointer("/spec/conversion")?;
                let strategy = conversion.get("strategy").and_then(Value::as_str);
                let client = conversion.pointer("/webhook/clientConfig")?;
                let bundle = bundle.for_client(Some(client))?;
                if strategy != Some("Webhook") {
                    return None;
                }
                let client = json!({"clientConfig": {"caBundle": bundle}});
                json!({"spec": {"conversion": {"webhook": client}}})
            }
            TargetKind::Mutating | TargetKind::Validating => {
                let webhooks = object.get("webhooks")?.as_array()?;
                let bundles: Vec<Option<String>> = webhooks
                    .iter()
                    .map(|webhook| bundle.for_client(webhook.get("clientConfig")))
                    .collect();
                if bundles.iter().all(Option::is_none) {
                    return None;
                }
                // A list without one of the webhooks would give up its `caBundle`.
                let webhooks = webhooks.iter().zip(bundles).map(|(webhook, bundle)| {
                    let present = webhook.pointer("/clientConfig/caBundle");
                    let bundle = bundle.map_or_else(|| json!(present), Value::String);
                    json!({"name": webhook.get("name"), "clientConfig": {"caBundle": bundle}})
                });
                json!({"webhooks": webhooks.collect::<Vec<Value>>()})
            }
        };
        let kind = self.kind();
        let mut patch = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {
                "name": self.name,
                "resourceVersion": object.pointer("/metadata/resourceVersion"),
            },
        });
        if let (Value::Object(patch), Value::Object(content)) = (&mut patch, content) {
            patch.extend(content);
        }
        Some(patch)
    }
}
