use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use opkit_controller::{Action, Context, Controller, Result};
use opkit_operator::{Operator, clap};
use serde_json::json;

use super::*;

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    cx.event(opkit_controller::EventType::Normal, "Seen", "it was seen");
    assert_ne!(map.metadata.name.as_deref(), Some("bad"), "a bad map");
    Ok(Action::await_change())
}

fn operator() -> Operator {
    Operator::new("map-operator").controller(Controller::new(reconcile))
}

// The clock is paused: waiting for a state that does not occur takes no time.
#[tokio::test(start_paused = true)]
async fn a_timeout_is_reported_with_the_object_its_events_and_reconciles() {
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
        "ConfigMap default/bad does not meet the condition within 20s",
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
async fn an_object_that_is_not_deleted_is_reported() {
    let plane = ControlPlane::embedded().unwrap();
    plane.apply(config_map("one")).await.unwrap();
    let error = plane.eventually_gone::<ConfigMap>("one").await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("ConfigMap default/one is not deleted within 20s")
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
    assert!(error.contains("does not serve the kind Widget"), "{error}");
}

#[test]
fn an_operator_of_a_cluster_scoped_kind_is_cluster_wide() {
    async fn reconcile(_: Arc<Namespace>, _: Context) -> Result<Action> {
        Ok(Action::await_change())
    }
    // The operator defines no kind, so it has no CRD that shows the scope.
    let of_namespaces = Operator::new("one").controller(Controller::new(reconcile));
    assert!(install::is_cluster_wide(&of_namespaces));
    assert!(!install::is_cluster_wide(&operator()));
}

/// Kind without a CRD.
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

fn job(name: &str) -> Job {
    let container = json!({"name": "main", "image": "backup"});
    let job = json!({
        "metadata": {"name": name},
        "spec": {
            "completions": 3, "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    });
    serde_json::from_value(job).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_report_lists_features_that_the_control_plane_lacks() {
    let plane = ControlPlane::embedded().unwrap();
    plane.apply(job("one")).await.unwrap();
    let plane = plane.with_timeout(Duration::from_millis(100));
    let never = plane.eventually("one", |_: &Job| false).await.unwrap_err();
    let expected = "--- the control plane lacks\n\
                    opkit does not model Jobs: Job one gets no pods and does not complete\n";
    let text = never.downcast_ref::<TestError>().unwrap().to_string();
    assert!(text.contains(expected), "{text}");
    let required = plane.require(Capability::Jobs).unwrap_err();
    assert!(matches!(required, TestError::Skipped { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_job_is_waited_for_and_completed() {
    let plane = ControlPlane::embedded().unwrap();
    let (completed, applied) = tokio::join!(plane.complete_job("one"), plane.apply(job("one")));
    applied.unwrap();
    let status = completed.unwrap().status.unwrap();
    assert_eq!(status.succeeded, Some(3));
    assert_eq!(status.completed_indexes.as_deref(), Some("0-2"));
    let types = status.conditions.iter().flatten();
    let types: Vec<_> = types.map(|it| (&*it.type_, &*it.status)).collect();
    assert_eq!(
        types,
        [("SuccessCriteriaMet", "True"), ("Complete", "True")]
    );
    // A Job that is complete already stays as it is.
    let again = plane.complete_job("one").await.unwrap();
    assert_eq!(
        again.status.unwrap().completion_time,
        status.completion_time
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_can_be_set() {
    let plane = ControlPlane::embedded().unwrap();
    let start = tokio::time::Instant::now();
    let soon = plane.with_timeout(Duration::from_secs(1));
    let error = soon.complete_job("one").await.unwrap_err().to_string();
    let expected = "Job default/one does not meet the condition within 1s";
    assert!(error.starts_with(expected), "{error}");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        plane.timeout,
        Duration::from_secs(20),
        "the other handle keeps its timeout"
    );
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_stops_holding_is_reported() {
    let plane = ControlPlane::embedded().unwrap();
    plane.apply(config_map("one")).await.unwrap();
    let time = Duration::from_secs(2);
    let is_plain = |map: &ConfigMap| map.metadata.labels.is_none();
    let kept = plane.stays(time, "one", is_plain).await.unwrap();
    assert_eq!(kept.metadata.name.as_deref(), Some("one"));

    let change = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut changed = config_map("one");
        changed.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        plane.apply(changed).await.unwrap();
    };
    let (stayed, ()) = tokio::join!(plane.stays(time, "one", is_plain), change);
    let error = stayed.unwrap_err();
    let text = error.downcast_ref::<TestError>().unwrap().to_string();
    assert!(
        text.starts_with("ConfigMap default/one does not meet the condition after 1"),
        "{text}"
    );
    assert!(
        text.contains("; the condition must hold for 2s\n--- ConfigMap"),
        "{text}"
    );
    assert!(text.contains("\"a\": \"b\""), "{text}");

    let error = plane
        .stays(time, "two", is_plain)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("ConfigMap default/two does not exist after 0ns"),
        "{error}"
    );
}

#[tokio::test]
async fn objects_events_and_metrics_are_read() {
    let plane = ControlPlane::embedded().unwrap();
    plane.start(operator()).await.unwrap();
    for name in ["one", "two"] {
        plane.apply(config_map(name)).await.unwrap();
        let event = plane.eventually_event::<ConfigMap>(name, "Seen").await;
        assert_eq!(event.unwrap().message.as_deref(), Some("it was seen"));
    }
    let maps = plane.list::<ConfigMap>().await.unwrap();
    let names: Vec<_> = maps
        .iter()
        .filter_map(|it| it.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(plane.list::<Namespace>().await.unwrap().len(), 4);
    // Events of another object, or of another kind with this name, are not returned.
    let events = plane.events::<ConfigMap>("one").await.unwrap();
    assert!(
        events
            .iter()
            .all(|it| it.involved_object.name.as_deref() == Some("one"))
    );
    assert!(plane.events::<Job>("one").await.unwrap().is_empty());

    let labels = [("controller", "configmap"), ("result", "success")];
    let name = "controller_runtime_reconcile_total";
    assert_eq!(
        plane.metric(name, &labels),
        Some(2.0),
        "{}",
        plane.metrics()
    );
    assert_eq!(plane.metric(name, &[("controller", "other")]), None);
    plane.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_status_is_set() {
    let plane = ControlPlane::embedded().unwrap();
    plane.apply(job("one")).await.unwrap();
    let status = JobStatus {
        active: Some(2),
        ..Default::default()
    };
    let set = plane.set_status::<Job>("one", status).await.unwrap();
    assert_eq!(set.status.unwrap().active, Some(2));
    // Fields that are not in the patch stay.
    let set = plane
        .set_status::<Job>("one", json!({"ready": 1}))
        .await
        .unwrap();
    let status = set.status.unwrap();
    assert_eq!((status.active, status.ready), (Some(2), Some(1)));
    let error = plane.set_status::<Job>("two", json!({})).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("set the status of Job default/two"),
        "{error}"
    );
}

#[derive(clap::Args)]
struct Settings {
    #[arg(long)]
    store: String,
}

#[tokio::test]
async fn flags_are_given_by_the_test() {
    async fn keep(settings: Settings) -> Result<String> {
        Ok(settings.store)
    }
    async fn reconcile(map: Arc<ConfigMap>, cx: Context<String>) -> Result<Action> {
        let _ = map;
        cx.event(opkit_controller::EventType::Normal, "Stored", cx.state());
        Ok(Action::await_change())
    }
    let operator = || {
        let operator = Operator::new("map-operator").args::<Settings>().state(keep);
        operator.controller(Controller::new(reconcile))
    };
    let plane = ControlPlane::embedded().unwrap();
    let error = plane.start(operator()).await.unwrap_err().to_string();
    assert!(error.contains("not provided: --store <STORE>"), "{error}");
    plane
        .start_with(operator(), ["--store", "shelf"])
        .await
        .unwrap();
    plane.apply(config_map("one")).await.unwrap();
    let event = plane.eventually_event::<ConfigMap>("one", "Stored").await;
    assert_eq!(event.unwrap().message.as_deref(), Some("shelf"));
    plane.shutdown().await.unwrap();
}
