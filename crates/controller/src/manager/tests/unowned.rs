//! Children without owner references, against the test server.

use super::*;
use crate::{Cleanup, InformerOptions, Request};

const RECORD: &str = "unowned.opkit.dev/test.configmap";
const ELSEWHERE: &str = "/api/v1/namespaces/e/secrets";

fn child(name: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.namespace = Some("e".to_owned());
    secret
}

/// Returns the names of the recorded children.
fn recorded(server: &Server) -> Vec<String> {
    let owner = server.get(MAP).unwrap();
    let record = owner["metadata"]["annotations"][RECORD].as_str();
    let record: Vec<Value> = serde_json::from_str(record.unwrap_or("[]")).unwrap();
    let names = record.iter().map(|child| child["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

fn exists(server: &Server, name: &str) -> bool {
    server.get(&format!("{ELSEWHERE}/{name}")).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_cache_without_annotations_loses_no_record() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let wanted: Arc<Mutex<Vec<&str>>> = Arc::new(Mutex::new(vec!["a", "b"]));
    let asked = wanted.clone();
    let controller = Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        let asked = asked.lock().clone();
        async move {
            for name in asked {
                cx.apply_unowned(child(name)).await?;
            }
            cx.prune().await?;
            Ok::<_, Error>(Action::await_change())
        }
    });
    let run = Run::start_manager(&server, |manager| {
        let bare = InformerOptions::default().transform(|object| {
            if let Some(meta) = object["metadata"].as_object_mut() {
                meta.remove("annotations");
            }
        });
        manager
            .cache::<ConfigMap>(bare)
            .cross_namespace::<Secret>(|_, _| true)
            .controller(controller.applies_unowned::<Secret>())
    })
    .await;
    run.settle(MOMENT).await;
    assert_eq!(recorded(&server), ["a", "b"]);
    *wanted.lock() = vec!["b"];
    let mut touched = server.get(MAP).unwrap();
    touched["data"] = json!({"touched": "yes"});
    server.put(MAP, touched);
    run.settle(MOMENT).await;
    assert_eq!(recorded(&server), ["b"]);
    assert!(!exists(&server, "a") && exists(&server, "b"));
    server.begin_deletion(MAP);
    run.settle(MOMENT).await;
    assert!(server.get(MAP).is_none());
    assert!(!exists(&server, "b"));
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn children_are_deleted_in_every_shape_of_a_controller() {
    let by_key = Controller::<ConfigMap>::keyed(|request: Request, cx: Context| async move {
        let map = cx.get::<ConfigMap>(request.key().clone())?;
        if map.is_some_and(|map| map.metadata.deletion_timestamp.is_none()) {
            cx.apply_unowned(child("a")).await?;
        }
        Ok::<_, Error>(Action::await_change())
    });
    let native = || {
        Controller::new(|_: Arc<ConfigMap>, cx: Context| async move {
            cx.apply_unowned(child("a")).await?;
            Ok::<_, Error>(Action::await_change())
        })
    };
    let finalizing = native().finalizer(
        "test/cleanup",
        |_: Arc<ConfigMap>, cx: Context| async move {
            let error = cx.apply_unowned(child("late")).await.err();
            assert!(
                error.is_none(),
                "the object still has its finalizer, so children can be recorded: {error:?}"
            );
            Ok::<_, Error>(Cleanup::Done)
        },
    );
    for controller in [by_key, native(), finalizing] {
        let server = Server::new(&["configmaps", "secrets"]);
        server.put(MAP, object("one"));
        let run = Run::start_manager(&server, |manager| {
            manager
                .cross_namespace::<Secret>(|_, _| true)
                .controller(controller.applies_unowned::<Secret>())
        })
        .await;
        run.settle(MOMENT).await;
        assert_eq!(recorded(&server), ["a"]);
        server.begin_deletion(MAP);
        run.settle(MOMENT).await;
        assert!(server.get(MAP).is_none());
        assert!(!exists(&server, "a") && !exists(&server, "late"));
        run.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_being_deleted_gets_no_first_child() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = errors.clone();
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change())).finalizer(
        "test/cleanup",
        move |_: Arc<ConfigMap>, cx: Context| {
            let kept = kept.clone();
            async move {
                let error = cx.apply_unowned(child("late")).await.unwrap_err();
                kept.lock().push(error.to_string());
                Ok::<_, Error>(Cleanup::Done)
            }
        },
    );
    let run = Run::start_manager(&server, |manager| {
        manager
            .cross_namespace::<Secret>(|_, _| true)
            .controller(controller.applies_unowned::<Secret>())
    })
    .await;
    run.settle(MOMENT).await;
    server.begin_deletion(MAP);
    run.settle(MOMENT).await;
    assert_eq!(
        *errors.lock(),
        ["cannot apply Secret e/late for ConfigMap d/one, which is being deleted"]
    );
    assert!(server.get(MAP).is_none());
    assert!(!exists(&server, "late"));
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_too_long_for_the_finalizer_is_an_error_at_start() {
    let server = Server::new(&["configmaps", "secrets"]);
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change()));
    let long = "l".repeat(60);
    let manager = Manager::new("test", server.client(), ManagerOptions::default());
    let run = manager.controller(controller.named(long).applies_unowned::<Secret>());
    let error = run.run(CancellationToken::new()).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("the finalizer for children without owner references of controller lll"),
        "{error}"
    );
}
