//! The context that a state is created with.

use k8s_openapi::api::events::v1::Event;

use super::*;
use crate::{EventRecorder, EventType, Reads, Selection};

/// A state that keeps the context that it was created with.
struct App {
    maps: usize,
    reads: Reads,
    recorder: EventRecorder,
}

/// Reconciles with the state.
async fn reconcile(map: Arc<ConfigMap>, cx: Context<App>) -> Result<Action> {
    let app = cx.state();
    let count = app.reads.list::<ConfigMap>(Selection::default())?.len();
    let note = format!("{} at first, {count} now", app.maps);
    app.recorder
        .event(&*map, EventType::Normal, "Counted", note);
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn a_state_reads_the_caches_and_records_events() {
    let server = Server::new(&["configmaps", "events"]);
    server.put(MAP, object("one"));
    let run = Run::start_manager(&server, |manager| {
        let manager = manager.state_with(|cx| async move {
            let reads = cx.reads();
            let error = reads.get::<ConfigMap>(("d", "one")).unwrap_err();
            let expected =
                "the cache of the kind ConfigMap is not filled yet: wait with .synced().await";
            assert_eq!(error.to_string(), expected);
            reads.synced().await?;
            let error = reads.get::<Pod>(("d", "one")).unwrap_err().to_string();
            assert!(
                error.starts_with("no controller caches the kind Pod"),
                "{error}"
            );
            assert!(reads.get::<ConfigMap>(("d", "one"))?.is_some());
            let maps = reads.list::<ConfigMap>(Selection::default())?.len();
            let recorder = cx.recorder();
            Ok::<_, Error>(App {
                maps,
                reads,
                recorder,
            })
        });
        manager.controller(Controller::new(reconcile))
    })
    .await;
    run.settle(Duration::from_secs(1)).await;
    server.put("/api/v1/namespaces/d/configmaps/two", object("two"));
    run.settle(Duration::from_secs(1)).await;
    let events = kube::Api::<Event>::namespaced(server.client(), "d");
    let events = events.list(&Default::default()).await.unwrap().items;
    let mut notes: Vec<_> = events
        .iter()
        .map(|it| it.note.as_deref().unwrap())
        .collect();
    notes.sort_unstable();
    assert_eq!(notes, ["1 at first, 1 now", "1 at first, 2 now"]);
    let about = events[0].regarding.as_ref().unwrap();
    assert_eq!(about.kind.as_deref(), Some("ConfigMap"));
    assert!(about.uid.is_some());
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_state_waits_for_caches_only_until_the_timeout() {
    // The server does not serve the kind: its list fails each time.
    let server = Server::new(&[]);
    let manager = Manager::new("test", server.client(), ManagerOptions::default())
        .state_with(|cx| async move {
            cx.reads().synced().await?;
            Ok::<_, Error>(())
        })
        .controller(counting(&Arc::default(), |_| Ok(Action::await_change())));
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    let error = Error::from(error).to_string();
    assert!(error.starts_with("cannot create the state ()"), "{error}");
    assert!(error.contains("ConfigMap"), "{error}");
}
