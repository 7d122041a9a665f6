use std::convert::Infallible;

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// A server with pods in the core group and robots in another group. Counts requests.
#[derive(Clone, Default)]
struct Server {
    aggregates: bool,
    broken: bool,
    robots: Arc<Mutex<bool>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let accept = request.headers()["accept"].to_str().unwrap();
            let aggregated = server.aggregates && accept.contains("APIGroupDiscoveryList");
            let path = request.uri().path().to_owned();
            let (code, body) = match server.response(&path, aggregated) {
                Some(body) => (200, body),
                None => (
                    503,
                    json!({"kind": "Status", "code": 503, "message": "down", "reason": "ServiceUnavailable"}),
                ),
            };
            server.asked.lock().push(path);
            let body = Body::from(body.to_string().into_bytes());
            async move { Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap()) }
        });
        kube::Client::new(service, "default")
    }

    fn response(&self, path: &str, aggregated: bool) -> Option<Value> {
        let robots = *self.robots.lock();
        let pod = json!({"resource": "pods", "singularResource": "pod", "scope": "Namespaced",
            "responseKind": {"group": "", "version": "v1", "kind": "Pod"}, "verbs": ["get"], "shortNames": ["po"],
            "categories": ["all"], "subresources": [{"subresource": "log", "verbs": ["get"]}]});
        let robot = json!({"resource": "robots", "singularResource": "robot", "scope": "Cluster",
            "responseKind": {"group": "a.dev", "version": "v1", "kind": "Robot"}, "verbs": ["get"]});
        let freshness = if self.broken { "Stale" } else { "Current" };
        Some(match path {
            "/api" if aggregated => json!({"kind": "APIGroupDiscoveryList", "items": [
                {"metadata": {"name": null}, "versions": [{"version": "v1", "freshness": "Current", "resources": [pod]}]}]}),
            "/apis" if aggregated && robots => json!({"kind": "APIGroupDiscoveryList", "items": [
                {"metadata": {"name": "a.dev"}, "versions": [{"version": "v1", "freshness": freshness, "resources": [robot]}]}]}),
            "/apis" if aggregated => json!({"kind": "APIGroupDiscoveryList", "items": []}),
            "/api" => {
                json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
            }
            "/apis" => {
                let version = |version: &str| json!({"groupVersion": format!("a.dev/{version}"), "version": version});
                let groups = json!([{"name": "a.dev", "versions": [version("v2"), version("v1")], "preferredVersion": version("v1")}]);
                json!({"kind": "APIGroupList", "groups": if robots { groups } else { json!([]) }})
            }
            "/api/v1" => json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["get"], "shortNames": ["po"], "categories": ["all"]},
                {"name": "pods/log", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"]}]}),
            "/apis/a.dev/v1" | "/apis/a.dev/v2" if !self.broken => {
                json!({"kind": "APIResourceList", "groupVersion": path, "resources": [
                {"name": "robots", "singularName": "robot", "namespaced": false, "kind": "Robot", "verbs": ["get"]}]})
            }
            _ => return None,
        })
    }

    fn requests(&self) -> usize {
        let asked = self.asked.lock();
        asked.iter().filter(|path| *path == "/apis").count()
    }
}

#[tokio::test]
async fn both_forms_of_discovery_find_the_same() {
    for aggregates in [true, false] {
        let server = Server {
            aggregates,
            ..Default::default()
        };
        *server.robots.lock() = true;
        let found = Discovery::new(server.client()).get().await.unwrap();
        assert!(found.failures.is_empty());
        let pods = found.resource("", "v1", "pods").unwrap();
        assert!(pods.namespaced && pods.has_subresource("log") && pods.has_verb("get"));
        assert_eq!(
            (&pods.short_names, &pods.categories),
            (&vec!["po".to_owned()], &vec!["all".to_owned()])
        );
        assert!(!found.resource("a.dev", "v1", "robots").unwrap().namespaced);
        assert!(found.has_group("") && found.has_group("a.dev") && !found.has_group("b.dev"));
        if !aggregates {
            assert_eq!(
                found.group_versions,
                ["v1", "a.dev/v1", "a.dev/v2"],
                "the preferred one first"
            );
        }
    }
}

#[tokio::test]
async fn a_broken_group_is_reported_and_the_others_are_found() {
    for aggregates in [true, false] {
        let server = Server {
            aggregates,
            broken: true,
            ..Default::default()
        };
        *server.robots.lock() = true;
        let found = Discovery::new(server.client()).get().await.unwrap();
        assert!(found.resource("", "v1", "pods").is_some());
        assert_eq!(found.failures[0].group_version, "a.dev/v1");
    }
}

#[tokio::test]
async fn discovery_is_fetched_once_and_again_on_refresh() {
    let server = Server {
        aggregates: true,
        ..Default::default()
    };
    let discovery = Discovery::new(server.client());
    for _ in 0..3 {
        discovery.get().await.unwrap();
    }
    assert_eq!(server.requests(), 1);
    let together = (0..5).map(|_| discovery.refresh());
    futures::future::join_all(together).await;
    assert_eq!(
        server.requests(),
        3,
        "one asks, and one for all that came after"
    );
    discovery.invalidate();
    discovery.get().await.unwrap();
    assert_eq!(server.requests(), 4);
}

#[tokio::test]
async fn the_disk_spares_other_processes_the_request() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server {
        aggregates: true,
        ..Default::default()
    };
    let process = || Discovery::with_disk(server.client(), DiskCache::at(directory.path()));
    process().get().await.unwrap();
    let second = process();
    let found = second.get().await.unwrap();
    assert!(found.resource("", "v1", "pods").is_some());
    assert_eq!(server.requests(), 1);
    second.invalidate();
    second.get().await.unwrap();
    assert_eq!(server.requests(), 2, "the file is not believed after that");
    *server.robots.lock() = true;
    second.refresh().await.unwrap();
    let found = process().get().await.unwrap();
    assert!(found.has_group("a.dev"), "the file is the newest");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_name_refreshes_discovery_but_not_too_often() {
    let server = Server {
        aggregates: true,
        ..Default::default()
    };
    let mapper = RestMapper::new(server.client());
    assert!(mapper.resource("robots").await.unwrap_err().is_no_match());
    *server.robots.lock() = true;
    let robots = mapper.resource("robots").await.unwrap();
    assert_eq!(robots.to_string(), "robots.v1.a.dev");
    let asked = server.requests();
    for _ in 0..100 {
        mapper.resource("nonsense").await.unwrap_err();
    }
    assert_eq!(server.requests(), asked + 3, "five misses a minute in all");
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    mapper
        .kind("c.dev", "Nothing", Some("v1"))
        .await
        .unwrap_err();
    assert_eq!(server.requests(), asked + 4);
    assert_eq!(mapper.kind("a.dev", "Robot", None).await.unwrap(), robots);
    assert_eq!(mapper.resources("all,robot").await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_refresh_does_not_share_a_fetch_that_started_before_it() {
    let server = Server {
        aggregates: true,
        ..Default::default()
    };
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let (inner, passes) = (server.client(), gate.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, passes) = (inner.clone(), passes.clone());
        async move {
            // The response is created now, and delivered when the gate opens.
            let response = inner.send(request).await.unwrap();
            passes.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(response)
        }
    });
    let discovery = Discovery::new(kube::Client::new(service, "default"));
    let mut first = Box::pin(discovery.refresh());
    gate.add_permits(1);
    // The server has created its response for all groups, but not delivered it yet.
    while server.requests() == 0 {
        assert!(futures::poll!(&mut first).is_pending());
        tokio::task::yield_now().await;
    }
    *server.robots.lock() = true;
    let mut second = Box::pin(discovery.refresh());
    assert!(futures::poll!(&mut second).is_pending());
    gate.add_permits(10);
    let (first, second) = futures::join!(first, second);
    assert!(!first.unwrap().has_group("a.dev"));
    assert!(second.unwrap().has_group("a.dev"));
}
