//! No result of a reconcile causes the next one without a pause; otherwise a loop is reported.

use super::*;
use crate::Request;

/// Largest number of reconciles without a pause in a test: the paused clock does not advance
/// meanwhile.
const MOST: u32 = 1_000;

/// Returns `result` for the reconcile with this number, and `await_change` for all after the last.
fn bounded(n: u32, result: Result<Action>) -> Result<Action> {
    match n < MOST {
        true => result,
        false => Ok(Action::await_change()),
    }
}

fn soon(n: u32, delay: Duration) -> Result<Action> {
    bounded(n, Ok(Action::requeue(delay)))
}

fn failing(n: u32, delay: Duration) -> Result<Action> {
    bounded(n, Err(Error::retry_after(delay, Error::msg("away"))))
}

/// Returns controllers of each shape that return `result`.
fn shapes(result: fn(u32, Duration) -> Result<Action>, delay: Duration) -> Vec<AnyController> {
    let native = counting(&Arc::default(), move |n| result(n, delay));
    let by_key = AtomicU32::new(0);
    let keyed = Controller::<ConfigMap>::keyed(move |_: Request, _: Context| {
        let result = result(by_key.fetch_add(1, Ordering::SeqCst), delay);
        async move { result }
    });
    let by_kube = AtomicU32::new(0);
    let kubes = Controller::new(move |_: Arc<ConfigMap>, _: Arc<()>| {
        let result = result(by_kube.fetch_add(1, Ordering::SeqCst), delay);
        async move { result }
    });
    vec![native.into(), keyed.into(), kubes.into()]
}

/// Returns the number of reconciles in half a second, and whether one is part of a loop.
async fn reconciles(controller: impl Into<AnyController>) -> (u64, bool) {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_millis(500)).await;
    let looping = |record: &Arc<crate::ReconcileRecord>| record.hot_loop.is_some();
    let is_loop = run.log.records().iter().any(looping);
    let is_counted = run.metrics.encode().lines().any(|line| {
        let is_it = line.starts_with("opkit_hot_loop_reconciles_total{");
        is_it && !line.ends_with(" 0")
    });
    assert_eq!(is_loop, is_counted);
    let found = (run.log.total(), is_loop);
    run.stop().await.unwrap();
    found
}

#[tokio::test(start_paused = true)]
async fn a_delay_of_zero_uses_the_rate_limiter() {
    for result in [soon, failing] {
        for delay in [Duration::ZERO, Duration::from_nanos(1)] {
            for (shape, controller) in shapes(result, delay).into_iter().enumerate() {
                let (count, is_loop) = reconciles(controller).await;
                // 5 ms, doubled each time.
                assert_eq!((count, is_loop), (7, false), "shape {shape}, {delay:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_cleanup_of_zero_uses_the_rate_limiter() {
    let server = Server::new(&["configmaps"]);
    let mut map = object("one");
    map["metadata"]["finalizers"] = json!(["test/cleanup"]);
    map["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    server.put(MAP, map);
    let count: Arc<AtomicU32> = Arc::default();
    let calls = count.clone();
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change())).finalizer(
        "test/cleanup",
        move |_, _| {
            let n = calls.fetch_add(1, Ordering::SeqCst);
            async move {
                match n < MOST {
                    true => Ok::<_, Error>(Cleanup::Pending(Duration::ZERO)),
                    false => Ok(Cleanup::Pending(Duration::MAX)),
                }
            }
        },
    );
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_millis(500)).await;
    assert_eq!(count.load(Ordering::SeqCst), 7);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_rate_limiter_is_reset_after_a_longer_delay() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let controller = counting(&count, |n| match n % 4 {
        0 => Ok(Action::requeue(Duration::from_secs(1))),
        _ => Ok(Action::requeue(Duration::ZERO)),
    });
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_millis(1_100)).await;
    let records = run.log.records();
    let results: Vec<_> = records.iter().map(|r| r.result.to_string()).collect();
    let soon = ["ok, again in 5ms", "ok, again in 10ms", "ok, again in 20ms"];
    assert_eq!(results[..3], soon);
    assert_eq!(results[3], "ok, again in 1s");
    assert_eq!(results[4..7], soon);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reconciles_without_a_pause_are_a_loop() {
    for result in [soon, failing] {
        for (shape, controller) in shapes(result, Duration::from_millis(1))
            .into_iter()
            .enumerate()
        {
            let (count, is_loop) = reconciles(controller).await;
            assert!(is_loop, "shape {shape}: {count} reconciles");
        }
    }
    let failing = counting(&Arc::default(), |n| bounded(n, Err(Error::msg("away"))));
    let (_, is_loop) = reconciles(failing.backoff(Duration::ZERO, Duration::ZERO)).await;
    assert!(is_loop, "a backoff of zero");

    let (trigger, triggers) = crate::trigger("itself");
    let firing = counting(&Arc::default(), move |n| {
        if n < MOST {
            let _ = trigger.try_send(("d", "one"));
        }
        Ok(Action::await_change())
    });
    let (_, is_loop) = reconciles(firing.triggered_by(triggers)).await;
    assert!(is_loop, "a trigger in each reconcile");
}

/// The user's own client: its writes are not recorded.
#[tokio::test(start_paused = true)]
async fn a_loop_by_unrecorded_writes_is_found() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let writing = server.clone();
    let controller = counting(&count, move |n| {
        // This server does not report changes from before its watch.
        if (2..2 * MOST).contains(&n) {
            let mut map = writing.get(MAP).unwrap_or_default();
            map["data"] = json!({"n": n.to_string()});
            writing.put(MAP, map);
        }
        Ok(Action::await_change())
    });
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    server.put(MAP, server.get(MAP).unwrap());
    run.settle(Duration::from_secs(1)).await;
    let records = run.log.records();
    let found = records.iter().find_map(|record| record.hot_loop.as_ref());
    let text = found.map(ToString::to_string).unwrap_or_default();
    assert!(
        text.contains("ConfigMap one is reconciled without a pause, because one changed"),
        "{text}"
    );
    run.stop().await.unwrap();
}
