//! What runnables and states have beside the controllers: clients, listers, informers, a recorder,
//! the leadership.

use k8s_openapi::api::events::v1::Event;
use opkit_cache::{CacheReadError, Event as CacheEvent};
use opkit_client::Patch;
use opkit_leaderelection::Leadership;

use super::election::{cut_off, electing};
use super::*;
use crate::{
    AnyRunnable, CachedClient, EventType, Lister, ReadDeclarations, ReadError, RunContext,
    Selection, StateContext,
};

/// Declares config maps for reading only.
pub(super) fn maps() -> ReadDeclarations {
    let mut reads = ReadDeclarations::default();
    reads.all::<(ConfigMap,)>();
    reads
}

/// Returns a runnable that gives its context to the test, in which it stays usable.
pub(super) fn lend(
    create: fn(&str, BoxRun) -> AnyRunnable,
) -> (AnyRunnable, tokio::sync::mpsc::Receiver<RunContext>) {
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    let run: BoxRun = Box::new(move |cx: RunContext| {
        let sender = sender.clone();
        Box::pin(async move {
            let _ = sender.send(cx.clone()).await;
            cx.stopped().await;
            Ok(())
        })
    });
    (create("lender", run), receiver)
}

pub(super) type BoxRun =
    Box<dyn Fn(RunContext) -> futures::future::BoxFuture<'static, Result> + Send + Sync>;

pub(super) fn on_every_replica(name: &str, run: BoxRun) -> AnyRunnable {
    AnyRunnable::on_every_replica(name, run)
}

pub(super) fn server(name: &str, run: BoxRun) -> AnyRunnable {
    AnyRunnable::server(name, run)
}

#[tokio::test(start_paused = true)]
async fn a_runnable_reads_kinds_that_no_controller_declares() {
    let api = Server::new(&["configmaps", "events"]);
    api.put(MAP, object("one"));
    let (runnable, mut contexts) = lend(on_every_replica);
    let run = Run::start_manager(&api, |manager| manager.reads(&maps()).runnable(runnable)).await;
    let cx = contexts.recv().await.unwrap();

    let lister: Lister<ConfigMap> = cx.lister().unwrap();
    assert!(lister.get(&("d", "one").into()).unwrap().is_some());
    // The informer goes on without a controller.
    api.put("/api/v1/namespaces/d/configmaps/two", object("two"));
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(lister.list(&Selection::default()).len(), 2);
    let mut listener = cx.informer::<ConfigMap>().unwrap().listen();
    assert!(matches!(listener.recv().await, CacheEvent::Delta(_)));

    let error = cx.lister::<Pod>().unwrap_err().to_string();
    assert!(
        error.starts_with("no controller caches the kind Pod: declare it with Operator::kinds"),
        "{error}"
    );
    let one = lister.get(&("d", "one").into()).unwrap().unwrap();
    cx.recorder()
        .event(&*one, EventType::Normal, "Counted", "one of two");
    run.settle(Duration::from_secs(1)).await;
    let events = kube::Api::<Event>::namespaced(api.client(), "d");
    assert_eq!(
        events.list(&Default::default()).await.unwrap().items.len(),
        1
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_cached_client_shows_its_own_writes() {
    let api = Server::new(&["configmaps"]);
    api.put(MAP, object("one"));
    let (runnable, mut contexts) = lend(on_every_replica);
    let run = Run::start_manager(&api, |manager| manager.reads(&maps()).runnable(runnable)).await;
    let client = contexts.recv().await.unwrap().cached_client();

    let change = json!({"data": {"written": "yes"}});
    let patch = Patch::Merge(&change);
    client
        .patch::<ConfigMap>(("d", "one"), patch)
        .await
        .unwrap();
    let one = client.get::<ConfigMap>(("d", "one")).await.unwrap();
    let data = one.and_then(|one| one.data.clone()).unwrap_or_default();
    assert_eq!(data.get("written").map(String::as_str), Some("yes"));
    let error = client.get::<Pod>(("d", "one")).await.unwrap_err();
    assert!(matches!(error, CacheReadError::NotCached { .. }), "{error}");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reads_wait_for_the_cache_or_report_and_fail_after_the_stop() {
    let api = Server::new(&["configmaps"]);
    api.put(MAP, object("one"));
    let (sender, mut given) = tokio::sync::mpsc::channel::<(StateContext, CachedClient)>(1);
    let (runnable, mut contexts) = lend(server);
    let run = Run::start_manager(&api, |manager| {
        let manager = manager.state_with(move |cx: StateContext| {
            let sender = sender.clone();
            async move {
                let error = cx.lister::<ConfigMap>().unwrap_err();
                assert!(matches!(error, ReadError::NotSynced { .. }), "{error}");
                // Waits until the cache is filled.
                let client = cx.cached_client();
                assert!(client.get::<ConfigMap>(("d", "one")).await?.is_some());
                assert!(cx.lister::<ConfigMap>().is_ok());
                let _ = sender.send((cx, client)).await;
                Ok::<_, Error>(7_u8)
            }
        });
        manager.reads(&maps()).runnable(runnable)
    })
    .await;
    let cx = contexts.recv().await.unwrap();
    assert_eq!(cx.state::<u8>().as_deref(), Some(&7));
    let (state, client) = given.recv().await.unwrap();
    run.stop().await.unwrap();
    let expected = "the cache of the kind ConfigMap has stopped with the operator";
    assert_eq!(cx.lister::<ConfigMap>().unwrap_err().to_string(), expected);
    assert_eq!(
        cx.informer::<ConfigMap>().unwrap_err().to_string(),
        expected
    );
    assert_eq!(
        state.lister::<ConfigMap>().unwrap_err().to_string(),
        expected
    );
    let error = client.get::<ConfigMap>(("d", "one")).await.unwrap_err();
    assert_eq!(error.to_string(), "the cache of ConfigMap has stopped");
    assert!(
        client
            .list::<ConfigMap>(&Selection::default())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn the_leadership_follows_the_tasks_that_need_it() {
    let api = Server::new(&["configmaps"]);
    let (runnable, mut contexts) = lend(server);
    let run = Run::start_manager(&api, |manager| manager.runnable(runnable)).await;
    let mut leadership = contexts.recv().await.unwrap().leadership();
    assert_eq!(
        *leadership.borrow_and_update(),
        Leadership::Leading { term: 1 }
    );
    run.stop().await.unwrap();
    assert_eq!(*leadership.borrow_and_update(), Leadership::Standby);
}

#[tokio::test(start_paused = true)]
async fn the_leadership_is_that_of_the_lease() {
    let api = Server::new(&["configmaps", "leases"]);
    let (client, is_cut) = cut_off(&api);
    let (runnable, mut contexts) = lend(on_every_replica);
    let run = Run::start_client(client, electing(Some("one")), |manager| {
        manager.runnable(runnable)
    })
    .await;
    let mut leadership = contexts.recv().await.unwrap().leadership();
    let leads = |term| move |now: &Leadership| now.term() == Some(term);
    leadership.wait_for(leads(1)).await.unwrap();
    // The lease is not renewed any more.
    is_cut.store(true, Ordering::SeqCst);
    let lost = |now: &Leadership| now.term().is_none();
    leadership.wait_for(lost).await.unwrap();
    is_cut.store(false, Ordering::SeqCst);
    leadership.wait_for(leads(2)).await.unwrap();
    run.stop().await.unwrap();
    assert_eq!(*leadership.borrow(), Leadership::Standby);
}

#[tokio::test(start_paused = true)]
async fn a_state_does_not_wait_for_ever_for_a_kind_that_is_not_served() {
    let api = Server::new(&[]);
    let manager = Manager::new("test", api.client(), ManagerOptions::default())
        .reads(&maps())
        .state_with(|cx: StateContext| async move {
            cx.cached_client().get::<ConfigMap>(("d", "one")).await?;
            Ok::<_, Error>(())
        });
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    let error = Error::from(error).to_string();
    assert!(
        error.contains("the cache has no complete list of ConfigMap after 120 s"),
        "{error}"
    );
}

/// A kind that only a runnable reads need not exist in a further cluster.
#[tokio::test(start_paused = true)]
async fn kinds_for_reading_are_those_of_the_first_cluster() {
    let (home, edge) = (Server::new(&["configmaps", "pods"]), Server::new(&["pods"]));
    home.put(MAP, object("one"));
    let (runnable, mut contexts) = lend(on_every_replica);
    let pods =
        Controller::new(|_: Arc<Pod>, _: Context| async { Ok::<_, Error>(Action::await_change()) });
    let run = Run::start_manager(&home, |manager| {
        let manager = manager.cluster("edge", edge.client());
        manager.reads(&maps()).controller(pods).runnable(runnable)
    })
    .await;
    let cx = contexts.recv().await.unwrap();
    assert_eq!(cx.lister::<ConfigMap>().unwrap().len(), 1);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_known_at_run_time_is_read_through_its_informer() {
    let api = Server::new(&["configmaps"]);
    api.put(MAP, object("one"));
    let (runnable, mut contexts) = lend(on_every_replica);
    let kind = opkit_client::Kind::of::<ConfigMap>();
    let controller = Controller::dynamic(kind.clone(), |_, _: Context| async {
        Ok::<_, Error>(Action::await_change())
    });
    let run = Run::start_manager(&api, |manager| {
        manager.controller(controller).runnable(runnable)
    })
    .await;
    let cx = contexts.recv().await.unwrap();
    assert_eq!(cx.dynamic_informer(&kind).unwrap().len(), 1);
    let error = cx
        .dynamic_informer(&opkit_client::Kind::of::<Pod>())
        .unwrap_err();
    assert!(matches!(error, ReadError::NotCached { .. }), "{error}");
    assert!(cx.lister::<ConfigMap>().is_err(), "without a Rust type");
    run.stop().await.unwrap();
    let error = cx.dynamic_informer(&kind).unwrap_err();
    assert!(matches!(error, ReadError::Stopped { .. }), "{error}");
}
