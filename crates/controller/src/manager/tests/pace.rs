//! No result of a reconcile leads to the next one without a pause, or else there is a warning.

use super::*;
use crate::Request;

/// How many reconciles a test lets run at once: the clock stands still while they do.
const MOST: u32 = 1_000;

/// The result of the reconcile of that number; from the last one on nothing is asked for.
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

/// In each shape of a controller, what `result` returns.
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

/// How many reconciles there are in half a second, and whether one is part of a loop.
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
async fn a_delay_of_zero_is_that_of_the_rate_limiter() {
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
async fn a_pending_cleanup_of_zero_is_that_of_the_rate_limiter() {
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
async fn the_rate_limiter_forgets_what_was_soon() {
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
async fn what_still_goes_on_without_a_pause_is_a_loop() {
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

/// A client of one's own: what is written with it is not known to be ours.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_known_is_a_loop_as_well() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let writing = server.clone();
    let controller = counting(&count, move |n| {
        // This server tells nothing of what happens before its watch.
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
