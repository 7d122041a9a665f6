//! `Context::apply` at a version, against the test server.

use super::*;
use crate::{ApplyError, Kind};

/// Returns a controller that applies the child at this version and keeps the error.
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
            Ok::<_, Error>(Action::await_change())
        }
    })
    .owns::<Secret>()
}

/// Stores a child of the ConfigMap `one` that this controller created but has not applied yet.
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
async fn a_child_that_does_not_exist_is_not_created_at_a_version() {
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
async fn a_child_at_another_version_is_not_changed() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    created(&server);
    let before = server.get(SECRET);
    let errors = Arc::default();
    let run = Run::start(&server, applying_at(|_| Some("1".into()), &errors)).await;
    run.settle(MOMENT).await;
    assert_eq!(server.writes(), [""; 0], "not even its managed fields");
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
        // Only once: this server creates a new version for every write.
        let version = child.metadata.resource_version.clone();
        version.filter(|_| child.type_.as_deref() == Some("a"))
    };
    let run = Run::start(&server, applying_at(read, &errors)).await;
    run.settle(MOMENT).await;
    assert_eq!(server.get(SECRET).unwrap()["type"], "b");
    assert!(errors.lock().is_empty(), "{}", errors.lock()[0]);
    run.stop().await.unwrap();
}

/// A user who may create Secrets in one namespace can reference an owner in another.
#[tokio::test(start_paused = true)]
async fn a_forged_owner_reference_is_neither_read_nor_pruned() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let uid = server.get(MAP).unwrap()["metadata"]["uid"].clone();
    let marked = |namespace: &str, name: &str, owner: Value| {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        let secret = json!({"metadata": {"namespace": namespace, "name": name,
            "annotations": {"opkit.dev/applied": "test.configmap:0"}, "ownerReferences": [owner]}});
        server.put(&path, secret);
        path
    };
    let owner = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": true});
    let forged = [
        marked("evil", "namespace", owner("ConfigMap", "one")),
        marked("d", "name", owner("ConfigMap", "two")),
        marked("d", "kind", owner("Secret", "one")),
    ];
    let own = marked("d", "own", owner("ConfigMap", "one"));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let found = seen.clone();
    let controller = Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        let found = found.clone();
        async move {
            let children = cx.children::<Secret>()?;
            let names = children.iter().filter_map(|it| it.metadata.name.clone());
            found.lock().extend(names);
            cx.prune().await?;
            Ok::<_, Error>(Action::await_change())
        }
    })
    .owns::<Secret>();
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    assert_eq!(seen.lock().first().map(String::as_str), Some("own"));
    assert!(seen.lock().iter().all(|name| name == "own"), "{seen:?}");
    assert_eq!(server.writes(), [format!("DELETE {own}")]);
    assert!(forged.iter().all(|path| server.get(path).is_some()));
    run.stop().await.unwrap();
}

/// Returns a controller that applies and adopts a Secret and keeps the results.
fn applying_undeclared(results: &Arc<Mutex<Vec<String>>>) -> Controller<ConfigMap> {
    let results = results.clone();
    Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        let results = results.clone();
        async move {
            // Only once: this server creates a new version for every write.
            if !results.lock().is_empty() {
                return Ok::<_, Error>(Action::await_change());
            }
            let secret = |name: &str| {
                let mut secret = Secret::default();
                secret.metadata.name = Some(name.into());
                secret
            };
            let applied = cx.apply(secret("child")).await;
            let adopted = cx.adopt(secret("child"), ["helm"]).await;
            for result in [applied, adopted] {
                let text = result.map_or_else(|error| error.to_string(), |_| "ok".to_owned());
                results.lock().push(text);
            }
            Ok(Action::await_change())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_owned_is_not_applied() {
    type Declare = fn(Controller<ConfigMap>) -> Controller<ConfigMap>;
    let refused = "cannot apply Secret d/child: controller configmap does not own the kind Secret, so it would not be watched or pruned; declare it with .owns::<Secret>()";
    let cases: [(Declare, &str); 7] = [
        (|it| it, refused),
        (|it| it.watches::<Secret>(|_, _| Vec::new()), refused),
        (|it| it.watches_owners::<Secret>(), refused),
        (|it| it.creates_once::<Secret>(), refused),
        (|it| it.owns::<Secret>(), "ok"),
        (|it| it.owns_metadata::<Secret>(), "ok"),
        (|it| it.owns_dynamic(Kind::of::<Secret>()), "ok"),
    ];
    for (case, (declare, expected)) in cases.into_iter().enumerate() {
        let server = Server::new(&["configmaps", "secrets"]);
        server.put(MAP, object("one"));
        let results = Arc::default();
        let run = Run::start(&server, declare(applying_undeclared(&results))).await;
        run.settle(MOMENT).await;
        assert_eq!(*results.lock(), [expected, expected], "case {case}");
        assert_eq!(server.get(SECRET).is_some(), expected == "ok");
        run.stop().await.unwrap();
    }
}

/// Runs `reconcile`, which creates the Secret `child`, several times. Returns the detected loop and
/// the number of reconciles.
async fn creating_a_secret<F>(reconcile: fn(Context) -> F) -> (Option<String>, u64)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let runs = AtomicU32::new(0);
    let controller = Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        // The paused clock does not advance while they run.
        let is_over = runs.fetch_add(1, Ordering::SeqCst) >= 20;
        async move {
            if !is_over {
                reconcile(cx).await?;
            }
            Ok::<_, Error>(Action::await_change())
        }
    })
    .owns::<Secret>();
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    let records = run.log.records();
    let mut loops = records.iter().filter_map(|record| record.hot_loop.as_ref());
    let found = (loops.next().map(ToString::to_string), run.log.total());
    run.stop().await.unwrap();
    found
}

fn child() -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some("child".to_owned());
    secret
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_applied_only_while_it_is_missing_is_a_loop() {
    async fn if_missing(cx: Context) -> Result<()> {
        if cx.get::<Secret>("child")?.is_none() {
            cx.apply(child()).await?;
        }
        cx.prune().await?;
        Ok(())
    }
    let (found, runs) = creating_a_secret(if_missing).await;
    assert_eq!(
        found.as_deref(),
        Some(
            "loop: Secret child is created and pruned alternately, 6 reconciles so far: a child that a reconcile does not apply is pruned; apply it in every reconcile, or create it with cx.create_once"
        )
    );
    assert!(runs > 20, "{runs}");

    async fn once(cx: Context) -> Result<()> {
        cx.create_once(child()).await?;
        cx.prune().await?;
        Ok(())
    }
    let (found, runs) = creating_a_secret(once).await;
    assert_eq!(found, None);
    assert!(runs <= 3, "{runs}");
}

/// The deletion is visible before the watch reports it.
#[tokio::test(start_paused = true)]
async fn a_pruned_child_is_no_longer_read() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let runs: Arc<AtomicU32> = Arc::default();
    let read: Arc<Mutex<Vec<(usize, bool)>>> = Arc::default();
    let kept = read.clone();
    let controller = Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        let (is_first, kept) = (runs.fetch_add(1, Ordering::SeqCst) == 0, kept.clone());
        async move {
            if is_first {
                let mut secret = Secret::default();
                secret.metadata.name = Some("child".into());
                cx.apply(secret).await?;
                return Ok::<_, Error>(Action::requeue(Duration::from_secs(1)));
            }
            let pruned = cx.prune().await?;
            kept.lock()
                .push((pruned, cx.get::<Secret>("child")?.is_some()));
            Ok(Action::await_change())
        }
    });
    let controller =
        controller.owns_with::<Secret>(|secrets| secrets.only(crate::predicate::generic()));
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_secs(2)).await;
    assert_eq!(*read.lock(), [(1, false)]);
    run.stop().await.unwrap();
}
