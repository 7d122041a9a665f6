//! What runnables, states and servers of a sharded operator read.

use super::super::beside::{lend, maps, on_every_replica, server};
use super::*;
use crate::ReadDeclarations;

/// Returns the number of objects of a kind that are read through a lister and a cached client.
async fn read<K: Object>(cx: &RunContext) -> usize {
    let all = Selection::default();
    let listed = cx.lister::<K>().unwrap().list(&all).len();
    let read = cx.cached_client().list::<K>(&all).await.unwrap().len();
    assert_eq!(read, listed);
    assert_eq!(cx.reads().list::<K>(all).unwrap().len(), listed);
    listed
}

/// Starts two replicas whose runnables read, and that declare `reads` beside the controllers.
/// Returns for each the number of its objects, of config maps that are read, and of those cached.
async fn counts(by: ShardKey, reads: ReadDeclarations) -> [[usize; 3]; 2] {
    let api = Server::new(&["configmaps", "secrets", "leases"]);
    put_all(&api);
    let (mut replicas, mut kept) = (Vec::new(), Vec::new());
    for name in ["one", "two"] {
        let (runnable, mut contexts) = lend(on_every_replica);
        // The server of webhooks keeps reads of all kinds from its start.
        let (webhooks, mut servers) = lend(server);
        let (client, reads) = (api.client(), reads.clone());
        let setup = |manager: Manager| manager.reads(&reads).runnable(runnable).runnable(webhooks);
        let replica = Replica::start_with(client, by, name, setup).await;
        kept.push(servers.recv().await.unwrap().reads());
        replicas.push((replica, contexts.recv().await.unwrap()));
    }
    replicas[0].0.run.settle(DIVIDED).await;
    for (replica, _) in &replicas {
        replica.seen();
    }
    put_all(&api);
    replicas[0].0.run.settle(DIVIDED).await;
    let mut counts = Vec::new();
    for (replica, cx) in &replicas {
        let own = replica.seen().len();
        assert_eq!(read::<Secret>(cx).await, own);
        assert_eq!(replica.cached("Secret"), own as u64);
        let cached = replica.cached("ConfigMap") as usize;
        counts.push([own, read::<ConfigMap>(cx).await, cached]);
    }
    for (replica, _) in replicas {
        replica.run.stop().await.unwrap();
    }
    counts.try_into().unwrap()
}

/// Checks that kinds of controllers are read from the part that the controllers cache, and are not
/// cached a second time.
#[tokio::test(start_paused = true)]
async fn a_runnable_reads_the_objects_of_its_replica() {
    for by in [ShardKey::Namespace, ShardKey::Uid] {
        let [one, two] = counts(by, ReadDeclarations::default()).await;
        assert_eq!(one[0] + two[0], OBJECTS, "{by:?}");
        for [own, read, cached] in [one, two] {
            assert_eq!([read, cached], [own, own], "{by:?}");
        }
    }
}

/// Checks that a kind that a webhook or `Operator::kinds` declares is read whole.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_declared_for_reading_is_whole() {
    for [own, read, cached] in counts(ShardKey::Uid, maps()).await {
        assert_eq!([read, cached], [OBJECTS, OBJECTS + own]);
    }
}

/// Checks that `fetch` reads the objects of other replicas, and `get` does not.
#[tokio::test(start_paused = true)]
async fn a_reconcile_fetches_objects_of_other_replicas() {
    for by in [ShardKey::Namespace, ShardKey::Uid] {
        let api = Server::new(&["configmaps", "leases"]);
        put_all(&api);
        let start = async |name: &'static str| {
            let seen = Seen::default();
            let reconciled = seen.clone();
            let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
                let reconciled = reconciled.clone();
                async move {
                    let (mut cached, mut fetched) = (0, 0);
                    for number in 0..OBJECTS {
                        let key = (format!("{number:02}-namespace"), format!("map-{number:02}"));
                        cached += usize::from(cx.get::<ConfigMap>(key.clone())?.is_some());
                        fetched += usize::from(cx.fetch::<ConfigMap>(key).await?.is_some());
                    }
                    assert_eq!(fetched, OBJECTS, "{by:?}");
                    let all = Selection::default().all_namespaces();
                    assert_eq!(cx.fetch_list::<ConfigMap>(all).await?.len(), OBJECTS);
                    assert!(
                        cx.fetch::<ConfigMap>(("99-namespace", "none"))
                            .await?
                            .is_none()
                    );
                    let name = map.metadata.name.clone().unwrap();
                    reconciled.lock().push(format!("{name} {cached}"));
                    Ok::<_, Error>(Action::await_change())
                }
            });
            let options = sharding(by, name);
            let setup = |manager: Manager| manager.controller(controller);
            (Run::start_with(&api, options, setup).await, seen)
        };
        let (one, of_one) = start("one").await;
        let (two, of_two) = start("two").await;
        one.settle(DIVIDED).await;
        let _ = (take(&of_one), take(&of_two));
        put_all(&api);
        one.settle(DIVIDED).await;
        let (of_one, of_two) = (take(&of_one), take(&of_two));
        assert_eq!(of_one.len() + of_two.len(), OBJECTS);
        for seen in [of_one, of_two] {
            let part = format!(" {}", seen.len());
            assert!(seen.iter().all(|line| line.ends_with(&part)), "{seen:?}");
        }
        one.stop().await.unwrap();
        two.stop().await.unwrap();
    }
}
