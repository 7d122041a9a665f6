use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::InformerOptions;
use crate::object::Codec;
use crate::sink::{Raw, Sink};

fn informer() -> Informer {
    let stop = CancellationToken::new();
    Informer::new(
        Codec::of::<ConfigMap>(),
        InformerOptions::default(),
        None,
        1,
        stop,
    )
}

fn map(name: &str, uid: &str, version: u32) -> String {
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version.to_string()}})
        .to_string()
}

#[derive(Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Handler for Log {
    fn add(&mut self, object: &Stored, in_initial_list: bool) {
        self.0
            .lock()
            .push(format!("add {} {in_initial_list}", object.name()));
    }
    fn update(&mut self, old: &Stored, new: &Stored) {
        self.0.lock().push(format!(
            "update {} {}>{}",
            new.name(),
            old.version(),
            new.version()
        ));
    }
    fn delete(&mut self, object: &Stored, is_certain: bool) {
        self.0.lock().push(format!(
            "delete {} {} {is_certain}",
            object.name(),
            object.version()
        ));
    }
    fn synced(&mut self) {
        self.0.lock().push("synced".into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_called_for_each_change() {
    let informer = informer();
    let mut sink = informer.sink(None);
    let log = Log::default();
    let seen = log.0.clone();
    let mut handling = pin!(informer.listen().handle(log));
    let mut settle = async || {
        let quiet = tokio::time::sleep(Duration::from_millis(1));
        tokio::select! { () = &mut handling => {}, () = quiet => {} }
        std::mem::take(&mut *seen.lock())
    };
    sink.begin_list();
    sink.listed(Raw::Json(map("a", "1", 1).as_bytes())).unwrap();
    sink.end_list("2");
    assert_eq!(settle().await, ["add a true", "synced"]);
    sink.changed(Raw::Json(map("a", "1", 3).as_bytes()))
        .unwrap();
    sink.changed(Raw::Json(map("b", "2", 4).as_bytes()))
        .unwrap();
    assert_eq!(settle().await, ["update a 1>3", "add b false"]);
    // Deleted and created again between two reads.
    sink.deleted(Raw::Json(map("a", "1", 5).as_bytes()))
        .unwrap();
    sink.changed(Raw::Json(map("a", "9", 6).as_bytes()))
        .unwrap();
    sink.deleted(Raw::Json(map("b", "2", 7).as_bytes()))
        .unwrap();
    // The event contains the last state.
    assert_eq!(
        settle().await,
        ["delete a 5 true", "add a false", "delete b 7 true"]
    );
    // A list without the object shows that it is deleted, but not its last state.
    sink.begin_list();
    sink.end_list("8");
    assert_eq!(settle().await, ["delete a 6 false"]);
}

#[tokio::test(start_paused = true)]
async fn synced_comes_once_and_after_the_first_list() {
    let informer = informer();
    let mut sink = informer.sink(None);
    let mut events = Box::pin(informer.listen().into_stream());
    let mut next = async || {
        let next = futures::StreamExt::next(&mut events);
        tokio::time::timeout(Duration::from_secs(1), next)
            .await
            .ok()
            .flatten()
    };
    for list in ["1", "2"] {
        sink.begin_list();
        sink.listed(Raw::Json(map("a", "1", 1).as_bytes())).unwrap();
        sink.end_list(list);
    }
    assert!(matches!(next().await, Some(Event::Delta(delta)) if delta.initial));
    assert!(matches!(next().await, Some(Event::Synced)));
    assert!(next().await.is_none());
}

/// Returns an informer of `count` maps, `m0` to ..., each at version 1, and its sink.
fn filled(count: usize) -> (Informer, crate::informer::InformerSink) {
    let informer = informer();
    let mut sink = informer.sink(None);
    sink.begin_list();
    for n in 0..count {
        let name = format!("m{n}");
        let listed = sink.listed(Raw::Json(map(&name, &name, 1).as_bytes()));
        listed.unwrap();
    }
    sink.end_list("2");
    (informer, sink)
}

fn text(event: Event) -> String {
    match event {
        Event::Synced => "synced".to_owned(),
        Event::Delta(delta) => {
            let version = |stored: &Option<Stored>| stored.as_ref().map_or(0, Stored::version);
            let (old, new) = (version(&delta.old), version(&delta.new));
            format!("{:?} {} {old}>{new}", delta.change, delta.key.name)
        }
    }
}

/// Returns the events that the listener receives without waiting longer than `time`.
async fn within(listener: &mut Listener, time: Duration) -> Vec<String> {
    let end = Instant::now() + time;
    let mut events = Vec::new();
    while let Ok(event) = tokio::time::timeout_at(end, listener.recv()).await {
        events.push(text(event));
    }
    events
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn each_listener_has_its_own_resync_period() {
    let (informer, _sink) = filled(2);
    let mut often = informer.listen().resync(MINUTE);
    let mut rarely = informer.listen().resync(2 * MINUTE);
    let mut never = informer.listen();
    for listener in [&mut often, &mut rarely, &mut never] {
        assert_eq!(within(listener, Duration::ZERO).await.len(), 3);
    }
    let begun = Instant::now();
    let sync = ["Sync m0 1>1", "Sync m1 1>1"];
    let again = [sync, sync].concat();
    assert_eq!(
        within(&mut often, 2 * MINUTE + Duration::from_secs(1)).await,
        again
    );
    assert_eq!(within(&mut rarely, Duration::from_secs(1)).await, sync);
    assert!(within(&mut never, MINUTE).await.is_empty());
    assert!(begun.elapsed() < 4 * MINUTE);
}

#[tokio::test(start_paused = true)]
async fn the_shortest_period_is_a_second() {
    let (informer, _sink) = filled(1);
    let mut listener = informer.listen().resync(Duration::ZERO);
    assert_eq!(
        within(&mut listener, Duration::from_millis(999))
            .await
            .len(),
        2
    );
    assert_eq!(
        within(&mut listener, Duration::from_millis(2)).await.len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_a_resync_as_an_update() {
    let (informer, _sink) = filled(1);
    let log = Log::default();
    let seen = log.0.clone();
    let handling = informer.listen().resync(MINUTE).handle(log);
    let _ = tokio::time::timeout(MINUTE + Duration::from_secs(1), handling).await;
    assert_eq!(*seen.lock(), ["add m0 true", "synced", "update m0 1>1"]);
}

/// The other objects of the resync, however many, do not delay a change.
#[tokio::test(start_paused = true)]
async fn a_change_is_delivered_before_the_rest_of_a_resync() {
    let count = 10_000;
    let (informer, mut sink) = filled(count);
    let mut listener = informer.listen().resync(MINUTE);
    within(&mut listener, Duration::ZERO).await;
    assert!(!listener.is_resyncing());
    assert_eq!(text(listener.recv().await), "Sync m0 1>1");
    assert!(listener.is_resyncing());
    // Nothing waits: the objects are still in the store only.
    assert_eq!(listener.backlog(), 0);
    sink.changed(Raw::Json(map("m7", "m7", 3).as_bytes()))
        .unwrap();
    sink.deleted(Raw::Json(map("m8", "m8", 4).as_bytes()))
        .unwrap();
    sink.changed(Raw::Json(map("new", "new", 5).as_bytes()))
        .unwrap();
    assert_eq!(text(listener.recv().await), "Updated m7 1>3");
    assert_eq!(text(listener.recv().await), "Deleted m8 1>0");
    assert_eq!(text(listener.recv().await), "Added new 0>5");
    // From here on, the changed object is delivered in its new state, and the deleted one is not.
    let rest = within(&mut listener, Duration::from_secs(1)).await;
    assert!(rest.contains(&"Sync m7 3>3".to_owned()));
    assert!(!rest.iter().any(|line| line.contains(" m8 ")));
    // One was delivered before, one is deleted; the new one may take the place of that one.
    assert!((count - 2..count).contains(&rest.len()), "{}", rest.len());
    assert!(!listener.is_resyncing());
}

#[tokio::test(start_paused = true)]
async fn changes_are_received_without_the_objects_of_a_resync() {
    let (informer, mut sink) = filled(3);
    let mut listener = informer.listen().resync(MINUTE);
    within(&mut listener, Duration::ZERO).await;
    assert_eq!(text(listener.recv().await), "Sync m0 1>1");
    let held = tokio::time::timeout(5 * MINUTE, listener.recv_change()).await;
    assert!(held.is_err());
    sink.changed(Raw::Json(map("m1", "m1", 3).as_bytes()))
        .unwrap();
    assert_eq!(text(listener.recv_change().await), "Updated m1 1>3");
    // The resync goes on where it was, and then the next one, which is overdue.
    let rest = within(&mut listener, Duration::from_secs(1)).await;
    let all = ["Sync m0 1>1", "Sync m1 3>3", "Sync m2 1>1"];
    assert_eq!(rest, [&all[1..], &all[..]].concat());
}

/// A listener that handles each event at once still lets the watch go on.
#[tokio::test(start_paused = true)]
async fn a_resync_yields_to_other_tasks() {
    let (informer, _sink) = filled(1_000);
    let mut listener = informer.listen().resync(MINUTE);
    within(&mut listener, Duration::ZERO).await;
    listener.recv().await;
    let mut turns = 0;
    let other = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    let resync = async {
        for _ in 1..1_000 {
            listener.recv().await;
        }
    };
    tokio::select! { () = other => {}, () = resync => {} }
    assert!(turns >= 10, "{turns}");
}
