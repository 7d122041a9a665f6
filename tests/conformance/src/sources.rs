//! Events of a controller's sources, and their filters.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use opkit::controller::event::Event;
use opkit::prelude::*;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const CLEANUP: &str = "rig.opkit.dev/cleanup";

fn object<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

fn label(secret: &Secret) -> String {
    secret.labels().get("l").cloned().unwrap_or_default()
}

fn secret(label: &str) -> Secret {
    object(json!({"metadata": {"name": "child", "labels": {"l": label}}}))
}

/// Returns a controller that counts reconciles of the config map `one`.
fn counting(count: &Arc<AtomicU32>) -> Controller<ConfigMap> {
    let count = count.clone();
    Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        count.fetch_add(u32::from(map.name_any() == "one"), Ordering::SeqCst);
        std::future::ready(Ok::<_, Error>(Action::await_change()))
    })
}

/// Waits until `count` is at least `least`.
async fn reached(count: &AtomicU32, least: u32) -> opkit::Result {
    for _ in 0..1_000 {
        if count.load(Ordering::SeqCst) >= least {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(Error::msg(format!("not {least}: {count:?}")))
}

#[opkit::test]
async fn creates_updates_and_deletes_are_distinguished(plane: ControlPlane) -> opkit::Result {
    let (count, log) = (Arc::default(), Arc::<Mutex<Vec<String>>>::default());
    let seen = log.clone();
    let controller = counting(&count).watches_with::<Secret>(move |secrets| {
        let named = predicate::Predicate::object(|it| it.name() == "child");
        secrets.only(named).map_events(move |event, _| {
            seen.lock().push(match event {
                Event::Create(it) => format!("create {} {}", label(it.object), it.is_initial),
                Event::Update(it) => format!("update {}>{}", label(it.old), label(it.new)),
                Event::Delete(it) => format!("delete {} {}", label(it.object), it.is_certain),
                Event::Generic(_) => "generic".to_owned(),
            });
            vec!["one".into()]
        })
    });
    plane.apply(secret("a")).await?;
    plane
        .apply(object::<ConfigMap>(json!({"metadata": {"name": "one"}})))
        .await?;
    plane
        .start(Operator::new("rig").controller(controller))
        .await?;
    reached(&count, 1).await?;
    plane.apply(secret("b")).await?;
    reached(&count, 2).await?;
    plane.delete::<Secret>("child").await?;
    reached(&count, 3).await?;
    assert_eq!(
        *log.lock(),
        ["create a true", "update a>b", "delete b true"]
    );
    Ok(())
}

/// The deletion of a config map changes neither its labels nor its generation, since it has none.
#[opkit::test]
async fn a_change_filter_does_not_suppress_a_finalizer(plane: ControlPlane) -> opkit::Result {
    let count = Arc::default();
    let controller = counting(&count)
        .primary(|maps| maps.only(predicate::labels_changed()))
        .finalizer(CLEANUP, |_, _| {
            std::future::ready(Ok::<_, Error>(Cleanup::Done))
        });
    plane
        .apply(object::<ConfigMap>(json!({"metadata": {"name": "one"}})))
        .await?;
    plane
        .start(Operator::new("rig").controller(controller))
        .await?;
    reached(&count, 1).await?;
    plane.delete::<ConfigMap>("one").await?;
    plane.eventually_gone::<ConfigMap>("one").await
}

#[opkit::test]
async fn leaving_a_selection_is_delivered_on_request(plane: ControlPlane) -> opkit::Result {
    let (inside, leaving) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let selector = "app=web";
    let in_selection = predicate::label_selector(selector)?;
    let or_leaving = in_selection
        .clone()
        .or(predicate::leaves_selection(selector)?);
    let operator = Operator::new("rig")
        .controller(counting(&inside).primary(|maps| maps.only(in_selection)))
        .controller(
            counting(&leaving)
                .named("leaving")
                .primary(|maps| maps.only(or_leaving)),
        );
    plane.start(operator).await?;
    let labelled = |app: &str| -> ConfigMap {
        object(json!({"metadata": {"name": "one", "labels": {"app": app}}}))
    };
    plane.apply(labelled("web")).await?;
    reached(&inside, 1).await?;
    reached(&leaving, 1).await?;
    plane.apply(labelled("other")).await?;
    reached(&leaving, 2).await?;
    assert_eq!(inside.load(Ordering::SeqCst), 1);
    // Changes outside of the selection are ignored.
    let api: Api<ConfigMap> = Api::default_namespaced(plane.client());
    let data = Patch::Merge(json!({"data": {"a": "b"}}));
    api.patch("one", &PatchParams::default(), &data).await?;
    plane.apply(labelled("web")).await?;
    reached(&leaving, 3).await?;
    reached(&inside, 2).await?;
    assert_eq!(leaving.load(Ordering::SeqCst), 3);
    Ok(())
}
