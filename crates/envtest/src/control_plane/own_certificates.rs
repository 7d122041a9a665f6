//! Operators that serve their webhooks with their own certificates, as in a cluster.

use std::net::Ipv4Addr;

use opkit_client::ObjectKey;
use opkit_controller::Result;
use opkit_operator::{CertificatePeriods, RunOptions};
use serde_json::Value;

use super::ControlPlane;
use super::webhooks::{kind_of, text};
use crate::error::{TestError, refused};

impl ControlPlane {
    /// Returns another handle of the same control plane, whose operators create the certificates of
    /// their webhooks themselves, as they do in a cluster: in a Secret in the namespace of the
    /// test, and with the `caBundle` of the webhook configurations and CRDs. The API server calls
    /// the webhooks over HTTPS on a loopback port, also on an embedded control plane. By default
    /// the certificates are created by the test, and the embedded server calls webhooks in this
    /// process.
    ///
    /// # Examples
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use opkit_envtest::ControlPlane;
    /// # use opkit_operator::{CertificatePeriods, Operator};
    /// # use opkit_webhook::{Admission, Webhook};
    /// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
    /// let webhook = Webhook::<ConfigMap>::new().validating(|_, _| Admission::denied("no maps"));
    /// let operator = Operator::new("map-operator").webhook(webhook);
    /// let plane = plane.own_certificates(CertificatePeriods::default());
    /// plane.start(operator).await?;
    /// let secret = plane.get::<Secret>("map-operator-webhook-certificates").await?;
    /// assert!(secret.is_some());
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    #[must_use]
    pub fn own_certificates(&self, periods: CertificatePeriods) -> Self {
        let mut plane = self.clone();
        plane.own_certificates = Some(periods);
        plane
    }

    /// Sets the options of an operator for its own certificates. Returns `false` if operators of
    /// this handle have none.
    pub(super) fn use_own_certificates(&self, options: &mut RunOptions) -> bool {
        let Some(periods) = &self.own_certificates else {
            return false;
        };
        let host = Ipv4Addr::LOCALHOST;
        options.webhook_bind_address = Some((host, 0).into());
        let own = &mut options.own_certificates;
        own.hosts = vec![host.to_string()];
        own.namespace = Some(self.namespace().to_owned());
        own.periods = periods.clone();
        true
    }

    /// Waits until the operator has written the `caBundle` of a webhook configuration.
    pub(super) async fn wait_for_bundle(&self, configuration: &Value) -> Result {
        let kind = kind_of(configuration);
        let name = text(configuration, "/metadata/name");
        let key = ObjectKey::from(name.as_str());
        let written = self
            .wait(async || {
                let read = self.inner.client.get(&kind, &key).await;
                let what = || format!("get {} {name}", kind.kind);
                let read = read.map_err(|cause| refused(what(), cause))?;
                let read: Value = serde_json::from_slice(&read)?;
                let webhooks = read.get("webhooks").and_then(Value::as_array);
                let mut webhooks = webhooks.into_iter().flatten();
                let has_bundle =
                    |webhook: &Value| webhook.pointer("/clientConfig/caBundle").is_some();
                Ok(webhooks.all(has_bundle).then_some(()))
            })
            .await?;
        match written {
            Some(()) => Ok(()),
            None => Err(TestError::WebhookNotCalled {
                name,
                timeout: self.timeout,
            }
            .into()),
        }
    }
}
