//! Runnables and states beside the controllers: the cached client, listers and informers of kinds
//! that are only read, the recorder, the leadership.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use opkit::cache::{CacheReadError, CachedClient};
use opkit::client::Patch;
use opkit::operator::{AnyRunnable, CancellationToken, RunOptions};
use opkit::prelude::*;
use serde_json::json;
use tokio::sync::mpsc;

use crate::context::object;

/// State that is created with the context.
struct App {
    client: CachedClient,
    maps: usize,
}

impl App {
    async fn connect(cx: StateContext) -> Result<Self> {
        let client = cx.cached_client();
        // Waits until the cache is filled.
        let maps = client.list::<ConfigMap>(&Selection::default()).await?;
        Ok(Self {
            client,
            maps: maps.iter().filter(|map| map.name_any() == "one").count(),
        })
    }
}

/// Runs an operator without controllers, with the permissions of its manifests, and returns the
/// context of a runnable.
async fn start(plane: &ControlPlane, stop: &CancellationToken) -> opkit::Result<Running> {
    let (sender, mut contexts) = mpsc::channel(1);
    let operator = Operator::new("beside")
        .kinds::<(ConfigMap, Service)>()
        .state_with(App::connect)
        .rule(PolicyRule::new("", ["configmaps"], ["patch"]))
        .runnable(AnyRunnable::on_every_replica(
            "lender",
            move |cx: RunContext| {
                let sender = sender.clone();
                async move {
                    let _ = sender.send(cx.clone()).await;
                    cx.stopped().await;
                    Ok(())
                }
            },
        ));
    let mut options = RunOptions::default();
    options.namespaces = vec![plane.namespace().to_owned()];
    plane.install(&operator).await?;
    let client = plane.operator_client(&operator, &options).await?;
    let mut task = tokio::task::JoinSet::new();
    task.spawn(operator.run_with(client, options, stop.clone()));
    tokio::select! {
        cx = contexts.recv() => Ok(Running {
            cx: cx.ok_or_else(|| Error::msg("the runnable ended"))?,
            task,
        }),
        ended = task.join_next() => Err(Error::msg(format!("the operator stopped: {ended:?}"))),
    }
}

struct Running {
    cx: RunContext,
    task: tokio::task::JoinSet<opkit::Result>,
}

#[opkit::test]
async fn a_runnable_reads_writes_and_records_without_a_controller(
    plane: ControlPlane,
) -> opkit::Result {
    let map = object(json!({"metadata": {"name": "one"}, "data": {"a": "1"}}));
    plane.apply::<ConfigMap>(map).await?;
    let stop = CancellationToken::new();
    let Running { cx, mut task } = start(&plane, &stop).await?;
    let app = cx.state::<App>().expect("the state");
    assert_eq!(app.maps, 1, "the state waited for the cache");

    // The client shows its own write at once, and so do the listers of the same cache.
    let key = ObjectKey::from((plane.namespace(), "one"));
    let change = json!({"data": {"a": "2"}});
    app.client
        .patch::<ConfigMap>(key.clone(), Patch::Merge(&change))
        .await?;
    let lister = cx.lister::<ConfigMap>()?;
    let one = lister.get(&key)?.expect("the map");
    let value = |map: &ConfigMap| map.data.clone().unwrap_or_default().remove("a");
    assert_eq!(value(&one).as_deref(), Some("2"));
    assert!(
        cx.cached_client()
            .get::<ConfigMap>(key.clone())
            .await?
            .is_some()
    );

    // A change by another client arrives through the watch.
    let service = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}});
    plane.apply::<Service>(object(service)).await?;
    let services = cx.lister::<Service>()?;
    let web = ObjectKey::from((plane.namespace(), "web"));
    plane
        .eventually("web", |_: &Service| {
            matches!(services.get(&web), Ok(Some(_)))
        })
        .await?;

    // Secrets are not declared.
    let error = cx.lister::<Secret>().expect_err("not declared").to_string();
    assert!(
        error.contains("Secret") && error.contains("Operator::kinds"),
        "{error}"
    );
    let read = app.client.get::<Secret>(key.clone()).await;
    assert!(
        matches!(read, Err(CacheReadError::NotCached { .. })),
        "{read:?}"
    );
    assert_eq!(cx.leadership().borrow().term(), Some(1));
    assert!(cx.informer::<Service>()?.has_all(Some(plane.namespace())));

    cx.recorder().event(&*one, Normal, "Counted", "one map");
    plane
        .eventually_event::<ConfigMap>("one", "Counted")
        .await?;
    stop.cancel();
    while let Some(ended) = task.join_next().await {
        ended??;
    }

    // Afterwards the cache is not up to date any more.
    assert!(cx.lister::<ConfigMap>().is_err());
    let read = app.client.get::<ConfigMap>(key).await;
    assert!(
        matches!(read, Err(CacheReadError::Stopped { .. })),
        "{read:?}"
    );
    Ok(())
}
