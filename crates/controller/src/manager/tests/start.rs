//! The checks of a manager before it starts.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_missing_watch_permission_is_reported_at_the_start() {
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
    let error = ended
        .expect("it does not run without its watch")
        .unwrap_err();
    let error = Error::from(error).to_string();
    assert!(
        error.contains("cannot watch configmaps: no watching"),
        "{error}"
    );
    assert!(error.contains(r#"verbs ["watch"]"#), "{error}");
}

/// Returns a client of a server that forbids all requests for some kinds.
fn forbids(server: &Server, forbidden: &'static [&'static str]) -> kube::Client {
    let inner = server.client();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let inner = inner.clone();
        async move {
            let path = request.uri().path().to_owned();
            let resource = path.rsplit('/').next().unwrap_or_default();
            let respond = |status: u16, body: String| {
                let body = kube::client::Body::from(body.into_bytes());
                Ok(http::Response::builder().status(status).body(body).unwrap())
            };
            if resource == "selfsubjectaccessreviews" {
                return respond(201, json!({"status": {"allowed": false}}).to_string());
            }
            if forbidden.contains(&resource) {
                let message = format!("{resource} is forbidden: User \"robot\" cannot list it");
                let status = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message});
                return respond(403, status.to_string());
            }
            inner.send(request).await
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn all_missing_permissions_are_in_one_error() {
    let server = Server::new(&["configmaps", "secrets"]);
    let client = forbids(&server, &["configmaps", "secrets"]);
    let create = crate::Permission {
        group: String::new(),
        resource: "secrets".into(),
        verb: "create".into(),
        namespaced: true,
    };
    let options = ManagerOptions {
        permissions: vec![create],
        ..Default::default()
    };
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change())).owns::<Secret>();
    let manager = Manager::new("test", client, options).controller(controller);
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    let error = Error::from(error).to_string();
    for part in [
        "`test manifests`",
        r#"apiGroups [""], resources ["configmaps"], verbs ["list", "watch"], in the whole cluster"#,
        r#"apiGroups [""], resources ["secrets"], verbs ["list", "watch", "create"], in the whole cluster"#,
        r#"User "robot""#,
    ] {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_without_a_domain_does_not_start() {
    let server = Server::new(&["configmaps"]);
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change()));
    let controller = controller.finalizer("cleanup", |_, _| async {
        Ok::<_, Error>(crate::Cleanup::Done)
    });
    let manager = Manager::new("test", server.client(), ManagerOptions::default());
    let ended = manager.controller(controller).run(CancellationToken::new());
    let error = ended.await.unwrap_err().to_string();
    assert!(
        error.starts_with("the finalizer of controller configmap \"cleanup\" is not valid"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_fails_stops_a_start_that_hangs() {
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
async fn reads_without_a_namespace_return_a_clear_error() {
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
        last.to_string().ends_with(
            "cannot read ConfigMap one without a namespace: use (namespace, name) as the key"
        ),
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
        async { Ok::<_, Error>(Action::await_change()) }
    });
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    assert_eq!(*counts.lock(), [1, 2]);
    run.stop().await.unwrap();
}
