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
