use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::core::ObjectMeta;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::EventApi;

/// API server that stores events.
#[derive(Clone, Default)]
struct Api {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    posts: Arc<Mutex<Vec<(Duration, String)>>>,
    is_down: Arc<Mutex<bool>>,
    has_no_events_group: bool,
}

impl Api {
    fn start(&self, api: EventApi) -> Poster {
        let (server, origin) = (self.clone(), Instant::now());
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.respond(origin.elapsed(), request).await }
        });
        let client = RestClient::new(kube::Client::new(service, "default"));
        let metrics = EventMetrics::default();
        let (recorder, poster) = event_recorder(client, Reporter::new("op", api), metrics.clone());
        let stop = CancellationToken::new();
        let mut posting = JoinSet::new();
        posting.spawn(poster.run(stop.clone()));
        Poster {
            recorder,
            metrics,
            stop,
            posting,
        }
    }

    async fn respond(
        &self,
        now: Duration,
        request: Request<Body>,
    ) -> Result<Response<Body>, std::io::Error> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        self.posts
            .lock()
            .push((now, format!("{} {path}", head.method)));
        if *self.is_down.lock() {
            return Err(std::io::Error::other("down"));
        }
        let body = body.collect().await.unwrap_or_default().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut objects = self.objects.lock();
        let body = match head.method {
            _ if self.has_no_events_group && path.contains("events.k8s.io") => None,
            Method::GET => Some(json!({})),
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                objects.insert(name.to_owned(), body.clone());
                Some(body)
            }
            _ => path.rsplit('/').next().and_then(|name| {
                let object = objects.get_mut(name)?;
                for (field, value) in body.as_object()? {
                    object[field] = value.clone();
                }
                Some(object.clone())
            }),
        };
        Ok(match body {
            Some(body) => Response::new(Body::from(body.to_string().into_bytes())),
            None => {
                let status = json!({"kind": "Status", "status": "Failure", "code": 404,
                    "message": "the server could not find the requested resource",
                    "reason": "NotFound"});
                let mut response = Response::new(Body::from(status.to_string().into_bytes()));
                *response.status_mut() = http::StatusCode::NOT_FOUND;
                response
            }
        })
    }

    fn object(&self) -> Value {
        self.objects
            .lock()
            .values()
            .next()
            .cloned()
            .unwrap_or_default()
    }
}

struct Poster {
    recorder: EventRecorder,
    metrics: EventMetrics,
    stop: CancellationToken,
    posting: JoinSet<()>,
}

impl Poster {
    fn record(&self, reason: &str, note: &str) {
        self.record_about("a", reason, note);
    }

    fn record_about(&self, name: &str, reason: &str, note: &str) {
        let metadata = ObjectMeta {
            name: Some(name.into()),
            uid: Some("u".into()),
            ..Default::default()
        };
        let about = ObjectReference::of(&ConfigMap {
            metadata,
            ..Default::default()
        });
        let (reason, note) = (reason.to_owned(), note.to_owned());
        self.recorder
            .record(about, EventType::Warning, reason, note);
    }

    fn dropped(&self, reason: &'static str) -> u64 {
        self.metrics.dropped(reason)
    }

    async fn stop(&mut self) {
        self.stop.cancel();
        self.posting.join_next().await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_has_the_fields_that_the_api_requires() {
    let api = Api::default();
    let mut poster = api.start(EventApi::EventsV1);
    poster.record("Broken", &"x".repeat(2000));
    poster.record("Broken", &"x".repeat(2000));
    poster.stop().await;
    let event = api.object();
    assert_eq!(event["apiVersion"], "events.k8s.io/v1");
    assert_eq!(event["metadata"]["namespace"], "default");
    assert_eq!(event["note"].as_str().unwrap().len(), 1024);
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reportingController"], "op");
    assert_eq!(event["regarding"]["uid"], "u");
    assert!(event["regarding"].get("namespace").is_none());
    assert_eq!(event["series"]["count"], 2);
    // Exactly six digits after the decimal point.
    assert_eq!(event["eventTime"].as_str().unwrap().len(), 27);
    assert_eq!(
        event["series"]["lastObservedTime"].as_str().unwrap().len(),
        27
    );
    assert_eq!(api.posts.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn core_events_have_a_count() {
    let api = Api::default();
    let mut poster = api.start(EventApi::CoreV1);
    for _ in 0..3 {
        poster.record("Broken", "a leg");
    }
    poster.stop().await;
    let event = api.object();
    assert_eq!(event["apiVersion"], "v1");
    assert_eq!(event["count"], 3);
    assert_eq!(event["message"], "a leg");
    assert_eq!(event["involvedObject"]["name"], "a");
    assert_eq!(event["source"]["component"], "op");
    assert_eq!(event["firstTimestamp"].as_str().unwrap().len(), 20);
    let methods: Vec<_> = api
        .posts
        .lock()
        .iter()
        .map(|(_, call)| call.clone())
        .collect();
    assert_eq!(methods[0], "POST /api/v1/namespaces/default/events");
    assert!(methods[1].starts_with("PATCH /api/v1/namespaces/default/events/a."));
    assert_eq!(methods.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_events_group_gets_core_events() {
    let api = Api {
        has_no_events_group: true,
        ..Api::default()
    };
    let mut poster = api.start(EventApi::EventsV1);
    poster.record("Broken", "a leg");
    poster.record("Broken", "an arm");
    poster.stop().await;
    assert_eq!(api.object()["apiVersion"], "v1");
    let calls: Vec<_> = api
        .posts
        .lock()
        .iter()
        .map(|(_, call)| call.clone())
        .collect();
    let core = "POST /api/v1/namespaces/default/events";
    let group = "POST /apis/events.k8s.io/v1/namespaces/default/events";
    assert_eq!(calls, [group, "GET /apis/events.k8s.io/v1", core, core]);
}

#[tokio::test(start_paused = true)]
async fn a_repetition_of_an_expired_event_is_created_again() {
    let api = Api::default();
    let mut poster = api.start(EventApi::EventsV1);
    poster.record("Broken", "a leg");
    while api.objects.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    api.objects.lock().clear();
    poster.record("Broken", "a leg");
    poster.stop().await;
    assert_eq!(api.object()["series"]["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_attempted_12_times() {
    let api = Api::default();
    *api.is_down.lock() = true;
    let mut poster = api.start(EventApi::EventsV1);
    poster.record("Broken", "a leg");
    while poster.dropped("unreachable") == 0 {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    let at: Vec<_> = api
        .posts
        .lock()
        .iter()
        .map(|(at, _)| at.as_secs())
        .collect();
    assert_eq!(at.len(), 12);
    // The first pause is random, so that many processes do not retry at the same time.
    assert!(at[1] <= 11, "{at:?}");
    assert!((100..=125).contains(&at[11]), "{at:?}");
    *api.is_down.lock() = false;
    poster.record("Broken", "an arm");
    poster.stop().await;
    assert_eq!(api.object()["note"], "an arm");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_server_that_is_down() {
    let api = Api::default();
    *api.is_down.lock() = true;
    let mut poster = api.start(EventApi::EventsV1);
    let start = Instant::now();
    poster.record("Broken", "a leg");
    poster.record("Broken", "an arm");
    poster.stop().await;
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(poster.dropped("unreachable"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts() {
    let api = Api::default();
    let poster = api.start(EventApi::EventsV1);
    // Nothing is posted until this test awaits.
    for number in 0..QUEUE_CAPACITY + 5 {
        poster.record(&format!("Reason{number}"), "a");
    }
    assert_eq!(poster.dropped("full"), 5);
    let mut registry = Registry::default();
    poster.metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let line = r#"opkit_events_dropped_total{reason="full"} 5"#;
    assert!(text.contains(line), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_fence_rejects_is_dropped() {
    let fence = opkit_client::Fence::new();
    let service = tower::service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    let client = fence.layer(kube::Client::new(service, "default"));
    let metrics = EventMetrics::default();
    let reporter = Reporter::new("op", EventApi::EventsV1);
    let (recorder, poster) = event_recorder(RestClient::new(client), reporter, metrics.clone());
    let stop = CancellationToken::new();
    let mut poster = Poster {
        recorder,
        metrics,
        posting: [poster.run(stop.clone())].into_iter().collect(),
        stop,
    };
    poster.record("Broken", "a leg");
    poster.stop().await;
    assert_eq!(poster.dropped("fenced"), 1);
}

/// Checks the API server's rules: no event is rejected because of a long name or reason.
#[tokio::test(start_paused = true)]
async fn an_event_keeps_to_the_limits_of_the_api() {
    let dashes = format!("{}-{}", "a".repeat(199), "b".repeat(53));
    let dots = format!("{}.{}", "a".repeat(199), "b".repeat(53));
    let names = [
        "a",
        "a.b-c",
        "system:controller:a",
        "A_b",
        "::",
        &dashes,
        &dots,
    ];
    for name in names {
        let api = Api::default();
        let mut poster = api.start(EventApi::EventsV1);
        poster.record_about(name, &"\u{e9}".repeat(100), "a leg");
        poster.stop().await;
        let event = api.object();
        let called = event["metadata"]["name"].as_str().unwrap();
        assert!(called.len() <= 253, "{called}");
        for label in called.split('.') {
            let is_inner = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
            assert!(
                label.starts_with(is_inner) && label.ends_with(is_inner),
                "{called}"
            );
            let is_allowed = |char: char| is_inner(char) || char == '-';
            assert!(label.chars().all(is_allowed), "{called}");
        }
        assert_eq!(event["regarding"]["name"], name);
        assert_eq!(event["reason"], "\u{e9}".repeat(64), "at most 128 bytes");
    }
    // A valid name of an object is kept, because users search for it.
    let api = Api::default();
    let mut poster = api.start(EventApi::EventsV1);
    poster.record_about("a.b-c", "Broken", "a leg");
    poster.stop().await;
    let event = api.object();
    assert!(
        event["metadata"]["name"]
            .as_str()
            .unwrap()
            .starts_with("a.b-c.")
    );
}

#[test]
fn a_reporter_keeps_to_the_limits_of_the_api() {
    let long = format!("{}-{}", "o".repeat(62), "p".repeat(20));
    let reporter = Reporter::new(&long, EventApi::EventsV1);
    assert_eq!(reporter.controller, "o".repeat(62));
    assert!(reporter.instance.len() <= 128);
}

#[test]
fn a_note_is_truncated_at_a_character_boundary() {
    assert_eq!(truncate("short", 1024), "short");
    assert_eq!(truncate("xy\u{e9}", 4), "xy\u{e9}");
    assert_eq!(truncate("xy\u{e9}", 3), "xy");
    assert_eq!(truncate("\u{1f916}", 3), "");
}
