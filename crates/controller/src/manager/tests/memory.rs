//! Memory of deleted objects.

use std::sync::Weak;

use super::*;
use crate::{EventApi, EventType, Request};

#[tokio::test(start_paused = true)]
async fn an_event_keeps_no_object() {
    for api in [EventApi::EventsV1, EventApi::CoreV1] {
        let server = Server::new(&["configmaps", "events"]);
        server.put(MAP, object("one"));
        let weak: Arc<Mutex<Weak<ConfigMap>>> = Arc::default();
        let kept = weak.clone();
        let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
            *kept.lock() = Arc::downgrade(&map);
            cx.event(EventType::Normal, "Seen", "it exists");
            async { Ok::<_, Error>(Action::await_change()) }
        });
        let options = ManagerOptions {
            event_api: api,
            ..Default::default()
        };
        let run = Run::start_with(&server, options, |it| it.controller(controller)).await;
        run.settle(Duration::from_secs(1)).await;
        server.delete(MAP);
        run.settle(Duration::from_secs(1)).await;
        assert!(weak.lock().upgrade().is_none(), "{api:?}");
        run.stop().await.unwrap();
    }
}

/// Creates and deletes objects, which a controller that takes keys reconciles.
async fn create_and_delete(
    deleted: impl Fn(u32) -> Result<Action> + Clone + Send + Sync + 'static,
) -> Vec<String> {
    let server = Server::new(&["configmaps"]);
    let calls: Arc<Mutex<std::collections::HashMap<String, u32>>> = Arc::default();
    let controller = Controller::<ConfigMap>::keyed(move |request: Request, cx: Context| {
        let (deleted, calls) = (deleted.clone(), calls.clone());
        async move {
            if cx.get::<ConfigMap>(request.key().clone())?.is_some() {
                return Ok(Action::await_change());
            }
            let mut calls = calls.lock();
            let call = calls.entry(request.name.clone()).or_default();
            *call += 1;
            deleted(*call)
        }
    });
    let run = Run::start(&server, controller).await;
    for n in 0..5 {
        let path = format!("/api/v1/namespaces/d/configmaps/map-{n}");
        server.put(&path, object(&format!("map-{n}")));
        run.settle(Duration::from_secs(10)).await;
        server.delete(&path);
        run.settle(Duration::from_secs(10)).await;
    }
    run.settle(Duration::from_secs(600)).await;
    let last = run.log.last_of_each();
    run.stop().await.unwrap();
    last.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn the_log_forgets_deleted_objects() {
    let settled = |_| Ok(Action::await_change());
    let none: [&str; 0] = [];
    assert_eq!(create_and_delete(settled).await, none);
    // The first reconcile after the deletion fails, for example because another system is
    // unavailable.
    let retried = |call| match call {
        1 => Err(Error::msg("away")),
        _ => Ok(Action::await_change()),
    };
    assert_eq!(create_and_delete(retried).await, none, "a retry");
    let later = |call| match call {
        1 => Ok(Action::requeue(Duration::from_secs(5))),
        _ => Ok(Action::await_change()),
    };
    assert_eq!(create_and_delete(later).await, none, "a requeue");
    let refused = |_| Err(Error::terminal(Error::msg("never")));
    assert_eq!(create_and_delete(refused).await, none, "terminal");
}

/// A filter may pass the creation of an object and not its deletion.
#[tokio::test(start_paused = true)]
async fn the_log_forgets_objects_whose_deletion_is_filtered() {
    let server = Server::new(&["configmaps"]);
    let mut map = object("one");
    map["metadata"]["labels"] = json!({"app": "a"});
    server.put(MAP, map.clone());
    let is_ours = crate::predicate::label_selector("app=a").unwrap();
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change()));
    let run = Run::start(&server, controller.primary(|maps| maps.only(is_ours))).await;
    run.settle(MOMENT).await;
    map["metadata"] = server.get(MAP).unwrap()["metadata"].clone();
    map["metadata"]["labels"] = json!({});
    server.put(MAP, map);
    run.settle(MOMENT).await;
    assert_eq!(run.log.last_of_each().len(), 1);
    server.delete(MAP);
    run.settle(MOMENT).await;
    assert_eq!(run.log.last_of_each().len(), 0);
    run.stop().await.unwrap();
}
