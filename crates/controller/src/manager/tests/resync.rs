//! Resyncs: each cached object is delivered again, without a request and without delaying changes.

use opkit_client::Seam;

use super::*;
use crate::source::event::Event;
use crate::source::predicate;

const MINUTE: Duration = Duration::from_secs(60);
/// Longest time between two resyncs in a minute's period, and a moment for their reconciles.
const ROUND: Duration = Duration::from_secs(67);

fn path(n: usize) -> String {
    format!("/api/v1/namespaces/d/configmaps/m{n}")
}

/// Returns a server with `count` maps.
fn server(count: usize) -> Server {
    let server = Server::new(&["configmaps", "secrets"]);
    for n in 0..count {
        server.put(&path(n), object(&format!("m{n}")));
    }
    server
}

fn quiet() -> Controller<ConfigMap> {
    counting(&Arc::default(), |_| Ok(Action::await_change()))
}

fn every_minute() -> ManagerOptions {
    ManagerOptions {
        resync: Some(MINUTE),
        ..Default::default()
    }
}

/// Returns the number of reconciles whose only cause is a resync.
fn resyncs(run: &Run) -> usize {
    let causes = run.causes();
    causes.iter().filter(|causes| *causes == "resync").count()
}

#[tokio::test(start_paused = true)]
async fn every_object_is_reconciled_again_without_a_request() {
    let (server, seam) = (server(3), Seam::new());
    let client = seam.wrap(server.client());
    let add = |manager: Manager| manager.controller(quiet());
    let run = Run::start_client(client, every_minute(), add).await;
    run.settle(MOMENT).await;
    assert_eq!((run.log.total(), resyncs(&run)), (3, 0));
    let requests = seam.requests();
    run.settle(ROUND).await;
    assert_eq!((run.log.total(), resyncs(&run)), (6, 3));
    assert_eq!(seam.requests(), requests);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_is_off_unless_the_operator_or_the_controller_declares_it() {
    let hour = Duration::from_secs(3600);
    let cases = [
        (None, quiet(), 0),
        (Some(MINUTE), quiet(), 1),
        (Some(hour), quiet().resync(MINUTE), 1),
        (Some(MINUTE), quiet().resync(None), 0),
        (Some(MINUTE), quiet().resync(Duration::ZERO), 0),
        (None, quiet().resync(MINUTE), 1),
    ];
    for (number, (resync, controller, expected)) in cases.into_iter().enumerate() {
        let options = ManagerOptions {
            resync,
            ..Default::default()
        };
        let add = |manager: Manager| manager.controller(controller);
        let run = Run::start_with(&server(1), options, add).await;
        run.settle(ROUND).await;
        assert_eq!(resyncs(&run), expected, "case {number}");
        run.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn filters_and_map_functions_of_each_source_get_an_update_without_a_change() {
    let server = server(1);
    server.put(SECRET, object("child"));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let controller = quiet()
        .primary(|maps| maps.only(predicate::generation_changed()))
        .watches_with::<Secret>(|secrets| {
            secrets.map_events(move |event, _| {
                log.lock().push(match event {
                    Event::Create(_) => "create".to_owned(),
                    Event::Update(it) => format!("update {}", it.old == it.new),
                    _ => "other".to_owned(),
                });
                Vec::new()
            })
        });
    let add = |manager: Manager| manager.controller(controller);
    let run = Run::start_with(&server, every_minute(), add).await;
    run.settle(ROUND).await;
    assert_eq!(*seen.lock(), ["create", "update true"]);
    assert_eq!(run.causes(), ["initial list"], "the generation is the same");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_negation_of_a_change_passes_a_resync() {
    let spec_or_resync = predicate::generation_changed().or(!predicate::resource_version_changed());
    let controller = quiet().primary(|maps| maps.only(spec_or_resync));
    let add = |manager: Manager| manager.controller(controller);
    let run = Run::start_with(&server(1), every_minute(), add).await;
    run.settle(ROUND).await;
    assert_eq!(run.causes(), ["initial list", "resync"]);
    run.stop().await.unwrap();
}

/// Returns a controller that needs a second for each reconcile after the first `quick` ones.
fn slow(quick: u32) -> Controller<ConfigMap> {
    let count = AtomicU32::new(0);
    Controller::new(move |_: Arc<ConfigMap>, _: Context| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if n >= quick {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok::<_, Error>(Action::await_change())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn the_queue_does_not_get_all_objects_at_once() {
    let server = server(1_000);
    let add = |manager: Manager| manager.controller(slow(1_000));
    let run = Run::start_with(&server, every_minute(), add).await;
    run.settle(ROUND).await;
    let begun = run.log.total();
    assert!((1_001..1_020).contains(&begun), "{begun}");
    for second in 0..300u64 {
        let waiting = run.log.queued(2_000).len();
        assert!((90..=102).contains(&waiting), "{waiting} after {second} s");
        run.settle(Duration::from_secs(1)).await;
    }
    // The requests that wait have not waited long enough to come before a change.
    let mut changed = object("m7");
    changed["metadata"]["labels"] = json!({"a": "b"});
    server.put(&path(7), changed);
    run.settle(Duration::from_secs(3)).await;
    let causes = run.causes();
    let found = causes.iter().position(|it| it.contains("m7 changed"));
    assert!(found.is_some(), "{:?}", causes.last());
    // The resync goes on to its end, and is not begun again before that.
    run.settle(Duration::from_secs(700)).await;
    let done = resyncs(&run);
    assert!((990..1_030).contains(&done), "{done}");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_waits_keeps_its_place() {
    let server = server(4);
    // Each reconcile after the first four blocks the only worker for a second.
    let add = |manager: Manager| manager.controller(slow(4));
    let run = Run::start_with(&server, every_minute(), add).await;
    run.settle(Duration::from_secs(50)).await;
    let touch = |n: usize| {
        let mut changed = server.get(&path(n)).unwrap();
        changed["data"] = json!({"at": changed["metadata"]["resourceVersion"]});
        server.put(&path(n), changed);
    };
    // Keeps the worker busy until after the resync, with `m3` waiting.
    for _ in 0..20 {
        touch(0);
        run.settle(Duration::from_millis(500)).await;
        touch(3);
        run.settle(Duration::from_millis(500)).await;
    }
    run.settle(ROUND).await;
    let causes = run.causes();
    // The two objects that did not change come after the two that did.
    let alone = causes.iter().position(|it| it == "resync");
    let merged = causes
        .iter()
        .position(|it| it.contains("changed") && it.contains("resync"));
    assert!(
        merged.is_some() && alone.is_some() && merged < alone,
        "{causes:?}"
    );
    run.stop().await.unwrap();
}
