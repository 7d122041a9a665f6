//! `Context::adopt` of a child that changes constantly, against the test server.

use kube::client::Body;

use super::*;
use crate::ApplyError;

/// Largest number of conflicts. An adoption that continues longer succeeds, and the test fails.
const CONFLICTS: u32 = 50;

/// Adopts a Secret whose apply always fails with a conflict. If `it_changes`, the Secret is changed
/// before each conflict. Returns the error and the number of attempts.
async fn adopt_with_conflicts(it_changes: bool) -> (ApplyError, u32) {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    server.put(SECRET, object("child"));
    let tried: Arc<AtomicU32> = Arc::default();
    let client = {
        let (server, tried) = (server.clone(), tried.clone());
        let inner = server.client();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let content_type = request.headers().get("content-type");
            let is_apply = content_type.is_some_and(|it| it == "application/apply-patch+yaml");
            let is_refused = is_apply && tried.fetch_add(1, Ordering::SeqCst) < CONFLICTS;
            if is_refused && it_changes {
                let child = server.get(SECRET).unwrap();
                server.put(SECRET, child);
            }
            let inner = inner.clone();
            async move {
                if is_refused {
                    let conflict = json!({"kind": "Status", "code": 409, "reason": "Conflict"});
                    let body = Body::from(conflict.to_string().into_bytes());
                    return Ok(http::Response::builder().status(409).body(body).unwrap());
                }
                inner.send(request).await
            }
        });
        kube::Client::new(service, "default")
    };
    let errors: Arc<Mutex<Vec<ApplyError>>> = Arc::default();
    let kept = errors.clone();
    let controller = Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        let kept = kept.clone();
        async move {
            let mut secret = Secret::default();
            secret.metadata.name = Some("child".into());
            if let Err(error) = cx.adopt(secret, ["other-manager"]).await {
                kept.lock().push(error);
            }
            Ok::<_, Error>(Action::await_change())
        }
    });
    let controller = controller.owns::<Secret>();
    let run = Run::start_client(client, ManagerOptions::default(), |manager| {
        manager.controller(controller)
    })
    .await;
    run.settle(MOMENT).await;
    run.stop().await.unwrap();
    let error = errors.lock().pop().unwrap();
    (error, tried.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn an_adoption_fails_if_the_child_changes_constantly() {
    let (error, tried) = adopt_with_conflicts(true).await;
    assert!(error.is_conflict(), "{error}");
    assert_eq!(tried, 11);
}

#[tokio::test(start_paused = true)]
async fn an_adoption_is_not_repeated_if_nothing_has_changed() {
    let (error, tried) = adopt_with_conflicts(false).await;
    assert!(error.is_conflict(), "{error}");
    assert_eq!(tried, 1);
}

#[tokio::test(start_paused = true)]
async fn an_adoption_is_recorded_as_a_write() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    server.put(SECRET, object("child"));
    let controller = Controller::new(|_: Arc<ConfigMap>, cx: Context| async move {
        let mut secret = Secret::default();
        secret.metadata.name = Some("child".into());
        cx.adopt(secret, ["other-manager"]).await?;
        Ok::<_, Error>(Action::await_change())
    });
    let run = Run::start(&server, controller.owns::<Secret>()).await;
    run.settle(MOMENT).await;
    let records = run.log.records();
    let writes: Vec<_> = records[0].writes.iter().map(|it| it.verb).collect();
    assert_eq!(writes, ["apply"]);
    run.stop().await.unwrap();
}
