//! `Context::apply` at a version, against the small server.

use super::*;
use crate::ApplyError;

/// Applies the child at this version, and keeps the error.
fn applying_at(
    version: impl Fn(&Context) -> Option<String> + Clone + Send + Sync + 'static,
    errors: &Arc<Mutex<Vec<ApplyError>>>,
) -> Controller<ConfigMap> {
    let errors = errors.clone();
    Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        let (version, errors) = (version.clone(), errors.clone());
        async move {
            let mut secret = Secret::default();
            secret.metadata.name = Some("child".into());
            secret.metadata.resource_version = version(&cx);
            secret.type_ = Some("b".into());
            if let Err(error) = cx.apply(secret).await {
                errors.lock().push(error);
            }
            Ok(Action::await_change())
        }
    })
    .owns::<Secret>()
}

/// A child of the map `one`, made by this controller but not applied yet.
fn created(server: &Server) {
    let uid = server.get(MAP).unwrap()["metadata"]["uid"].clone();
    let mut child = object("child");
    child["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": uid, "controller": true},
    ]);
    child["metadata"]["managedFields"] = json!([
        {"manager": "test.configmap", "operation": "Update", "fieldsV1": {"f:type": {}}},
    ]);
    child["type"] = json!("a");
    server.put(SECRET, child);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_exist_is_not_made_at_a_version() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let errors = Arc::default();
    let run = Run::start(&server, applying_at(|_| Some("999".into()), &errors)).await;
    run.settle(MOMENT).await;
    assert_eq!(server.writes(), [""; 0]);
    assert_eq!(
        errors.lock()[0].to_string(),
        "cannot apply Secret d/child at resourceVersion 999: it does not exist"
    );
    assert!(errors.lock()[0].is_not_found());
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_at_another_version_is_not_touched() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    created(&server);
    let before = server.get(SECRET);
    let errors = Arc::default();
    let run = Run::start(&server, applying_at(|_| Some("1".into()), &errors)).await;
    run.settle(MOMENT).await;
    assert_eq!(server.writes(), [""; 0], "its managed fields neither");
    assert_eq!(server.get(SECRET), before);
    assert!(errors.lock()[0].is_conflict(), "{}", errors.lock()[0]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_is_upgraded_and_applied_at_its_version() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    created(&server);
    let errors: Arc<Mutex<Vec<ApplyError>>> = Arc::default();
    let read = |cx: &Context| {
        let child = cx.get::<Secret>("child").unwrap().unwrap();
        // Once only: this server makes a new version of every write.
        let version = child.metadata.resource_version.clone();
        version.filter(|_| child.type_.as_deref() == Some("a"))
    };
    let run = Run::start(&server, applying_at(read, &errors)).await;
    run.settle(MOMENT).await;
    assert_eq!(server.get(SECRET).unwrap()["type"], "b");
    assert!(errors.lock().is_empty(), "{}", errors.lock()[0]);
    run.stop().await.unwrap();
}
