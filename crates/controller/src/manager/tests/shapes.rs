//! The shapes of reconcile functions, and the objects for which each is called.

use kube::core::PartialObjectMeta;

use super::*;
use crate::{DynamicObject, Kind, Request};

type Seen = Arc<Mutex<Vec<String>>>;

/// The state of a reconciler in kube's shape.
struct Ctx {
    seen: Seen,
}

#[derive(Debug, thiserror::Error)]
#[error("in kube's shape")]
struct Broken;

async fn kube_shape(map: Arc<ConfigMap>, ctx: Arc<Ctx>) -> Result<Action, Broken> {
    let deleting = map.metadata.deletion_timestamp.is_some();
    ctx.seen.lock().push(format!("deleting {deleting}"));
    match map.data.is_some() {
        true => Err(Broken),
        false => Ok(Action::await_change()),
    }
}

#[tokio::test(start_paused = true)]
async fn kubes_shape_gets_the_state_and_is_called_for_deletion() {
    let server = Server::new(&["configmaps"]);
    let mut map = object("one");
    map["metadata"]["finalizers"] = json!(["example.com/other"]);
    server.put(MAP, map);
    let seen = Seen::default();
    let state = Arc::new(Ctx { seen: seen.clone() });
    let run = Run::start_manager(&server, |manager| {
        manager.state(state).controller(Controller::new(kube_shape))
    })
    .await;
    run.settle(MOMENT).await;
    server.begin_deletion(MAP);
    run.settle(MOMENT).await;
    assert_eq!(*seen.lock(), ["deleting false", "deleting true"]);

    server.put(
        "/api/v1/namespaces/d/configmaps/two",
        json!({"metadata": {"namespace": "d", "name": "two"}, "data": {}}),
    );
    run.settle(MOMENT).await;
    let last = run.log.last("configmap", &("d", "two").into()).unwrap();
    let last = last.result.to_string();
    assert!(last.ends_with("in kube's shape"), "{last}");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missing_state_is_an_error_at_the_start() {
    let server = Server::new(&["configmaps"]);
    let manager = Manager::new("test", server.client(), ManagerOptions::default());
    let run = manager.controller(Controller::new(kube_shape));
    let error = run.run(CancellationToken::new()).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("controller configmap reads the state"),
        "{error}"
    );
    assert!(
        error.ends_with("Ctx, which is not provided: add .state(..)"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_function_that_takes_a_key_is_called_for_deleted_objects() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let seen = Seen::default();
    let log = seen.clone();
    let controller = Controller::<ConfigMap, _>::keyed(move |request: Request, cx: Context| {
        let log = log.clone();
        async move {
            let found = cx.get::<ConfigMap>(request.key().clone())?;
            let mut secret = Secret::default();
            secret.metadata.name = Some("child".into());
            let line = match (found, cx.apply(secret).await) {
                (Some(_), Ok(_)) => "there".to_owned(),
                (_, Err(error)) => error.to_string(),
                (None, Ok(_)) => "applied without an owner".to_owned(),
            };
            log.lock().push(line);
            Ok::<_, Error>(Action::await_change())
        }
    })
    .owns::<Secret>();
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    server.delete(MAP);
    run.settle(MOMENT).await;
    seen.lock().dedup();
    let refused = "cannot apply Secret d/child for ConfigMap d/one, which is deleted";
    assert_eq!(*seen.lock(), ["there", refused]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn metadata_and_dynamic_objects_are_reconciled() {
    let server = Server::new(&["configmaps"]);
    server.put(
        MAP,
        json!({"metadata": object("one")["metadata"], "data": {"a": "b"}}),
    );
    let seen = Seen::default();
    let (of_metadata, of_dynamic) = (seen.clone(), seen.clone());
    let metadata =
        Controller::metadata(move |map: Arc<PartialObjectMeta<ConfigMap>>, cx: Context| {
            let again = cx.get::<PartialObjectMeta<ConfigMap>>("one").unwrap();
            let name = again.and_then(|map| map.metadata.name.clone());
            of_metadata
                .lock()
                .push(format!("{:?} {name:?}", map.metadata.name));
            async { Ok::<_, Error>(Action::await_change()) }
        });
    let kind = Kind::of::<ConfigMap>();
    let read = kind.clone();
    let dynamic = Controller::dynamic(kind, move |map: Arc<DynamicObject>, cx: Context| {
        let again = cx.get_dynamic(&read, "one").unwrap().unwrap();
        let data = again.get(&["data", "a"]).cloned();
        of_dynamic.lock().push(format!("{} {data:?}", map.name()));
        async { Ok::<_, Error>(Action::await_change()) }
    });
    let run = Run::start_manager(&server, |manager| {
        manager
            .controller(metadata.named("metadata"))
            .controller(dynamic.named("dynamic"))
    })
    .await;
    run.settle(MOMENT).await;
    let mut seen = seen.lock().clone();
    seen.sort();
    assert_eq!(
        seen,
        [r#"Some("one") Some("one")"#, r#"one Some(String("b"))"#]
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_dropped_counted_and_retried() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let counted = count.clone();
    let slow = Controller::new(move |_: Arc<ConfigMap>, _: Context| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if n == 0 {
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            // The function's own error that looks like a timeout is not counted as one.
            if n == 1 {
                let elapsed = tokio::time::timeout(Duration::ZERO, std::future::pending::<()>());
                elapsed.await?;
            }
            Ok::<_, Error>(Action::await_change())
        }
    });
    let run = Run::start(&server, slow.reconcile_timeout(Duration::from_secs(5))).await;
    run.settle(Duration::from_secs(6)).await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
    let metrics = run.metrics.encode();
    for line in [
        r#"controller_runtime_reconcile_timeouts_total{controller="configmap"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="configmap"} 2"#,
        r#"controller_runtime_reconcile_total{controller="configmap",result="error"} 2"#,
        r#"controller_runtime_reconcile_total{controller="configmap",result="success"} 1"#,
        r#"controller_runtime_active_workers{controller="configmap"} 0"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="configmap"} 1"#,
        r#"workqueue_retries_total{name="configmap",controller="configmap"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_log_forgets_deleted_objects_of_a_function_that_takes_a_key() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let controller = Controller::<ConfigMap, _>::keyed(|_: Request, _: Context| async {
        Ok::<_, Error>(Action::await_change())
    });
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    assert_eq!(run.log.last_of_each().len(), 1);
    server.delete(MAP);
    run.settle(MOMENT).await;
    assert_eq!(run.log.total(), 2, "once more after the deletion");
    assert_eq!(run.log.last_of_each().len(), 0, "those that still exist");
    run.stop().await.unwrap();
}
