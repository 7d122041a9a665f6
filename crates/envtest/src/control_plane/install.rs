//! Installation of CRDs on a control plane, which other tests may use at the same time.

use std::sync::{Arc, LazyLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::{Kind, ListOptions, ResponseFormat};
use opkit_controller::Result;
use opkit_operator::Operator;

use super::ControlPlane;
use super::webhooks::is_converted;
use crate::TestError;

impl ControlPlane {
    /// Installs the CRDs of an operator and waits until they are served. Several tests may install
    /// CRDs at the same time. On a shared control plane, a test of cluster-scoped kinds waits in
    /// this call until no other such test runs.
    ///
    /// # Errors
    /// If the server refuses a CRD, or does not serve it in time.
    pub async fn install(&self, operator: &Operator) -> Result {
        self.inner.backend.serve_webhooks(operator)?;
        let crds = operator.crds();
        if self.inner.backend.is_shared() && is_cluster_wide(operator) {
            self.lock_cluster_scope().await;
        }
        for crd in crds {
            let name = crd.metadata.name.clone().unwrap_or_default();
            self.apply(crd).await?;
            let established = self
                .wait(async || {
                    let crd = self.get::<CustomResourceDefinition>(name.as_str()).await?;
                    match crd.filter(is_established) {
                        Some(crd) => Ok(self.is_served(&crd).await.then_some(())),
                        None => Ok(None),
                    }
                })
                .await?;
            if established.is_none() {
                let timeout = self.timeout;
                return Err(TestError::NotEstablished { name, timeout }.into());
            }
        }
        Ok(())
    }

    /// Waits until no other test of this process holds the lock for cluster-scoped kinds.
    async fn lock_cluster_scope(&self) {
        static LOCK: LazyLock<Arc<tokio::sync::Mutex<()>>> = LazyLock::new(Arc::default);
        if self.inner.cluster_scope_lock.lock().is_none() {
            let lock = LOCK.clone().lock_owned().await;
            *self.inner.cluster_scope_lock.lock() = Some(lock);
        }
    }

    /// Reports whether the objects of every version can be listed. After a CRD is established, a
    /// server may still refuse requests for a moment.
    async fn is_served(&self, crd: &CustomResourceDefinition) -> bool {
        for version in crd.spec.versions.iter().filter(|version| version.served) {
            let kind = Kind {
                group: crd.spec.group.clone(),
                version: version.name.clone(),
                kind: crd.spec.names.kind.clone(),
                plural: crd.spec.names.plural.clone(),
                namespaced: crd.spec.scope == "Namespaced",
            };
            let options = ListOptions::new().in_namespace(self.namespace()).limit(1);
            if self
                .inner
                .client
                .list(&kind, &options, ResponseFormat::default())
                .await
                .is_err()
            {
                return false;
            }
        }
        true
    }
}

/// Reports whether an operator uses cluster-scoped kinds: its own, or others such as Namespaces.
pub(super) fn is_cluster_wide(operator: &Operator) -> bool {
    let crds = operator.crds();
    let mut controllers = operator.controllers().iter();
    let mut webhooks = operator.webhooks().iter();
    // A CRD has one conversion webhook, so only one test at a time can serve it.
    let mut converted = crds.iter().filter(|crd| is_converted(crd));
    crds.iter().any(|crd| crd.spec.scope == "Cluster")
        || converted.next().is_some()
        || webhooks.any(|webhook| !webhook.kind().namespaced)
        || controllers.any(|controller| !controller.kind().namespaced)
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| &status.conditions);
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}
