//! Tests of the control plane's methods for tests, and of the state of an operator under test.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit::clap;
use opkit::controller::Reads;
use opkit::events::EventRecorder;
use opkit::prelude::*;
use opkit::testing::Capability;
use serde_json::json;

/// Runs the backup that a config map describes.
async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    if !is_ours(&map) {
        return Ok(Action::await_change());
    }
    let job = cx.apply(backup_of(&map)).await?;
    if job
        .status
        .as_ref()
        .is_some_and(|status| status.completion_time.is_some())
    {
        cx.event(Normal, "BackedUp", "the backup is complete");
    }
    Ok(Action::await_change())
}

/// Reports whether the map belongs to the test: real clusters have a config map in every namespace.
fn is_ours(map: &ConfigMap) -> bool {
    map.name_any() != "kube-root-ca.crt"
}

fn operator() -> Operator {
    let controller = Controller::new(reconcile).owns::<Job>();
    Operator::new("backup-operator").controller(controller)
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn backup_of(map: &ConfigMap) -> Job {
    let container = json!({"name": "main", "image": "backup"});
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let job = json!({"metadata": {"name": map.name_any()}, "spec": {"template": template}});
    serde_json::from_value(job).unwrap()
}

/// The test of docs/testing.md.
#[opkit::test]
async fn a_backup_completes(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(config_map("one")).await?;

    // The embedded control plane does not run Jobs: the test completes it.
    plane.complete_job("one").await?;
    let event = plane
        .eventually_event::<ConfigMap>("one", "BackedUp")
        .await?;
    assert_eq!(event.type_.as_deref(), Some("Normal"));

    // The Job is not created again.
    let time = Duration::from_millis(100);
    plane
        .stays(time, "one", |job: &Job| job.metadata.generation == Some(1))
        .await?;
    assert_eq!(plane.list::<Job>().await?.len(), 1);
    let labels = [("controller", "configmap")];
    let errors = plane.metric("controller_runtime_reconcile_errors_total", &labels);
    assert_eq!(errors, Some(0.0));
    Ok(())
}

#[opkit::test]
async fn an_indexed_job_completes(plane: ControlPlane) -> opkit::Result {
    let mut job = backup_of(&config_map("three"));
    if let Some(spec) = &mut job.spec {
        (spec.completions, spec.parallelism) = (Some(3), Some(2));
        spec.completion_mode = Some("Indexed".to_owned());
    }
    plane.apply(job).await?;
    let status = plane.complete_job("three").await?.status.unwrap();
    assert_eq!(status.succeeded, Some(3));
    assert_eq!(status.completed_indexes.as_deref(), Some("0-2"));
    Ok(())
}

/// Store for the backups.
#[derive(clap::Args)]
struct Settings {
    /// URL of the store
    #[arg(long, env = "STORE_URL")]
    store_url: String,
    /// Number of copies to keep
    #[arg(long, default_value_t = 2)]
    copies: u32,
}

struct App {
    settings: Settings,
    reads: Reads,
    recorder: EventRecorder,
}

impl App {
    async fn connect(cx: StateContext, settings: Settings) -> Result<Self> {
        let (reads, recorder) = (cx.reads(), cx.recorder());
        // The first lists are complete before a reconcile reads.
        reads.synced().await?;
        Ok(Self {
            settings,
            reads,
            recorder,
        })
    }
}

async fn report(map: Arc<ConfigMap>, cx: Context<App>) -> Result<Action> {
    if !is_ours(&map) {
        return Ok(Action::await_change());
    }
    let App {
        settings,
        reads,
        recorder,
    } = cx.state();
    let maps = reads.list::<ConfigMap>(Selection::default())?;
    let is_there = maps
        .iter()
        .any(|found| found.metadata.uid == map.metadata.uid);
    let note = format!(
        "{} copies to {}, {is_there}",
        settings.copies, settings.store_url
    );
    recorder.event(&*map, Normal, "Read", note);
    Ok(Action::await_change())
}

/// Flags come only from the test; a state has the flags, the caches and a recorder, with and
/// without leadership.
#[opkit::test]
async fn a_state_is_created_with_flags_caches_and_a_recorder(plane: ControlPlane) -> opkit::Result {
    let operator = |name: &str| {
        let operator = Operator::new(name)
            .args::<Settings>()
            .state_with(App::connect);
        operator.controller(Controller::new(report))
    };
    let error = plane
        .start(operator("one-operator"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("not provided: --store-url <STORE_URL>"),
        "{error}"
    );

    let url = ["--store-url", "http://store"];
    plane.start_with(operator("two-operator"), url).await?;
    plane.apply(config_map("one")).await?;
    let event = plane.eventually_event::<ConfigMap>("one", "Read").await?;
    assert_eq!(
        event.message.as_deref(),
        Some("2 copies to http://store, true")
    );

    let elected = operator("three-operator").leader_election("three-operator");
    plane
        .start_with(elected, ["--copies=3", "--store-url=http://other"])
        .await?;
    plane.apply(config_map("two")).await?;
    let wanted = "3 copies to http://other, true";
    let mut found = false;
    for _ in 0..1_000 {
        let events = plane.events::<ConfigMap>("two").await?;
        found = events
            .iter()
            .any(|event| event.message.as_deref() == Some(wanted));
        if found {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(found, "the leader's state has its own flags");
    Ok(())
}

async fn count(_: Arc<ConfigMap>, cx: Context<Duration>) -> Result<Action> {
    Ok(Action::requeue(*cx.state()))
}

#[opkit::test]
async fn a_value_is_a_state(plane: ControlPlane) -> opkit::Result {
    let operator = Operator::new("counter").state_value(Duration::from_secs(60));
    plane
        .start(operator.controller(Controller::new(count)))
        .await
}

/// The behaviour of the capability `Cel`.
#[opkit::test]
async fn cel_rules_are_checked_if_the_control_plane_has_them(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Cel)?;
    let rule = json!({
        "type": "object", "properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size > 1", "message": "too small"}],
    });
    let crd = json!({
        "metadata": {"name": "ruled.testing.opkit.dev"},
        "spec": {
            "group": "testing.opkit.dev", "scope": "Namespaced",
            "names": {"plural": "ruled", "kind": "Ruled"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": rule}}},
            }],
        },
    });
    let crd: CustomResourceDefinition = serde_json::from_value(crd)?;
    plane.apply(crd).await?;
    let conditions = |crd: &CustomResourceDefinition| {
        let status = crd.status.clone().unwrap_or_default();
        let mut conditions = status.conditions.into_iter().flatten();
        conditions.any(|it| it.type_ == "Established" && it.status == "True")
    };
    plane
        .eventually("ruled.testing.opkit.dev", conditions)
        .await?;
    let kind = opkit::kube::core::GroupVersionKind::gvk("testing.opkit.dev", "v1", "Ruled");
    let kind = opkit::kube::core::ApiResource::from_gvk_with_plural(&kind, "ruled");
    let api: opkit::kube::Api<opkit::kube::core::DynamicObject> =
        opkit::kube::Api::default_namespaced_with(plane.client(), &kind);
    let object = |size: i32| {
        let mut object = opkit::kube::core::DynamicObject::new("one", &kind);
        object.data = json!({"spec": {"size": size}});
        object
    };
    let mut refused = String::new();
    for _ in 0..500 {
        // A server may not serve a kind immediately after it is established.
        refused = match api.create(&Default::default(), &object(1)).await {
            Err(opkit::kube::Error::Api(status)) if status.code == 422 => status.message.clone(),
            other => format!("{other:?}"),
        };
        if refused.contains("too small") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(refused.contains("too small"), "{refused}");
    api.create(&Default::default(), &object(2)).await?;
    Ok(())
}
