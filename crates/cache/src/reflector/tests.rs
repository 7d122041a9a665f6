//! Reflector against a scripted server: one response per request, in order.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use opkit_client::RestClient;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use bytes::Bytes;

use super::*;
use crate::{Event, InformerFactory, InformerOptions, Listener, Lister, Scope};

/// Body of a response that starts and then sends nothing.
const SILENCE: &str = "silence";

#[derive(Default)]
struct Script {
    responses: VecDeque<(u16, String)>,
    seen: Vec<String>,
}

struct Server {
    script: Arc<Mutex<Script>>,
    factory: InformerFactory,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Server {
    /// Creates a server that sends these responses and then none.
    fn new(responses: Vec<(u16, String)>) -> Self {
        let script = Arc::new(Mutex::new(Script {
            responses: responses.into(),
            seen: Vec::new(),
        }));
        let shared = script.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let response = {
                let mut script = shared.lock().unwrap();
                script.seen.push(request.uri().to_string());
                script.responses.pop_front()
            };
            async move {
                let Some((code, body)) = response else {
                    std::future::pending().await
                };
                let body = match body.as_str() {
                    SILENCE => StreamBody::new(futures::stream::pending()).boxed_unsync(),
                    _ => Full::new(Bytes::from(body)).boxed_unsync(),
                };
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        let client = RestClient::new(kube::Client::new(service, "default"));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
        Self {
            script,
            factory,
            stop,
            tasks,
        }
    }

    /// Creates a server that rejects streaming lists and then sends these responses.
    fn paged(responses: Vec<(u16, String)>) -> Self {
        let mut all = vec![(400, status(400))];
        all.extend(responses);
        Self::new(all)
    }

    fn start(&self) -> (Lister<ConfigMap>, Listener) {
        let lister = self.factory.informer::<ConfigMap>();
        let listener = lister.informer().listen();
        (lister, listener)
    }

    async fn stop(self) -> Vec<String> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.script.lock().unwrap().seen.clone()
    }
}

fn map(name: &str, version: u32) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"d","name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#
    )
}

fn list(version: u32, token: &str, items: &[String]) -> (u16, String) {
    let items = items.join(",");
    let meta = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
    (200, format!(r#"{{"metadata":{meta},"items":[{items}]}}"#))
}

fn events(lines: &[(&str, String)]) -> (u16, String) {
    let line =
        |(kind, object): &(&str, String)| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    (200, lines.iter().map(line).collect())
}

/// Returns a streaming list: the objects, the end, and the events after it.
fn stream(version: u32, items: &[String], after: &[(&'static str, String)]) -> (u16, String) {
    let added = items.iter().map(|item| ("ADDED", item.clone()));
    let mut lines: Vec<_> = added.collect();
    lines.push(("BOOKMARK", end(version)));
    lines.extend(after.iter().cloned());
    events(&lines)
}

/// Returns the object of the bookmark that ends a streaming list.
fn end(version: u32) -> String {
    format!(
        r#"{{"metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#
    )
}

fn status(code: u16) -> String {
    format!(r#"{{"kind":"Status","code":{code},"message":"as scripted","reason":"Scripted"}}"#)
}

/// Returns the events until none arrives, as `name old>new` or `synced`.
async fn received(listener: &mut Listener) -> Vec<String> {
    let version = |object: Option<crate::Stored>| {
        let version = object.and_then(|o| o.meta().resource_version().map(String::from));
        version.unwrap_or_default()
    };
    let mut received = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(1), listener.recv()).await {
        received.push(match event {
            Event::Synced => "synced".to_owned(),
            Event::Delta(delta) => {
                format!(
                    "{} {}>{}",
                    delta.key.name,
                    version(delta.old),
                    version(delta.new)
                )
            }
        });
    }
    received
}

#[tokio::test(start_paused = true)]
async fn a_list_is_streamed_and_the_watch_continues() {
    let server = Server::new(vec![stream(
        9,
        &[map("a", 1), map("b", 2)],
        &[
            ("MODIFIED", map("a", 10)),
            ("DELETED", map("b", 11)),
            ("BOOKMARK", map("", 12)),
        ],
    )]);
    let (lister, mut listener) = server.start();
    assert_eq!(received(&mut listener).await, ["a >10", "b 2>", "synced"]);
    assert_eq!(lister.len(), 1);
    let seen = server.stop().await;
    assert!(
        seen[0].starts_with("/api/v1/configmaps?watch=true&allowWatchBookmarks=true&"),
        "{}",
        seen[0]
    );
    assert!(
        seen[0].ends_with("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        "a quorum read: {}",
        seen[0]
    );
    assert!(seen[1].ends_with("&resourceVersion=12"), "{}", seen[1]);
    assert!(!seen[1].contains("sendInitialEvents"), "{}", seen[1]);
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_during_a_streaming_list_is_not_listed() {
    let server = Server::new(vec![events(&[
        ("ADDED", map("a", 1)),
        ("ADDED", map("b", 2)),
        ("DELETED", map("a", 3)),
        ("MODIFIED", map("b", 4)),
        ("BOOKMARK", end(4)),
    ])]);
    let (lister, mut listener) = server.start();
    assert_eq!(received(&mut listener).await.last().unwrap(), "synced");
    assert!(lister.get(&("d", "a").into()).unwrap().is_none());
    let b = lister.get(&("d", "b").into()).unwrap().unwrap();
    assert_eq!(b.metadata.resource_version.as_deref(), Some("4"));
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_in_pages_and_that_is_remembered() {
    let server = Server::paged(vec![
        list(9, "more", &[map("a", 1)]),
        list(9, "", &[map("b", 2)]),
        events(&[("ADDED", map("c", 10)), ("ERROR", status(410))]),
        list(12, "", &[map("b", 2)]),
    ]);
    let (lister, _listener) = server.start();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(lister.len(), 1);
    let seen = server.stop().await;
    assert_eq!(seen[1], "/api/v1/configmaps?limit=500");
    assert_eq!(seen[2], "/api/v1/configmaps?limit=500&continue=more");
    assert!(seen[3].ends_with("&resourceVersion=9"), "{}", seen[3]);
    assert_eq!(
        seen[4],
        "/api/v1/configmaps?limit=500&resourceVersion=10&resourceVersionMatch=NotOlderThan",
        "not older than what was seen"
    );
}

/// A server that does not know streaming lists treats the request as a plain watch.
async fn check_ignored(responses: Vec<(u16, String)>, pause: Duration) {
    let mut responses = responses;
    responses.push(list(9, "", &[map("a", 1)]));
    let server = Server::new(responses);
    let (lister, _listener) = server.start();
    let started = Instant::now();
    lister.informer().wait_for_sync().await;
    assert!(started.elapsed() <= pause, "{:?}", started.elapsed());
    assert_eq!(lister.len(), 1);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_streaming_lists_is_noticed_by_its_bookmarks() {
    let plain = events(&[("ADDED", map("a", 1)), ("BOOKMARK", map("", 9))]);
    check_ignored(vec![plain], Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_streaming_lists_is_noticed_by_its_silence() {
    check_ignored(vec![(200, SILENCE.to_owned())], Duration::from_secs(31)).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_completes_a_streaming_list_is_listed_in_pages() {
    let unended = || events(&[("ADDED", map("a", 1))]);
    check_ignored(vec![unended(), unended()], Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_page_is_requested_again() {
    let server = Server::paged(vec![
        list(9, "more", &[map("a", 1)]),
        (503, status(503)),
        list(9, "", &[map("b", 2)]),
    ]);
    let (lister, _listener) = server.start();
    lister.informer().wait_for_sync().await;
    assert_eq!(lister.len(), 2);
    let seen = server.stop().await;
    assert_eq!(seen[2], seen[3]);
}

#[tokio::test(start_paused = true)]
async fn a_version_of_the_future_is_listed_anew() {
    let too_large = r#"{"kind":"Status","code":504,"reason":"Timeout","details":
        {"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#;
    let server = Server::new(vec![
        stream(900, &[map("a", 800)], &[("ERROR", status(410))]),
        (504, too_large.replace('\n', "")),
        stream(7, &[map("a", 5)], &[]),
    ]);
    let (lister, mut listener) = server.start();
    assert_eq!(received(&mut listener).await, ["a >5", "synced"]);
    assert_eq!(lister.len(), 1);
    let seen = server.stop().await;
    assert!(seen[1].ends_with("&resourceVersion=900"), "{}", seen[1]);
    assert!(!seen[2].contains("&resourceVersion="), "{}", seen[2]);
}

#[tokio::test(start_paused = true)]
async fn decreasing_versions_are_those_of_a_restored_cluster() {
    let server = Server::new(vec![
        stream(900, &[map("a", 800)], &[("BOOKMARK", map("", 20))]),
        stream(20, &[map("b", 5)], &[]),
    ]);
    let (lister, _listener) = server.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(lister.get(&("d", "a").into()).unwrap().is_none());
    assert!(lister.get(&("d", "b").into()).unwrap().is_some());
    let seen = server.stop().await;
    assert!(!seen[1].contains("&resourceVersion="), "{}", seen[1]);
}

#[tokio::test(start_paused = true)]
async fn expired_credentials_keep_the_store_and_recover() {
    let mut responses = vec![stream(5, &[map("a", 1)], &[])];
    responses.extend((0..4).map(|_| (401, status(401))));
    responses.push(events(&[("MODIFIED", map("a", 6))]));
    responses.push((200, SILENCE.to_owned()));
    let server = Server::new(responses);
    let (lister, mut listener) = server.start();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(lister.len(), 1);
    assert!(lister.informer().last_error().unwrap().contains("401"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(received(&mut listener).await, ["a >6", "synced"]);
    assert!(lister.informer().last_error().is_none());
    let seen = server.stop().await;
    let lists = |uri: &&String| uri.contains("sendInitialEvents");
    assert_eq!(seen.iter().filter(lists).count(), 1, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_nameless_object_affects_no_other() {
    let server = Server::new(vec![stream(
        5,
        &[map("a", 1), "[]".to_owned(), map("b", 2)],
        &[("MODIFIED", "5".to_owned()), ("MODIFIED", map("b", 6))],
    )]);
    let (lister, _listener) = server.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(lister.len(), 2);
    let seen = server.stop().await;
    assert!(seen[1].ends_with("&resourceVersion=6"), "{}", seen[1]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_lists_again_and_delivers_the_missed_changes() {
    let server = Server::paged(vec![
        list(
            5,
            "",
            &[map("kept", 1), map("changed", 2), map("deleted", 3)],
        ),
        (429, status(429)), // a pause, in which the first list is read
        events(&[("ERROR", status(410))]),
        list(9, "", &[map("kept", 1), map("changed", 8), map("new", 9)]),
    ]);
    let (lister, mut listener) = server.start();
    lister.informer().wait_for_sync().await;
    for _ in 0..3 {
        listener.recv().await;
    }
    assert!(matches!(listener.recv().await, Event::Synced));
    // The pause lasts up to 1.6 s.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut missed = received(&mut listener).await;
    missed.sort();
    assert_eq!(missed, ["changed 2>8", "deleted 3>", "new >9"]);
    assert!(lister.get(&("d", "deleted").into()).unwrap().is_none());
    let seen = server.stop().await;
    assert!(seen[4].contains("limit=500"), "{}", seen[4]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_list_is_retried_after_a_pause() {
    // A client that may not watch may still be allowed to list.
    let server = Server::new(vec![
        (403, status(403)),
        (403, status(403)),
        stream(1, &[], &[]),
    ]);
    let started = Instant::now();
    let (lister, _listener) = server.start();
    lister.informer().wait_for_sync().await;
    let waited = started.elapsed();
    assert!(
        waited >= Duration::from_millis(800) && waited <= Duration::from_secs(2),
        "{waited:?}"
    );
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_resumes_without_a_list() {
    let server = Server::paged(vec![list(5, "", &[]), (429, status(429)), events(&[])]);
    let (lister, _listener) = server.start();
    lister.informer().wait_for_sync().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let seen = server.stop().await;
    let lists = seen
        .iter()
        .filter(|uri| !uri.contains("watch=true"))
        .count();
    assert_eq!(lists, 1, "{seen:?}");
    assert!(seen.len() >= 4);
}

#[tokio::test(start_paused = true)]
async fn an_expired_continue_token_takes_everything_at_once() {
    let server = Server::paged(vec![
        list(5, "more", &[map("a", 1)]),
        (410, status(410)),
        list(6, "", &[map("a", 1), map("b", 2)]),
    ]);
    let (lister, _listener) = server.start();
    lister.informer().wait_for_sync().await;
    assert_eq!(lister.len(), 2);
    let seen = server.stop().await;
    assert_eq!(seen[3], "/api/v1/configmaps");
}

#[tokio::test(start_paused = true)]
async fn one_unreadable_object_affects_no_other() {
    let broken = r#"{"metadata":{"namespace":"d","name":"broken"},"data":5}"#.to_owned();
    let server = Server::new(vec![stream(5, &[map("a", 1), broken, map("b", 2)], &[])]);
    let (lister, _listener) = server.start();
    lister.informer().wait_for_sync().await;
    assert_eq!(lister.list(&().into()).len(), 2);
    let error = lister.get(&("d", "broken").into()).unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_list_is_named() {
    let server = Server::new(Vec::new());
    let (_lister, _listener) = server.start();
    let error = server
        .factory
        .wait_for_sync(Duration::from_secs(5))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache has no complete list of ConfigMap after 5 s"
    );
    server.stop().await;
}

/// Every list succeeds but no watch after it continues: checks how often that is retried at once.
async fn check_relists_are_paced(watch: (u16, String)) {
    let responses = (0..1000).flat_map(|n| [list(n, "", &[map("a", 1)]), watch.clone()]);
    let server = Server::paged(responses.collect());
    let (lister, _listener) = server.start();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(lister.informer().last_error().is_some());
    let seen = server.stop().await;
    assert_eq!(seen.len(), 5, "one relist at once, then a pause: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn relists_are_paced_when_every_watch_is_expired() {
    check_relists_are_paced((410, status(410))).await;
}

#[tokio::test(start_paused = true)]
async fn relists_are_paced_when_every_watch_ends_in_an_error() {
    check_relists_are_paced(events(&[("ERROR", status(400))])).await;
}

#[tokio::test(start_paused = true)]
async fn an_internal_error_is_resumed_for_a_minute_and_then_listed_anew() {
    let failing = (0..1000).map(|_| events(&[("ERROR", status(500))]));
    let mut responses = vec![stream(5, &[map("a", 1)], &[])];
    responses.extend(failing);
    let server = Server::new(responses);
    let (_lister, _listener) = server.start();
    tokio::time::sleep(Duration::from_secs(50)).await;
    let lists = || {
        let script = server.script.lock().unwrap();
        let lists = |uri: &&String| uri.contains("sendInitialEvents");
        script.seen.iter().filter(lists).count()
    };
    assert_eq!(lists(), 1);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(lists() > 1);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn relists_are_paced_when_no_event_can_be_read() {
    check_relists_are_paced(events(&[("UNHEARD-OF", map("a", 2))])).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_restarted() {
    let silence = || (200, SILENCE.to_owned());
    let server = Server::paged(vec![list(9, "", &[]), silence(), silence()]);
    let (_lister, _listener) = server.start();
    tokio::time::sleep(Duration::from_secs(4 * 60)).await;
    let seen = server.stop().await;
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen[3].ends_with("&resourceVersion=9"), "{}", seen[3]);
}

#[tokio::test(start_paused = true)]
async fn an_informer_with_a_transform_is_not_shared() {
    let server = Server::new(Vec::new());
    let factory = &server.factory;
    let options = InformerOptions::default().transform(|_| {});
    let stripped = factory.informer_with::<ConfigMap>(options.clone());
    assert!(factory.started::<ConfigMap>().is_none());
    let whole = factory.informer_with::<ConfigMap>(InformerOptions::default().memory_budget(1));
    assert!(
        factory.started::<ConfigMap>().is_some(),
        "it has the whole kind"
    );
    let again = factory.informer_with::<ConfigMap>(options);
    assert_eq!(
        server.tasks.len(),
        2,
        "the same transform, the same informer"
    );
    drop((stripped, whole, again));
    server.stop().await;
}
