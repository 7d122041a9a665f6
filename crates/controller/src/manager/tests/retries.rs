//! The number of an attempt, and the limit of retries.

use super::robot::Robot;
use super::*;
use crate::Condition;

const ROBOT: &str = "/apis/robot.opkit.dev/v1/namespaces/d/robots/one";
const HOUR: Duration = Duration::from_secs(3600);

fn robot(generation: i64) -> Value {
    json!({"apiVersion": "robot.opkit.dev/v1", "kind": "Robot", "spec": {},
        "status": {"ready": 0, "conditions": []},
        "metadata": {"namespace": "d", "name": "one", "generation": generation}})
}

fn away() -> Error {
    Error::msg("the store is away")
}

/// Changes the spec of the robot.
fn change(server: &Server) {
    let mut robot = server.get(ROBOT).unwrap();
    let generation = robot["metadata"]["generation"].as_i64().unwrap();
    robot["metadata"]["generation"] = json!(generation + 1);
    server.put(ROBOT, robot);
}

type Attempts = Arc<Mutex<Vec<u32>>>;

/// Returns a controller of robots that keeps the number of each attempt.
fn attempting<F>(attempts: &Attempts, result: F) -> Controller<Robot>
where
    F: Fn(usize) -> Result<Action> + Clone + Send + Sync + 'static,
{
    let attempts = attempts.clone();
    Controller::new(move |_: Arc<Robot>, cx: Context| {
        let mut attempts = attempts.lock();
        attempts.push(cx.attempt());
        let (result, n) = (result.clone(), attempts.len());
        async move { result(n) }
    })
}

fn conditions(server: &Server) -> Value {
    server.get(ROBOT).unwrap()["status"]["conditions"].clone()
}

fn metric(run: &Run, name: &str) -> String {
    let text = run.metrics.encode();
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name}{{")));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.unwrap_or("none").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_sees_how_often_it_has_failed() {
    let server = Server::new(&["robots"]);
    server.put(ROBOT, robot(1));
    let attempts = Attempts::default();
    let controller = attempting(&attempts, |n| match n {
        1 => Err(away()),
        2 => Err(Error::retry_after(Duration::from_secs(30), away())),
        3 => panic!("the third"),
        4 => Err(Error::retry_after(Duration::ZERO, away())),
        5 => Ok(Action::requeue(Duration::from_secs(60))),
        6 => Err(away()),
        7 => Ok(Action::requeue(Duration::ZERO)),
        8 => Err(away()),
        _ => Err(Error::terminal(away())),
    });
    let run = Run::start(&server, controller).await;
    run.settle(HOUR).await;
    assert_eq!(*attempts.lock(), [0, 1, 2, 3, 4, 0, 1, 0, 1]);
    assert_eq!(metric(&run, "opkit_workqueue_failing_keys"), "0.0");
    change(&server);
    run.settle(HOUR).await;
    assert_eq!(attempts.lock().last(), Some(&0), "after a terminal error");
    let causes = run.causes();
    assert_eq!(
        causes[1..4],
        [
            "retry 1 after error",
            "retry 2 after error",
            "retry 3 after error"
        ]
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_metrics_show_objects_that_fail() {
    let server = Server::new(&["robots"]);
    server.put(ROBOT, robot(1));
    let wait = || Error::retry_after(Duration::from_secs(60), away());
    let controller = attempting(&Attempts::default(), move |n| match n {
        1..=3 => Err(wait()),
        _ => Ok(Action::await_change()),
    });
    let run = Run::start(&server, controller).await;
    for failures in 1..=3 {
        run.settle(Duration::from_secs(59)).await;
        assert_eq!(metric(&run, "opkit_workqueue_failing_keys"), "1.0");
        let most = metric(&run, "opkit_workqueue_failures_max");
        assert_eq!(most, format!("{failures}.0"));
        run.settle(Duration::from_secs(1)).await;
    }
    run.settle(Duration::from_secs(60)).await;
    assert_eq!(metric(&run, "opkit_workqueue_failing_keys"), "0.0");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_is_given_up_until_it_changes() {
    let server = Server::new(&["robots"]);
    server.put(ROBOT, robot(1));
    let attempts = Attempts::default();
    let controller = attempting(&attempts, |_| Err(away()));
    let stalled = Condition::new("Stalled", true);
    let run = Run::start(&server, controller.max_retries(2, stalled)).await;
    run.settle(HOUR).await;
    // The condition itself causes no reconcile.
    assert_eq!(*attempts.lock(), [0, 1, 2]);
    let written = conditions(&server);
    assert_eq!(written.as_array().map(Vec::len), Some(1));
    let condition = &written[0];
    assert!(condition["lastTransitionTime"].is_string());
    for (field, value) in [
        ("type", json!("Stalled")),
        ("status", json!("True")),
        ("reason", json!("RetriesExhausted")),
        ("message", json!("the store is away")),
        ("observedGeneration", json!(1)),
    ] {
        assert_eq!(condition[field], value, "{field}");
    }
    assert_eq!(server.writes(), [format!("PATCH {ROBOT}/status")]);
    assert_eq!(metric(&run, "opkit_retries_exhausted_total"), "1");
    assert_eq!(
        metric(&run, "controller_runtime_terminal_reconcile_errors_total"),
        "1"
    );
    assert_eq!(metric(&run, "opkit_workqueue_failing_keys"), "0.0");
    let last = run.log.records().last().unwrap().result.to_string();
    assert_eq!(
        last,
        "error, again at the next change: gave up after 3 failures in a row: the store is away"
    );
    change(&server);
    run.settle(HOUR).await;
    assert_eq!(*attempts.lock(), [0, 1, 2, 0, 1, 2]);
    assert_eq!(conditions(&server)[0]["observedGeneration"], 2);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_condition_is_removed_after_a_success() {
    let server = Server::new(&["robots"]);
    let mut one = robot(1);
    let other = json!({"type": "Other", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    one["status"]["conditions"] = json!([other]);
    server.put(ROBOT, one);
    let attempts = Attempts::default();
    let controller = attempting(&attempts, |n| match n {
        1..=2 => Err(away()),
        _ => Ok(Action::await_change()),
    });
    let stalled = Condition::new("Stalled", true)
        .reason("Away")
        .message("the store");
    let run = Run::start(&server, controller.max_retries(1, stalled)).await;
    run.settle(HOUR).await;
    let condition = &conditions(&server)[1];
    let text = |field: &str| condition[field].as_str().map(str::to_owned);
    assert_eq!(text("reason").as_deref(), Some("Away"));
    assert_eq!(text("message").as_deref(), Some("the store"));
    change(&server);
    run.settle(HOUR).await;
    assert_eq!(conditions(&server), json!([other]));
    // The removal changes the object, which is reconciled once more.
    assert_eq!(*attempts.lock(), [0, 1, 0, 0]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_conditions_needs_none() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count = Arc::default();
    let controller = counting(&count, |_| Err(away())).max_retries(4, None);
    let run = Run::start(&server, controller).await;
    run.settle(HOUR).await;
    assert_eq!(count.load(Ordering::SeqCst), 5);
    assert_eq!(server.writes(), [""; 0]);
    run.stop().await.unwrap();
}

/// Otherwise nothing would show that the object is not retried.
#[tokio::test(start_paused = true)]
async fn an_object_is_retried_until_its_condition_is_written() {
    let server = Server::new(&["robots"]);
    server.put(ROBOT, robot(1));
    // Eleven attempts of one write.
    server.conflicts(12);
    let attempts = Attempts::default();
    let controller = attempting(&attempts, |_| Err(away()));
    let stalled = Condition::new("Stalled", true);
    let run = Run::start(&server, controller.max_retries(1, stalled)).await;
    run.settle(HOUR).await;
    assert_eq!(*attempts.lock(), [0, 1, 2]);
    assert_eq!(conditions(&server)[0]["type"], "Stalled");
    run.stop().await.unwrap();
}

/// The condition is written to a version that the reconcile has not seen.
#[tokio::test(start_paused = true)]
async fn a_change_during_the_last_attempt_is_not_missed() {
    let server = Server::new(&["robots"]);
    server.put(ROBOT, robot(1));
    let attempts = Attempts::default();
    let changing = server.clone();
    let controller = attempting(&attempts, move |n| {
        if n == 2 {
            change(&changing);
        }
        Err(away())
    });
    let stalled = Condition::new("Stalled", true);
    let run = Run::start(&server, controller.max_retries(1, stalled)).await;
    run.settle(HOUR).await;
    assert_eq!(*attempts.lock(), [0, 1, 0, 1]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_trigger_reconciles_an_object_that_was_given_up() {
    let server = Server::new(&["robots"]);
    server.put(ROBOT, robot(1));
    let attempts = Attempts::default();
    let (trigger, triggers) = crate::trigger("test");
    let controller = attempting(&attempts, |_| Err(away())).triggered_by(triggers);
    let stalled = Condition::new("Stalled", true);
    let run = Run::start(&server, controller.max_retries(1, stalled)).await;
    run.settle(HOUR).await;
    assert_eq!(*attempts.lock(), [0, 1]);
    trigger.try_send(("d", "one")).unwrap();
    run.settle(HOUR).await;
    assert_eq!(*attempts.lock(), [0, 1, 0, 1]);
    // The same condition is not written again.
    assert_eq!(server.writes().len(), 1);
    run.stop().await.unwrap();
}
