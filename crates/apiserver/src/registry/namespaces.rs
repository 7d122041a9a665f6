//! The objects that every namespace has.

use serde_json::json;

use super::{Registry, Write};
use crate::aggregator::FRONT_PROXY;
use crate::object;
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// The ConfigMap with the certificate authority of the API server, in every namespace.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when \
    using internal endpoints such as the internal service IP or kubernetes.default.svc. No other \
    usage is guaranteed across distributions of Kubernetes clusters.";

impl Registry {
    /// Creates the ServiceAccount `default` of a namespace, unless it exists.
    pub(crate) async fn create_default_account(&self, namespace: &str) -> ApiResult<()> {
        let key = Key::new(namespace, "default");
        if self.store.get("serviceaccounts", &key).is_some() {
            return Ok(());
        }
        let kind = self.builtin("", "serviceaccounts")?;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let mut write = Write::by(CONTROLLER_MANAGER);
        let target = Target::new(&kind, namespace, "");
        match self.create(&target, account, &mut write).await {
            // Another task created the account meanwhile.
            Err(error) if error.code == 409 => Ok(()),
            created => created.map(|_| ()),
        }
    }

    /// Writes the certificate authority into the ConfigMap `kube-root-ca.crt` of a namespace. Does
    /// nothing until the authority is published.
    pub(crate) async fn write_root_ca(&self, namespace: &str) -> ApiResult<()> {
        let Some(pem) = self.root_ca.get() else {
            return Ok(());
        };
        let desired = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": ROOT_CA, "namespace": namespace,
                "annotations": {"kubernetes.io/description": DESCRIPTION},
            },
            "data": {"ca.crt": pem},
        });
        let stored = self.store.get("configmaps", &Key::new(namespace, ROOT_CA));
        let is_same = stored.is_some_and(|stored| {
            object::at(&stored, &["data"]) == object::at(&desired, &["data"])
        });
        match is_same {
            true => Ok(()),
            false => {
                self.ensure("", "configmaps", &desired, CONTROLLER_MANAGER)
                    .await
            }
        }
    }

    /// Publishes the certificate authority of the API server: in the ConfigMap
    /// `extension-apiserver-authentication`, which aggregated API servers read, and, if the
    /// controllers of a cluster run, in every namespace.
    pub(crate) async fn publish_root_ca(&self, pem: &str) -> ApiResult<()> {
        if self.root_ca.set(pem.to_owned()).is_err() {
            return Ok(());
        }
        let trust = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "extension-apiserver-authentication", "namespace": "kube-system",
            },
            "data": {
                "client-ca-file": pem,
                "requestheader-allowed-names": json!([FRONT_PROXY]).to_string(),
                "requestheader-client-ca-file": self.aggregator.front_proxy().authority_pem(),
                "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
                "requestheader-group-headers": "[\"X-Remote-Group\"]",
                "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
                "requestheader-username-headers": "[\"X-Remote-User\"]",
            },
        });
        self.ensure("", "configmaps", &trust, "kube-apiserver")
            .await?;
        if self.controllers {
            let (namespaces, _) = self.store.list("namespaces", None);
            for namespace in namespaces {
                if !object::is_deleting(&namespace) {
                    self.write_root_ca(object::name(&namespace)).await?;
                }
            }
        }
        Ok(())
    }
}
