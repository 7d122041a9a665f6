//! Tests of the guarantees in the documentation of `Context`.
//!
//! The reconciler of these tests sends its context to the test, which calls it step by step: each
//! [`Rig::run`] is one run of a reconcile.

mod adopt;
mod apply;
mod create_once;
mod delete;
mod errors;
mod fetch;
mod finalizer;
mod gaps;
mod kinds;
mod meddle;
mod prune;
mod races;
mod reads;
mod ready;
mod restart;
mod status;
mod unowned;

use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Secret, Service};
use kube::Api;
use kube::api::{Patch, PatchParams};
use opkit::client::Object;
use opkit::client::Seam;
use opkit::operator::RunOptions;
use opkit::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::meddle::Meddle;

/// Field manager of the controller of these tests.
const MANAGER: &str = "rig.configmap";
/// Annotation on each child.
const APPLIED_ANNOTATION: &str = "opkit.dev/applied";

/// Operator of a test, which can be stopped and restarted.
struct Rig<K> {
    plane: ControlPlane,
    seam: Seam,
    meddle: Meddle,
    contexts: mpsc::Receiver<(Arc<K>, Context)>,
    stop: CancellationToken,
    operator: JoinSet<opkit::Result>,
    runs: u32,
}

impl Rig<ConfigMap> {
    /// Starts an operator that reconciles the config map `owner`, and owns four kinds.
    async fn start(plane: &ControlPlane) -> opkit::Result<Self> {
        let owner: ConfigMap = object(json!({"metadata": {"name": "owner"}}));
        plane.apply(owner).await?;
        Self::start_with(plane, |controller| {
            controller
                .owns::<Secret>()
                .owns::<LimitRange>()
                .owns::<Service>()
                .owns::<Deployment>()
        })
        .await
    }
}

impl<K> Rig<K>
where
    K: Object<Scope = NamespaceResourceScope> + std::fmt::Debug,
{
    /// Starts an operator that reconciles the object `owner` of this kind.
    async fn start_with(
        plane: &ControlPlane,
        declare: impl FnOnce(Controller<K>) -> Controller<K>,
    ) -> opkit::Result<Self> {
        let namespaces = vec![plane.namespace().to_owned()];
        Self::start_in(plane, namespaces, |operator, controller| {
            operator.controller(declare(controller))
        })
        .await
    }

    /// Starts an operator that reconciles the object `owner` of this kind in these namespaces.
    async fn start_in(
        plane: &ControlPlane,
        namespaces: Vec<String>,
        declare: impl FnOnce(Operator, Controller<K>) -> Operator,
    ) -> opkit::Result<Self> {
        let (sender, contexts) = mpsc::channel(100);
        let controller = Controller::new(move |object: Arc<K>, cx: Context| {
            if object.name_any() == "owner" {
                // Dropped if the test does not wait for this reconcile.
                let _ = sender.try_send((object, cx));
            }
            std::future::ready(Ok::<_, Error>(Action::await_change()))
        });
        let (seam, stop, mut operator) = (Seam::new(), CancellationToken::new(), JoinSet::new());
        let options = {
            let mut options = RunOptions::default();
            options.namespaces = namespaces;
            options
        };
        let mut ready = options.ready.subscribe();
        let meddle = Meddle::default();
        let client = seam.wrap(meddle.around(plane.client()));
        let value = declare(Operator::new("rig"), controller);
        operator.spawn(value.run_with(client, options, stop.clone()));
        let mut rig = Self {
            plane: plane.clone(),
            seam,
            meddle,
            contexts,
            stop,
            operator,
            runs: 0,
        };
        tokio::select! {
            ready = ready.wait_for(|ready| *ready) => drop(ready?),
            ended = rig.operator.join_next() => {
                return Err(Error::msg(format!("the operator stopped: {ended:?}")));
            }
        }
        Ok(rig)
    }

    /// Changes the owner; returns the owner and the context of the reconcile that follows.
    async fn run(&mut self) -> opkit::Result<(Arc<K>, Context)> {
        self.runs += 1;
        let mark = format!(
            "{}-{}",
            std::process::id(),
            self.seam.requests() + u64::from(self.runs)
        );
        let touch = json!({"metadata": {"annotations": {"run": mark}}});
        merge::<K>(&self.plane, "owner", touch).await?;
        loop {
            let next = tokio::time::timeout(Duration::from_secs(30), self.contexts.recv());
            let Some((object, cx)) = next.await? else {
                return Err(Error::msg("the operator has stopped"));
            };
            if object.annotations().get("run") == Some(&mark) {
                return Ok((object, cx));
            }
        }
    }

    /// Returns the writes since the last call: verb, resource, name.
    fn writes(&self) -> Vec<String> {
        let exchanges = self.seam.exchanges();
        self.seam.forget();
        let reads = ["get", "list", "watch"];
        exchanges
            .iter()
            .filter(|exchange| !reads.contains(&exchange.info.verb.as_ref()))
            .filter(|exchange| {
                exchange.info.namespace.is_some() && exchange.info.plural != "events"
            })
            .map(|exchange| {
                let info = &exchange.info;
                let subresource = info.subresource.as_ref().map(|sub| format!("/{sub}"));
                let name = info.name.as_deref().unwrap_or_default();
                let (verb, plural) = (&info.verb, &info.plural);
                format!("{verb} {plural}{} {name}", subresource.unwrap_or_default())
            })
            .collect()
    }

    async fn stop(mut self) -> opkit::Result {
        self.stop.cancel();
        match self.operator.join_next().await {
            Some(ended) => ended?,
            None => Ok(()),
        }
    }
}

/// Decodes an object from JSON.
pub(crate) fn object<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

fn secret(name: &str, data: &[(&str, &str)]) -> Secret {
    let data: BTreeMap<_, _> = data
        .iter()
        .map(|(key, value)| {
            (
                (*key).to_owned(),
                k8s_openapi::ByteString(value.as_bytes().to_vec()),
            )
        })
        .collect();
    Secret {
        data: Some(data),
        ..object(json!({"metadata": {"name": name}}))
    }
}

/// Returns the entries of a secret.
fn data(secret: &Secret) -> Vec<(&str, &str)> {
    let data = secret.data.iter().flatten();
    data.map(|(key, value)| (key.as_str(), std::str::from_utf8(&value.0).unwrap()))
        .collect()
}

/// Creates a secret that another object controls. That owner exists; otherwise the secret would be
/// collected.
async fn theirs(plane: &ControlPlane, name: &str) -> opkit::Result<Secret> {
    let far: ConfigMap = plane
        .apply(object(json!({"metadata": {"name": "far"}})))
        .await?;
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "far", "uid": far.metadata.uid,
        "controller": true,
    });
    let theirs = json!({"metadata": {"name": name, "ownerReferences": [owner]}});
    plane.apply(object(theirs)).await
}

/// Changes an object as another user than the operator.
async fn merge<K>(plane: &ControlPlane, name: &str, patch: Value) -> opkit::Result<K>
where
    K: Object<Scope = NamespaceResourceScope> + std::fmt::Debug,
{
    let api: Api<K> = Api::default_namespaced(plane.client());
    let params = PatchParams {
        field_manager: Some("other".into()),
        ..Default::default()
    };
    Ok(api.patch(name, &params, &Patch::Merge(patch)).await?)
}

/// Waits until the operator's cache has the version of `object`.
async fn seen<K: Object>(cx: &Context, object: &K) -> opkit::Result {
    let meta = object.meta();
    let name = meta.name.clone().unwrap_or_default();
    for _ in 0..1_000 {
        let cached = cx.get::<K>(&name)?;
        if cached.is_some_and(|cached| cached.meta().resource_version == meta.resource_version) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err(Error::msg(format!(
        "the cache does not get the version of {name}"
    )))
}
