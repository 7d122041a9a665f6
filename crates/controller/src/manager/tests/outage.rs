//! A manager while the server is unreachable or does not respond.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::AnyRunnable;

/// Ways in which a server fails.
#[derive(Clone, Copy)]
enum Failing {
    /// Connections are refused.
    Refused,
    /// Every response is an error 500.
    Broken,
    /// No request gets a response.
    Silent,
}

/// Returns a client of `server`, the switch that makes it fail, and its number of requests.
fn failing(
    server: &Server,
    how: Failing,
    fails: fn(&http::Uri) -> bool,
) -> (kube::Client, Arc<AtomicBool>, Arc<AtomicU32>) {
    let (down, sent) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let (inner, is_down, count) = (server.client(), down.clone(), sent.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, is_down, count) = (inner.clone(), is_down.clone(), count.clone());
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            if !is_down.load(Ordering::SeqCst) || !fails(request.uri()) {
                return inner.send(request).await.map_err(tower::BoxError::from);
            }
            match how {
                Failing::Refused => {
                    Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into())
                }
                Failing::Broken => {
                    let body = br#"{"kind":"Status","code":500,"reason":"InternalError"}"#;
                    let body = kube::client::Body::from(body.to_vec());
                    Ok(http::Response::builder().status(500).body(body)?)
                }
                Failing::Silent => std::future::pending().await,
            }
        }
    });
    (kube::Client::new(service, "default"), down, sent)
}

/// Applies a Secret each time, so that each reconcile needs the server.
async fn touch(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    let mut secret = Secret::default();
    secret.metadata.name = Some("child".into());
    secret.type_ = map
        .data
        .as_ref()
        .and_then(|data| data.get("value"))
        .cloned();
    cx.apply(secret).await?;
    Ok(Action::await_change())
}

fn valued(value: &str) -> Value {
    json!({"metadata": object("one")["metadata"], "data": {"value": value}})
}

#[tokio::test(start_paused = true)]
async fn a_manager_survives_ten_minutes_without_a_server_with_few_requests() {
    for how in [Failing::Refused, Failing::Broken, Failing::Silent] {
        let server = Server::new(&["configmaps", "secrets"]);
        server.put(MAP, valued("before"));
        let (client, down, sent) = failing(&server, how, |_| true);
        let controller = Controller::new(touch).owns::<Secret>();
        let run = Run::start_client(client, ManagerOptions::default(), |manager| {
            manager.controller(controller)
        })
        .await;
        run.settle(Duration::from_secs(5)).await;
        assert_eq!(server.get(SECRET).unwrap()["type"], "before");

        down.store(true, Ordering::SeqCst);
        server.cut_watches();
        // There are changes that cannot be reconciled.
        let mut secret = server.get(SECRET).unwrap();
        secret["type"] = json!("drift");
        server.put(SECRET, secret);
        let mut map = server.get(MAP).unwrap();
        map["data"]["value"] = json!("after");
        server.put(MAP, map);
        sent.store(0, Ordering::SeqCst);
        run.settle(Duration::from_secs(600)).await;
        // Two watches back off to 30 s, and the object that cannot be reconciled to a longer delay.
        let requests = sent.load(Ordering::SeqCst);
        assert!(requests < 200, "{requests} requests in ten minutes");

        down.store(false, Ordering::SeqCst);
        // The object that failed waits for its backoff of at most 1000 s.
        run.settle(Duration::from_secs(1000)).await;
        assert_eq!(server.get(SECRET).unwrap()["type"], "after");
        run.stop().await.unwrap();
    }
}

/// Reports whether the request is the list of an informer; the pre-flight lists only one object.
fn is_first_list(uri: &http::Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.contains("limit=500") || query.contains("sendInitialEvents")
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_sync_that_never_completes() {
    let server = Server::new(&["configmaps"]);
    for how in [Failing::Refused, Failing::Broken, Failing::Silent] {
        let (client, down, _) = failing(&server, how, is_first_list);
        down.store(true, Ordering::SeqCst);
        let options = ManagerOptions {
            cache_sync_timeout: Duration::from_secs(24 * 3600),
            ..Default::default()
        };
        let stop = CancellationToken::new();
        let started: Arc<AtomicBool> = Arc::default();
        let starts = started.clone();
        let feed = AnyRunnable::task("feed", move |_| {
            starts.store(true, Ordering::SeqCst);
            async { Ok(()) }
        });
        let manager = Manager::new("test", client, options)
            .runnable(feed)
            .controller(counting(&Arc::default(), |_| Ok(Action::await_change())));
        let mut task = JoinSet::new();
        task.spawn(manager.run(stop.clone()));
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(task.try_join_next().is_none(), "it waits");
        assert!(!started.load(Ordering::SeqCst), "the caches come first");
        let stopped = tokio::time::Instant::now();
        stop.cancel();
        task.join_next().await.unwrap().unwrap().unwrap();
        assert!(stopped.elapsed() < Duration::from_secs(30));
    }
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_takes_too_long_names_the_kind() {
    let server = Server::new(&["configmaps"]);
    let (client, down, _) = failing(&server, Failing::Broken, is_first_list);
    down.store(true, Ordering::SeqCst);
    let manager = Manager::new("test", client, ManagerOptions::default())
        .controller(counting(&Arc::default(), |_| Ok(Action::await_change())));
    let mut task = JoinSet::new();
    task.spawn(manager.run(CancellationToken::new()));
    let began = tokio::time::Instant::now();
    let error = task.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 120);
    let error = opkit_client::one_line(&error);
    assert!(error.contains("ConfigMap"), "{error}");
}
