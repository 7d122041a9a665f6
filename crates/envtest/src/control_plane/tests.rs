use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use opkit_operator::{Action, Context, Controller, Operator, Result};

use super::*;

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    cx.event(opkit_operator::EventType::Normal, "Seen", "it was seen");
    assert_ne!(map.metadata.name.as_deref(), Some("bad"), "a bad map");
    Ok(Action::await_change())
}

fn operator() -> Operator {
    Operator::new("map-operator").controller(Controller::new(reconcile))
}

// The clock is paused: waiting for what does not come takes no time.
#[tokio::test(start_paused = true)]
async fn what_does_not_happen_is_reported_with_all_that_is_known() {
    let plane = ControlPlane::embedded().unwrap();
    plane.start(operator()).await.unwrap();
    plane.apply(config_map("bad")).await.unwrap();
    let never = plane.eventually("bad", |_: &ConfigMap| false).await;
    let error = never.unwrap_err();
    let text = match error.downcast_ref::<TestError>() {
        Some(error) => error.to_string(),
        None => panic!("{error}"),
    };
    for part in [
        "ConfigMap default/bad does not become as wanted within 20s",
        "\"name\": \"bad\"",
        "Normal ConfigMap: Seen: it was seen",
        "reconcile panicked: ",
        "a bad map",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    plane.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stays_is_reported() {
    let plane = ControlPlane::embedded().unwrap();
    plane.apply(config_map("one")).await.unwrap();
    let error = plane.eventually_gone::<ConfigMap>("one").await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("ConfigMap default/one does not go within 20s")
    );
    plane.delete::<ConfigMap>("one").await.unwrap();
    plane.eventually_gone::<ConfigMap>("one").await.unwrap();
    let error = plane
        .delete::<ConfigMap>("one")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("delete ConfigMap default/one"), "{error}");
}

#[tokio::test]
async fn an_operator_that_cannot_start_fails_the_test() {
    async fn reconcile(_: Arc<Widget>, _: Context) -> Result<Action> {
        Ok(Action::await_change())
    }
    let plane = ControlPlane::embedded().unwrap();
    let operator = Operator::new("widget-operator").controller(Controller::new(reconcile));
    let error = plane.start(operator).await.unwrap_err().to_string();
    assert!(error.contains("widget-operator does not run"), "{error}");
    assert!(error.contains("does not know the kind Widget"), "{error}");
}

#[test]
fn whoever_reconciles_a_cluster_scoped_kind_takes_turns() {
    async fn reconcile(_: Arc<Namespace>, _: Context) -> Result<Action> {
        Ok(Action::await_change())
    }
    // It defines no kind, so no CRD tells.
    let of_namespaces = Operator::new("one").controller(Controller::new(reconcile));
    assert!(install::is_cluster_wide(&of_namespaces));
    assert!(!install::is_cluster_wide(&operator()));
}

/// A kind that no CRD defines.
#[derive(
    kube::CustomResource, serde::Serialize, serde::Deserialize, schemars::JsonSchema, Clone, Debug,
)]
#[kube(
    group = "widgets.opkit.dev",
    version = "v1",
    kind = "Widget",
    namespaced
)]
struct WidgetSpec {}
