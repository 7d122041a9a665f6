//! CRDs on a control plane, which other tests may use as well.

use std::sync::{Arc, LazyLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::Kind;
use opkit_operator::{Operator, Result};

use super::ControlPlane;
use crate::TestError;

impl ControlPlane {
    /// Installs the CRDs of an operator and waits until they are served. Tests may do so at the
    /// same time; on a shared control plane those of cluster-scoped kinds wait for each other from
    /// here to their end.
    ///
    /// # Errors
    /// If the server refuses one, or does not serve it in time.
    pub async fn install(&self, operator: &Operator) -> Result {
        let crds = operator.crds();
        if self.inner.backend.is_shared() && is_cluster_wide(operator) {
            self.take_turn().await;
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

    /// Waits until no other test of this process has the turn.
    async fn take_turn(&self) {
        static TURN: LazyLock<Arc<tokio::sync::Mutex<()>>> = LazyLock::new(Arc::default);
        if self.inner.turn.lock().is_none() {
            let turn = TURN.clone().lock_owned().await;
            *self.inner.turn.lock() = Some(turn);
        }
    }

    /// Whether the objects of every version can be listed: a server may still refuse for a moment
    /// after it has said that a CRD is established.
    async fn is_served(&self, crd: &CustomResourceDefinition) -> bool {
        for version in crd.spec.versions.iter().filter(|version| version.served) {
            let kind = Kind {
                group: crd.spec.group.clone(),
                version: version.name.clone(),
                kind: crd.spec.names.kind.clone(),
                plural: crd.spec.names.plural.clone(),
                namespaced: crd.spec.scope == "Namespaced",
            };
            let namespace = Some(self.namespace());
            if self
                .inner
                .client
                .list(&kind, namespace, 1, None)
                .await
                .is_err()
            {
                return false;
            }
        }
        true
    }
}

/// Whether an operator is about cluster-scoped kinds: its own, or others such as Namespaces.
pub(super) fn is_cluster_wide(operator: &Operator) -> bool {
    let crds = operator.crds();
    let mut controllers = operator.controllers().iter();
    crds.iter().any(|crd| crd.spec.scope == "Cluster")
        || controllers.any(|controller| !controller.kind().namespaced)
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| &status.conditions);
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}
