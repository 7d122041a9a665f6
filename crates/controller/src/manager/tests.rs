//! Controllers against an API server in memory, on a paused clock.

mod adoption;
mod beside;
mod children;
mod clusters;
mod each;
mod election;
mod error_policy;
mod finalizers;
mod memory;
mod outage;
mod pace;
mod panics;
mod resync;
mod retries;
mod runnables;
mod server;
mod shapes;
mod sharding;
mod sources;
mod start;
mod states;
mod status;
mod stop;
mod unowned;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::server::Server;
use super::*;
use crate::{Action, Cleanup, Context, Controller, Error, Outcome, Result};

const MAP: &str = "/api/v1/namespaces/d/configmaps/one";
const POD: &str = "/api/v1/namespaces/d/pods/one";
const SECRET: &str = "/api/v1/namespaces/d/secrets/child";

fn object(name: &str) -> Value {
    json!({"metadata": {"namespace": "d", "name": name, "generation": 1}})
}

/// A manager that runs until the test stops it.
struct Run {
    stop: CancellationToken,
    log: ReconcileLog,
    metrics: MetricsRegistry,
    task: JoinSet<Result<(), ManagerError>>,
}

impl Run {
    async fn start(server: &Server, controller: impl Into<AnyController>) -> Self {
        Self::start_with_grace(server, controller, Duration::from_secs(3)).await
    }

    async fn start_with_grace(
        server: &Server,
        controller: impl Into<AnyController>,
        grace_period: Duration,
    ) -> Self {
        let options = ManagerOptions {
            grace_period,
            ..Default::default()
        };
        Self::start_with(server, options, |manager| manager.controller(controller)).await
    }

    async fn start_manager(server: &Server, setup: impl FnOnce(Manager) -> Manager) -> Self {
        Self::start_with(server, ManagerOptions::default(), setup).await
    }

    async fn start_with(
        server: &Server,
        options: ManagerOptions,
        setup: impl FnOnce(Manager) -> Manager,
    ) -> Self {
        Self::start_client(server.client(), options, setup).await
    }

    async fn start_client(
        client: kube::Client,
        options: ManagerOptions,
        setup: impl FnOnce(Manager) -> Manager,
    ) -> Self {
        let (stop, log) = (CancellationToken::new(), options.log.clone());
        let (mut ready, metrics) = (options.ready.subscribe(), options.metrics.clone());
        let manager = setup(Manager::new("test", client, options));
        let mut task = JoinSet::new();
        task.spawn(manager.run(stop.clone()));
        ready.wait_for(|ready| *ready).await.unwrap();
        Self {
            stop,
            log,
            metrics,
            task,
        }
    }

    /// Returns the causes of the reconciles, one line each.
    fn causes(&self) -> Vec<String> {
        let records = self.log.records();
        records.iter().map(|r| r.causes().join(", ")).collect()
    }

    /// Lets `time` pass.
    async fn settle(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn stop(mut self) -> Result<(), ManagerError> {
        self.stop.cancel();
        self.task.join_next().await.unwrap().unwrap()
    }
}

const MOMENT: Duration = Duration::from_millis(2);

fn counting<F>(count: &Arc<AtomicU32>, result: F) -> Controller<ConfigMap>
where
    F: Fn(u32) -> Result<Action> + Clone + Send + Sync + 'static,
{
    let count = count.clone();
    Controller::new(move |_: Arc<ConfigMap>, _: Context| {
        let n = count.fetch_add(1, Ordering::SeqCst) + 1;
        let result = result.clone();
        async move { result(n) }
    })
}

#[tokio::test(start_paused = true)]
async fn an_unknown_kind_is_an_error_with_a_hint() {
    let server = Server::new(&[]);
    let count = Arc::default();
    let manager = Manager::new("test", server.client(), ManagerOptions::default())
        .controller(counting(&count, |_| Ok(Action::await_change())));
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cluster does not serve the kind ConfigMap (v1): install its CRD first (for a kind of this operator with `test manifests | kubectl apply -f -`)"
    );
}

#[tokio::test(start_paused = true)]
async fn two_controllers_need_two_names() {
    let server = Server::new(&["configmaps"]);
    let one = || counting(&Arc::default(), |_| Ok(Action::await_change()));
    let manager = Manager::new("test", server.client(), ManagerOptions::default());
    let result = manager
        .controller(one())
        .controller(one())
        .run(CancellationToken::new())
        .await;
    assert!(matches!(result, Err(ManagerError::NameTaken(name)) if name == "configmap"));
}

#[tokio::test(start_paused = true)]
async fn errors_and_panics_are_retried_with_backoff() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count = Arc::default();
    let run = Run::start(
        &server,
        counting(&count, |n| match n {
            1 => Err(Error::msg("broken")),
            2 => panic!("very broken"),
            _ => Ok(Action::await_change()),
        }),
    )
    .await;
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(
        run.causes(),
        ["initial list", "retry 1 after error", "retry 2 after error"]
    );
    let results: Vec<_> = run
        .log
        .records()
        .iter()
        .map(|r| r.result.to_string())
        .collect();
    assert_eq!(
        results,
        [
            "error, again in 5ms: broken",
            "error, again in 10ms: reconcile panicked: very broken",
            "ok"
        ]
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_determines_when_it_is_retried() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let run = Run::start(
        &server,
        counting(&count, |n| match n {
            1 => Err(Error::retry_after(
                Duration::from_secs(60),
                Error::msg("later"),
            )),
            2 => Ok(Action::requeue(Duration::from_secs(60))),
            _ => Err(Error::terminal(Error::msg("never"))),
        }),
    )
    .await;
    for expected in [1, 2, 3, 3] {
        run.settle(Duration::from_secs(30)).await;
        assert_eq!(count.load(Ordering::SeqCst), expected);
        run.settle(Duration::from_secs(31)).await;
    }
    server.put(MAP, server.get(MAP).unwrap());
    run.settle(MOMENT).await;
    assert_eq!(count.load(Ordering::SeqCst), 4, "a change causes a retry");
    assert!(matches!(
        run.log
            .last("configmap", &("d", "one").into())
            .unwrap()
            .result,
        Outcome::Error {
            retry_after: None,
            ..
        }
    ));
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_added_first_and_called_at_deletion() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (reconciled, cleaned) = (seen.clone(), seen.clone());
    let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        reconciled
            .lock()
            .push(format!("reconcile {:?}", map.metadata.finalizers));
        async { Ok::<_, Error>(Action::await_change()) }
    })
    .finalizer("test/cleanup", move |_: Arc<ConfigMap>, _: Context| {
        let mut seen = cleaned.lock();
        seen.push("clean up".to_owned());
        let pending = seen.iter().filter(|line| *line == "clean up").count() < 2;
        async move {
            match pending {
                true => Ok::<_, Error>(Cleanup::Pending(Duration::from_secs(5))),
                false => Ok(Cleanup::Done),
            }
        }
    });
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_secs(1)).await;
    server.begin_deletion(MAP);
    run.settle(Duration::from_secs(1)).await;
    assert!(server.get(MAP).is_some(), "pending");
    run.settle(Duration::from_secs(5)).await;
    assert!(server.get(MAP).is_none());
    let stored = r#"reconcile Some(["test/cleanup"])"#;
    // The write of the finalizer is a change too.
    let expected = [stored, stored, "clean up", "clean up"];
    assert_eq!(*seen.lock(), expected);
    run.stop().await.unwrap();
}

/// Returns a controller that applies a Secret with the ConfigMap's label `value`.
fn applying() -> Controller<ConfigMap> {
    async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
        let mut secret = Secret::default();
        secret.metadata.name = Some("child".into());
        secret.type_ = map
            .data
            .as_ref()
            .and_then(|data| data.get("value"))
            .cloned();
        cx.apply(secret).await?;
        Ok(Action::await_change())
    }
    Controller::new(reconcile).owns::<Secret>()
}

#[tokio::test(start_paused = true)]
async fn a_child_is_created_with_its_owner_and_then_not_written() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(
        MAP,
        json!({"metadata": object("one")["metadata"], "data": {"value": "a"}}),
    );
    let run = Run::start(&server, applying()).await;
    run.settle(Duration::from_secs(1)).await;
    let secrets = "/api/v1/namespaces/d/secrets";
    assert_eq!(
        server.writes(),
        [
            format!("POST {secrets}"),
            format!("PATCH {SECRET}"),
            format!("PATCH {SECRET}")
        ]
    );
    let child = server.get(SECRET).unwrap();
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "one");
    assert_eq!(
        child["metadata"]["managedFields"].as_array().unwrap().len(),
        1
    );
    assert_eq!(child["metadata"]["managedFields"][0]["operation"], "Apply");

    // A field of another manager changed: nothing to do.
    let mut labelled = child.clone();
    labelled["metadata"]["labels"] = json!({"team": "x"});
    server.put(SECRET, labelled);
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(server.writes(), [""; 0]);

    // A field of this controller changed: it is corrected.
    let mut drifted = server.get(SECRET).unwrap();
    drifted["type"] = json!("drift");
    server.put(SECRET, drifted);
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(server.get(SECRET).unwrap()["type"], "a");
    assert_eq!(server.writes(), [format!("PATCH {SECRET}")]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_owner_is_refused_and_not_changed() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    server.put(SECRET, object("child"));
    let before = server.get(SECRET);
    let run = Run::start(&server, applying()).await;
    run.settle(MOMENT).await;
    let last = run.log.last("configmap", &("d", "one").into()).unwrap();
    assert!(
        last.result
            .to_string()
            .ends_with("Secret d/child exists and is not controlled by ConfigMap d/one"),
        "{}",
        last.result
    );
    assert_eq!(server.get(SECRET), before);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_child_is_created_again() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let run = Run::start(&server, applying()).await;
    run.settle(Duration::from_secs(1)).await;
    let uid = server.get(SECRET).unwrap()["metadata"]["uid"].clone();
    server.begin_deletion(SECRET);
    run.settle(Duration::from_secs(1)).await;
    assert_ne!(server.get(SECRET).unwrap()["metadata"]["uid"], uid);
    let records = run.log.records();
    let deleted = |cause: &String| cause == "Secret child deleted";
    assert!(
        records
            .iter()
            .any(|record| record.causes().iter().any(deleted)),
        "{records:?}"
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_kind_is_an_error_with_a_hint() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    async fn reconcile(_: Arc<ConfigMap>, cx: Context) -> Result<Action> {
        cx.get::<Pod>("x")?;
        Ok(Action::await_change())
    }
    let run = Run::start(&server, Controller::new(reconcile)).await;
    run.settle(MOMENT).await;
    let last = run.log.last("configmap", &("d", "one").into()).unwrap();
    assert!(
        last.result.to_string().ends_with(
            "controller configmap does not cache the kind Pod: declare it with .owns::<Pod>() or .watches::<Pod>(..), or read from the server with .live()"
        ),
        "{}",
        last.result
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_late_reconcile_is_reported() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result<Action> {
        std::future::pending().await
    }
    let run = Run::start(&server, Controller::new(reconcile)).await;
    run.settle(MOMENT).await;
    let error = run.stop().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "these did not stop within 3 s: configmap d/one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hanging_start_can_be_stopped() {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>(
        )
    });
    let client = kube::Client::new(service, "default");
    let stop = CancellationToken::new();
    stop.cancel();
    let manager = Manager::new("test", client, ManagerOptions::default())
        .controller(counting(&Arc::default(), |_| Ok(Action::await_change())));
    manager.run(stop).await.unwrap();
}

/// A kind with a status.
mod robot {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(group = "robot.opkit.dev", version = "v1", kind = "Robot", namespaced)]
    #[kube(status = "RobotStatus")]
    pub(super) struct RobotSpec {}

    #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
    #[serde(rename_all = "camelCase", default)]
    pub(super) struct RobotStatus {
        pub(super) ready: i32,
        pub(super) observed_generation: Option<i64>,
        pub(super) conditions: crate::Conditions,
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_once_and_again_after_a_conflict() {
    use self::robot::Robot;
    use crate::Condition;

    let path = "/apis/robot.opkit.dev/v1/namespaces/d/robots/one";
    let server = Server::new(&["robots"]);
    let mut robot = object("one");
    robot["apiVersion"] = json!("robot.opkit.dev/v1");
    robot["kind"] = json!("Robot");
    robot["spec"] = json!({});
    robot["status"] = json!({"ready": 1, "unknown": "kept", "conditions": [
        {"type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"},
    ]});
    server.put(path, robot);
    server.conflicts(2);
    async fn reconcile(robot: Arc<Robot>, cx: Context) -> Result<Action> {
        cx.update_status(&robot, |status| {
            status.ready = 2;
            status.conditions.set(Condition::new("Ready", true));
        })
        .await?;
        Ok(Action::await_change())
    }
    let run = Run::start(&server, Controller::new(reconcile)).await;
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(server.writes().len(), 3, "two conflicts and one success");
    let status = server.get(path).unwrap()["status"].clone();
    assert_eq!(
        (&status["ready"], &status["unknown"]),
        (&json!(2), &json!("kept"))
    );
    assert_eq!(status["observedGeneration"], 1);
    let other = &status["conditions"][0];
    assert_eq!(other["lastTransitionTime"], "2020-01-01T00:00:00Z");
    assert!(
        other.get("observedGeneration").is_none(),
        "the condition of another manager"
    );
    assert_eq!(status["conditions"][1]["observedGeneration"], 1);
    assert!(
        run.log.total() >= 2,
        "the event of the write caused no further write"
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_map_function_reconciles_other_objects() {
    let server = Server::new(&["configmaps", "pods"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let controller = counting(&count, |_| Ok(Action::await_change()))
        .watches::<Pod>(|pod, _| vec![pod.metadata.name.clone().unwrap_or_default().into()]);
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    server.put(POD, object("one"));
    run.settle(MOMENT).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let last = run.log.last("configmap", &("d", "one").into()).unwrap();
    assert_eq!(last.causes(), ["Pod one changed"]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reconciles_that_never_wait_let_other_tasks_run() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let (trigger, triggers) = crate::trigger("itself");
    let count = Arc::default();
    let controller = counting(&count, move |_| {
        let _ = trigger.try_send(("d", "one"));
        Ok(Action::await_change())
    });
    let run = Run::start(&server, controller.triggered_by(triggers)).await;
    tokio::task::yield_now().await;
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_longest_requeue_is_waited_for() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let run = Run::start(
        &server,
        counting(&count, |_| Ok(Action::requeue(Duration::MAX))),
    )
    .await;
    run.settle(Duration::from_secs(1)).await;
    run.stop().await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_was_removed_and_added_again_causes_a_reconcile() {
    let server = Server::new(&["configmaps"]);
    let labelled = |label: &str| {
        let mut map = object("one");
        map["metadata"]["uid"] = json!("u");
        map["metadata"]["labels"] = json!({"l": label});
        map
    };
    server.put(MAP, labelled("x"));
    let count: Arc<AtomicU32> = Arc::default();
    let controller = counting(&count, |_| Ok(Action::await_change()))
        .primary(|maps| maps.only(crate::predicate::labels_changed()));
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    server.put(MAP, labelled("y"));
    server.put(MAP, labelled("x"));
    run.settle(MOMENT).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    run.stop().await.unwrap();
}
