//! Reflectors of functions, on a paused clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::*;
use crate::{InformerFactory, ListWatchError, ObjectList, Scope, SourceEvent};

fn map(name: &str, version: &str) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "resourceVersion": version}});
    serde_json::from_value(map).unwrap()
}

type Event = Result<SourceEvent<ConfigMap>, ListWatchError>;

/// Source that lists what the test sets, and sends what the test sends.
#[derive(Clone, Default)]
struct Fake {
    list: Arc<Mutex<(Vec<ConfigMap>, String)>>,
    /// Sender of the events of the open watch.
    watch: Arc<Mutex<Option<mpsc::Sender<Event>>>>,
    calls: Arc<Mutex<Vec<String>>>,
    failures: Arc<AtomicUsize>,
}

impl Fake {
    fn set(&self, objects: &[(&str, &str)], version: &str) {
        let objects = objects.iter().map(|(name, version)| map(name, version));
        *self.list.lock().unwrap() = (objects.collect(), version.to_owned());
    }

    fn source(&self) -> ListWatch<ConfigMap> {
        let (listing, watching) = (self.clone(), self.clone());
        let list = move || {
            listing.calls.lock().unwrap().push("list".to_owned());
            let fails = listing.failures.load(Ordering::Relaxed) > 0;
            if fails {
                listing.failures.fetch_sub(1, Ordering::Relaxed);
            }
            let (objects, version) = listing.list.lock().unwrap().clone();
            async move {
                match fails {
                    true => Err(ListWatchError::failed("the disk is full")),
                    false => Ok(ObjectList { objects, version }),
                }
            }
        };
        let watch = move |version: String| {
            watching
                .calls
                .lock()
                .unwrap()
                .push(format!("watch {version}"));
            let (sender, receiver) = mpsc::channel(8);
            *watching.watch.lock().unwrap() = Some(sender);
            let events = futures::stream::unfold(receiver, |mut receiver| async {
                Some((receiver.recv().await?, receiver))
            });
            async move { Ok(events.boxed()) }
        };
        ListWatch::new(list, watch)
    }

    async fn send(&self, event: Event) {
        let sender = self.watch.lock().unwrap().clone().unwrap();
        sender.send(event).await.unwrap();
        settle().await;
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

/// Lets the reflector run until it waits.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Store that records its calls.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn push(&self, call: String) {
        self.0.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn name(map: &ConfigMap) -> String {
    map.metadata.name.clone().unwrap_or_default()
}

impl ReflectorStore<ConfigMap> for Calls {
    fn add(&mut self, object: Arc<ConfigMap>) {
        self.push(format!("add {}", name(&object)));
    }

    fn update(&mut self, object: Arc<ConfigMap>) {
        self.push(format!("update {}", name(&object)));
    }

    fn delete(&mut self, key: &ObjectKey, last: Option<Arc<ConfigMap>>) {
        self.push(format!("delete {key} {}", last.is_some()));
    }

    fn replace(&mut self, objects: Vec<Arc<ConfigMap>>, version: &str) {
        let mut names: Vec<_> = objects.iter().map(|map| name(map)).collect();
        names.sort();
        self.push(format!("replace {} at {version}", names.join(" ")));
    }

    fn unreadable(&mut self, key: &ObjectKey, _: &serde_json::Error) {
        self.push(format!("unreadable {key}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_follows_functions() {
    let (fake, store, tasks) = (Fake::default(), Calls::default(), TaskTracker::new());
    fake.set(&[("a", "1"), ("b", "2")], "2");
    let reflector = Reflector::new(fake.source(), store.clone());
    let (mut synced, error) = (reflector.synced(), reflector.last_error());
    let stop = CancellationToken::new();
    tasks.spawn(reflector.run(stop.clone()));
    assert!(*synced.wait_for(|synced| *synced).await.unwrap());
    settle().await;
    assert_eq!(store.take(), ["replace a b at 2"]);
    assert_eq!(fake.calls(), ["list", "watch 2"]);

    fake.send(Ok(SourceEvent::Modified(map("a", "3")))).await;
    fake.send(Ok(SourceEvent::Added(map("c", "4")))).await;
    fake.send(Ok(SourceEvent::Deleted(map("b", "5")))).await;
    // A second report of the same deletion.
    fake.send(Ok(SourceEvent::Deleted(map("b", "5")))).await;
    assert_eq!(store.take(), ["update a", "add c", "delete b true"]);

    // A watch without events lasts: no bookmark is expected of functions.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(fake.calls(), Vec::<String>::new());
    // A watch that ends continues from the last version.
    drop(fake.watch.lock().unwrap().take());
    settle().await;
    assert_eq!(fake.calls(), ["watch 5"]);
    fake.send(Ok(SourceEvent::Bookmark("7".to_owned()))).await;

    // A failure is repeated after a delay, from the bookmark.
    fake.send(Err(ListWatchError::failed("the disk is full")))
        .await;
    assert_eq!(
        error.borrow().as_deref(),
        Some("cannot read the source: the disk is full")
    );
    assert_eq!(fake.calls(), Vec::<String>::new());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fake.calls(), ["watch 7"]);
    assert_eq!(*error.borrow(), None);

    // The source has forgotten the changes since then.
    fake.set(&[("c", "4"), ("d", "8")], "8");
    fake.send(Err(ListWatchError::Expired)).await;
    assert_eq!(fake.calls(), ["list", "watch 8"]);
    assert_eq!(store.take(), ["replace c d at 8"]);

    stop.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_repeated_and_objects_that_do_not_fit_are_left_out() {
    let (fake, store) = (Fake::default(), Calls::default());
    fake.failures.store(2, Ordering::Relaxed);
    fake.set(&[("a", "1")], "1");
    // The value of a key is not text.
    let wrong = json!({"metadata": {"name": "wrong"}, "data": {"a": 1}});
    let lists = fake.source();
    let AnySource::Functions(functions) = &lists.source else {
        unreachable!()
    };
    let list = functions.list.clone();
    let page = move || {
        let (listing, wrong) = (list(), wrong.clone());
        async move {
            let mut page: serde_json::Value = serde_json::from_slice(&listing.await?).unwrap();
            page["items"].as_array_mut().unwrap().push(wrong);
            Ok(page.to_string().into())
        }
    };
    let mut source = fake.source();
    source.source = AnySource::Functions(crate::list_watch::Functions {
        list: Arc::new(move || Box::pin(page())),
        watch: functions.watch.clone(),
    });
    let reflector = Reflector::new(source, store.clone());
    let (mut synced, stop) = (reflector.synced(), CancellationToken::new());
    let fill = async {
        synced.wait_for(|synced| *synced).await.unwrap();
        stop.cancel();
    };
    tokio::join!(reflector.run(stop.clone()), fill);
    assert_eq!(store.take(), ["unreadable wrong", "replace a at 1"]);
    let lists = fake.calls().iter().filter(|call| *call == "list").count();
    assert_eq!(lists, 3);
}

#[tokio::test(start_paused = true)]
async fn an_informer_follows_functions() {
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>("there is no server")
    });
    let client = opkit_client::RestClient::new(kube::Client::new(service, "default"));
    let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
    let (one, two) = (Fake::default(), Fake::default());
    one.set(&[("a", "1")], "1");
    two.set(&[], "1");
    let (first, second) = (
        factory.informer_from(one.source()),
        factory.informer_from(two.source()),
    );
    factory.wait_for_sync(Duration::from_secs(1)).await.unwrap();
    assert_eq!((first.len(), second.len()), (1, 0));
    assert!(factory.started::<ConfigMap>().is_none(), "not the API's");
    settle().await;
    one.send(Ok(SourceEvent::Added(map("b", "2")))).await;
    assert_eq!(
        first.get(&"b".into()).unwrap().map(|map| name(&map)),
        Some("b".to_owned())
    );
    stop.cancel();
    assert!(first.informer().is_stopped());
    tasks.close();
    tasks.wait().await;
}
