use std::convert::Infallible;
use std::sync::atomic::AtomicUsize;

use http::{Method, Response};
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::{ClientOptions, Kind, Patch, RateLimit, RestClient, WriteOptions};

const SECOND: Duration = Duration::from_secs(1);

/// Creates a client of a service that counts requests and responds with `code`. Also returns the
/// counter.
fn counted(options: ClientOptions, code: u16) -> (kube::Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        counter.fetch_add(1, SeqCst);
        let response = Response::builder().status(code).header("retry-after", "3");
        async move { Ok::<_, Infallible>(response.body(Body::from(b"{}".to_vec())).unwrap()) }
    });
    (options.in_process(service, "default"), count)
}

fn request(method: Method, uri: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(uri);
    request.body(Body::from(b"{}".to_vec())).unwrap()
}

#[test]
fn a_deadline_belongs_to_its_term() {
    let fence = Fence::new();
    let (one, two) = (fence.for_term(1), fence.for_term(2));
    let at = |seconds: u64| SECOND * seconds as u32;
    assert_eq!(fence.check_at(at(0)), Err(Fenced::NotLeading));
    assert_eq!(one.check_at(at(0)), Err(Fenced::TermOver { term: 1 }));

    fence.open(1, at(10));
    assert_eq!(fence.check_at(at(9)), Ok(()));
    assert_eq!(one.check_at(at(9)), Ok(()));
    assert_eq!(two.check_at(at(9)), Err(Fenced::TermOver { term: 2 }));
    let late = Err(Fenced::DeadlinePassed { term: 1 });
    assert_eq!(one.check_at(at(10)), late);
    assert_eq!(fence.check_at(at(10)), late);
    fence.open(1, at(12));
    assert_eq!(one.check_at(at(11)), Ok(()));

    fence.open(2, at(20));
    assert_eq!(one.check_at(at(11)), Err(Fenced::TermOver { term: 1 }));
    assert_eq!(two.check_at(at(11)), Ok(()));
    // An earlier term is not opened again.
    fence.open(1, at(30));
    assert_eq!(one.check_at(at(11)), Err(Fenced::TermOver { term: 1 }));
    assert_eq!(
        two.check_at(at(25)),
        Err(Fenced::DeadlinePassed { term: 2 })
    );
    fence.close();
    assert_eq!(two.check_at(at(11)), Err(Fenced::TermOver { term: 2 }));
}

#[tokio::test(start_paused = true)]
async fn writes_are_held_back_and_reads_are_not() {
    let fence = Fence::new();
    let (client, count) = counted(ClientOptions::default(), 200);
    let client = fence.layer(client);
    let pods = "/api/v1/namespaces/shops/pods";
    let check = async |method: Method, uri: &str, passes: bool| {
        let before = count.load(SeqCst);
        let outcome = client.send(request(method.clone(), uri)).await;
        assert_eq!(outcome.is_ok(), passes, "{method} {uri}");
        let after = count.load(SeqCst);
        assert_eq!(after - before, usize::from(passes), "{method} {uri}");
        if let Err(error) = outcome {
            assert_eq!(Fenced::of(&error), Some(Fenced::NotLeading));
        }
    };
    check(Method::GET, pods, true).await;
    check(Method::GET, &format!("{pods}?watch=true"), true).await;
    let one = format!("{pods}/one");
    for method in [Method::PUT, Method::PATCH, Method::DELETE] {
        check(method, &one, false).await;
    }
    check(Method::POST, pods, false).await;
    check(Method::DELETE, pods, false).await;
    check(Method::PATCH, &format!("{one}?dryRun=All"), true).await;
    check(Method::POST, &format!("{pods}?dryRun=All"), true).await;
    // If a deletion has options in its body, the server ignores the query.
    check(Method::DELETE, &format!("{one}?dryRun=All"), false).await;
    check(Method::DELETE, &format!("{pods}?dryRun=All"), false).await;
    // These subresources count as writes regardless of method and query.
    for subresource in ["exec", "attach", "portforward", "proxy", "proxy/a"] {
        let uri = format!("{one}/{subresource}?dryRun=All");
        check(Method::POST, &uri, false).await;
        check(Method::GET, &uri, false).await;
    }
    check(Method::GET, &format!("{one}/log"), true).await;
    check(Method::GET, &format!("{one}/exec?command=rm"), false).await;
    check(Method::GET, &format!("{one}/proxy/a/b"), false).await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    check(Method::POST, reviews, true).await;
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    check(Method::POST, reviews, true).await;
    fence.open(1, fence.now() + SECOND);
    check(Method::POST, pods, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_for_the_rate_limit_is_checked_again() {
    let options = ClientOptions {
        rate_limit: Some(RateLimit { qps: 0.1, burst: 1 }),
        ..Default::default()
    };
    let (client, count) = counted(options, 200);
    let fence = Fence::new();
    fence.open(1, fence.now() + SECOND * 5);
    let client = fence.layer(client);
    client
        .send(request(Method::POST, "/api/v1/pods"))
        .await
        .unwrap();
    let error = client.send(request(Method::POST, "/api/v1/pods")).await;
    let late = Some(Fenced::DeadlinePassed { term: 1 });
    assert_eq!(Fenced::of(&error.unwrap_err()), late);
    assert_eq!(count.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retried_write_is_checked_again() {
    let (client, count) = counted(ClientOptions::default(), 429);
    let fence = Fence::new();
    fence.open(1, fence.now() + SECOND * 5);
    let client = fence.layer(client);
    let error = client.send(request(Method::POST, "/api/v1/pods")).await;
    let late = Some(Fenced::DeadlinePassed { term: 1 });
    assert_eq!(Fenced::of(&error.unwrap_err()), late);
    // At 0 s and at 3 s, and not at 6 s.
    assert_eq!(count.load(SeqCst), 2);
}

/// Requests of a client behind two fences, such as those of a leader and of a shard, pass both.
#[tokio::test(start_paused = true)]
async fn a_write_passes_every_fence() {
    let (client, count) = counted(ClientOptions::default(), 429);
    let (outer, inner) = (Fence::new(), Fence::new());
    outer.open(1, outer.now() + SECOND * 5);
    inner.open(1, inner.now() + SECOND * 60);
    let client = outer.layer(inner.layer(client));
    let error = client.send(request(Method::POST, "/api/v1/pods")).await;
    let late = Some(Fenced::DeadlinePassed { term: 1 });
    assert_eq!(Fenced::of(&error.unwrap_err()), late);
    assert_eq!(count.load(SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn the_error_names_the_call() {
    let (client, _) = counted(ClientOptions::default(), 200);
    let client = RestClient::new(Fence::new().for_term(3).layer(client));
    let kind = Kind::of::<ConfigMap>();
    let (key, patch) = (("shops", "web").into(), serde_json::json!({}));
    let (patch, options) = (Patch::Merge(&patch), WriteOptions::for_manager("shop"));
    let patched = client.patch(&kind, &key, None, patch, &options);
    let error = patched.await.unwrap_err();
    assert!(error.is_fenced() && !error.is_unreachable() && !error.is_conflict());
    assert_eq!(
        crate::one_line(&error),
        "cannot patch ConfigMap shops/web: not the leader: term 3, in which this work started, is over"
    );
}

/// A client that was not created by `ClientOptions` has no last check.
#[tokio::test(start_paused = true)]
async fn any_client_has_the_first_check() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        count.fetch_add(1, SeqCst);
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let fence = Fence::new();
    let client = fence.layer(kube::Client::new(service, "default"));
    let path = "/api/v1/namespaces/d/pods/one";
    let error = client
        .send(request(Method::DELETE, path))
        .await
        .unwrap_err();
    assert!(Fenced::of(&error).is_some(), "{error}");
    assert_eq!(sent.load(SeqCst), 0);
    fence.open(1, Duration::MAX);
    client.send(request(Method::DELETE, path)).await.unwrap();
    assert_eq!(sent.load(SeqCst), 1);
}
