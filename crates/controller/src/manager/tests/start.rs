//! What a manager checks before it starts.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_missing_watch_permission_is_told_at_the_start() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let inner = server.client();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let inner = inner.clone();
        async move {
            let query = request.uri().query().unwrap_or_default();
            if !query.contains("watch=true") {
                return inner.send(request).await;
            }
            let body =
                r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"no watching"}"#;
            let body = kube::client::Body::from(body.as_bytes().to_vec());
            Ok(http::Response::builder().status(403).body(body).unwrap())
        }
    });
    let client = kube::Client::new(service, "default");
    let manager = Manager::new("test", client, ManagerOptions::default())
        .controller(counting(&Arc::default(), |_| Ok(Action::await_change())));
    let ended = manager.run(CancellationToken::new());
    let ended = tokio::time::timeout(Duration::from_secs(3600), ended).await;
    let error = ended.expect("it does not run deaf").unwrap_err();
    let error = Error::from(error).to_string();
    assert!(
        error.contains("cannot watch configmaps: no watching"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_fails_ends_a_start_that_hangs() {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>(
        )
    });
    let client = kube::Client::new(service, "default");
    let started = tokio::time::Instant::now();
    let error = Manager::new("test", client, ManagerOptions::default())
        .controller(counting(&Arc::default(), |_| Ok(Action::await_change())))
        .runnable(AnyRunnable::server("the feed", |_| async {
            Err(Error::msg("no price"))
        }))
        .run(CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the feed failed");
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn reads_without_a_namespace_say_what_they_mean() {
    use k8s_openapi::api::core::v1::Node;
    let server = Server::new(&["nodes", "configmaps"]);
    server.put("/api/v1/nodes/n", json!({"metadata": {"name": "n"}}));
    server.put(MAP, object("one"));
    server.put(
        "/api/v1/namespaces/e/configmaps/two",
        json!({"metadata": {"namespace": "e", "name": "two"}}),
    );
    async fn of_a_node(_: Arc<Node>, cx: Context) -> Result<Action> {
        cx.get::<ConfigMap>("one")?;
        Ok(Action::await_change())
    }
    let controller = Controller::new(of_a_node).watches::<ConfigMap>(|_, _| Vec::new());
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    let last = run.log.last("node", &"n".into()).unwrap().result.clone();
    assert!(
        last.to_string()
            .ends_with("cannot read ConfigMap one without a namespace: give (namespace, name)"),
        "{last}"
    );
    run.stop().await.unwrap();

    let counts: Arc<Mutex<Vec<usize>>> = Arc::default();
    let seen = counts.clone();
    let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
        if map.metadata.name.as_deref() == Some("one") {
            let all = crate::Selection::default().all_namespaces();
            let count = |maps: Result<Vec<Arc<ConfigMap>>, crate::ReadError>| maps.unwrap().len();
            seen.lock()
                .extend([count(cx.list(())), count(cx.list(all))]);
        }
        async { Ok(Action::await_change()) }
    });
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    assert_eq!(*counts.lock(), [1, 2]);
    run.stop().await.unwrap();
}
