//! Replicas that divide the objects of an operator.

mod reads;
mod times;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;

use opkit_random::Random;

use super::beside::{lend, on_every_replica};
use super::election::cut_off;
use super::*;
use crate::{
    AnyRunnable, LeaderElectionOptions, Request, RunContext, Selection, ShardKey, ShardingOptions,
};

/// Number of objects, each in a namespace of its own.
const OBJECTS: usize = 12;

/// Time in which replicas divide the slots after one of them has started, stopped or died.
const DIVIDED: Duration = Duration::from_secs(60);

fn sharding(by: ShardKey, identity: &str) -> ManagerOptions {
    let mut election = LeaderElectionOptions::new("test");
    election.namespace = Some("d".to_owned());
    election.identity = Some(identity.to_owned());
    ManagerOptions {
        sharding: Some(ShardingOptions::new(by, election)),
        ..Default::default()
    }
}

/// Returns the path of a config map. The hash depends most on the first characters of a text.
fn path(number: usize) -> String {
    format!("/api/v1/namespaces/{number:02}-namespace/configmaps/map-{number:02}")
}

fn put_all(server: &Server) {
    for number in 0..OBJECTS {
        let metadata = json!({
            "namespace": format!("{number:02}-namespace"),
            "name": format!("map-{number:02}"),
            "uid": format!("{number:02}-uid-of-the-map"),
            "generation": 1,
        });
        server.put(&path(number), json!({"metadata": metadata}));
    }
}

fn all() -> BTreeSet<String> {
    (0..OBJECTS)
        .map(|number| format!("map-{number:02}"))
        .collect()
}

type Seen = Arc<Mutex<Vec<String>>>;

fn take(seen: &Seen) -> BTreeSet<String> {
    std::mem::take(&mut *seen.lock()).into_iter().collect()
}

/// A replica, and the objects that it has reconciled since `take`.
struct Replica {
    run: Run,
    seen: Seen,
}

impl Replica {
    async fn start(client: kube::Client, by: ShardKey, name: &str) -> Self {
        Self::start_with(client, by, name, |manager| manager).await
    }

    async fn start_with(
        client: kube::Client,
        by: ShardKey,
        name: &str,
        setup: impl FnOnce(Manager) -> Manager,
    ) -> Self {
        let seen = Seen::default();
        let reconciled = seen.clone();
        let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
            let reconciled = reconciled.clone();
            async move {
                reconciled.lock().push(map.metadata.name.clone().unwrap());
                let mut secret = Secret::default();
                secret.metadata.name = map.metadata.name.clone();
                cx.apply(secret).await?;
                assert_eq!(cx.children::<Secret>()?.len(), 1, "its own write is read");
                Ok::<_, Error>(Action::await_change())
            }
        });
        let options = sharding(by, name);
        let controller = controller.owns::<Secret>();
        let setup = |manager: Manager| setup(manager.controller(controller));
        let run = Run::start_client(client, options, setup).await;
        Self { run, seen }
    }

    /// Returns the names of the objects that were reconciled since the last call.
    fn seen(&self) -> BTreeSet<String> {
        take(&self.seen)
    }

    /// Returns the number of cached objects of a kind.
    fn cached(&self, kind: &str) -> u64 {
        let metrics = self.run.metrics.encode();
        let lines = metrics.lines().filter(|line| {
            line.starts_with("opkit_cache_objects{") && line.contains(&format!("\"{kind}\""))
        });
        let counts =
            lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64);
        counts.sum()
    }
}

async fn divides(by: ShardKey) {
    let server = Server::new(&["configmaps", "secrets", "leases"]);
    put_all(&server);
    let one = Replica::start(server.client(), by, "one").await;
    one.run.settle(DIVIDED).await;
    assert_eq!(one.seen(), all(), "alone");
    let two = Replica::start(server.client(), by, "two").await;
    one.run.settle(DIVIDED).await;
    let moved = two.seen();
    assert!(!moved.is_empty() && moved != all(), "{moved:?}");
    one.seen();

    put_all(&server);
    one.run.settle(DIVIDED).await;
    let (of_one, of_two) = (one.seen(), two.seen());
    assert_eq!(of_two, moved);
    assert!(of_one.is_disjoint(&of_two), "{of_one:?} {of_two:?}");
    assert_eq!(&of_one | &of_two, all());
    // Each replica caches its own objects and their children only.
    for (replica, objects) in [(&one, &of_one), (&two, &of_two)] {
        for kind in ["ConfigMap", "Secret"] {
            assert_eq!(replica.cached(kind), objects.len() as u64, "{kind}");
        }
    }

    // A clean stop: the other replica takes over at once.
    two.run.stop().await.unwrap();
    one.run.settle(Duration::from_secs(5)).await;
    assert_eq!(one.seen(), of_two, "only the objects that moved");
    assert_eq!(one.cached("Secret"), OBJECTS as u64);
    one.run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn replicas_divide_the_objects_by_namespace() {
    divides(ShardKey::Namespace).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_divide_the_objects_by_uid() {
    divides(ShardKey::Uid).await;
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_a_replica_that_is_cut_off_are_taken_over() {
    let server = Server::new(&["configmaps", "secrets", "leases"]);
    put_all(&server);
    let (client, cut) = cut_off(&server);
    let one = Replica::start(client, ShardKey::Uid, "one").await;
    let two = Replica::start(server.client(), ShardKey::Uid, "two").await;
    one.run.settle(DIVIDED).await;
    assert_eq!(&one.seen() | &two.seen(), all());
    cut.store(true, Ordering::SeqCst);
    one.run.settle(DIVIDED).await;
    put_all(&server);
    one.run.settle(DIVIDED).await;
    assert_eq!(two.seen(), all());
    assert_eq!(one.seen(), BTreeSet::new());
    cut.store(false, Ordering::SeqCst);
    one.run.settle(Duration::from_secs(300)).await;
    let (_, _) = (one.seen(), two.seen());
    put_all(&server);
    one.run.settle(DIVIDED).await;
    let (of_one, of_two) = (one.seen(), two.seen());
    assert!(!of_one.is_empty() && of_one.is_disjoint(&of_two));
    assert_eq!(&of_one | &of_two, all());
    two.run.stop().await.unwrap();
    // The first term was lost, which counts as an unclean stop of the work.
    let _ = one.run.stop().await;
}

/// A reconcile in a slot that another replica wants ends before the slot is given away, and reads
/// its objects until then.
#[tokio::test(start_paused = true)]
async fn a_slot_is_given_away_after_its_reconciles_have_ended() {
    let server = Server::new(&["configmaps", "leases"]);
    put_all(&server);
    let seen = Seen::default();
    let start = async |name: &'static str| {
        let seen = seen.clone();
        let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
            let seen = seen.clone();
            async move {
                let object = map.metadata.name.clone().unwrap();
                seen.lock().push(format!("{object} starts"));
                tokio::time::sleep(Duration::from_secs(14)).await;
                let cached = cx.get::<ConfigMap>(cx.key().clone())?;
                assert!(cached.is_some(), "the cache has the object until the end");
                seen.lock().push(format!("{object} ends"));
                Ok::<_, Error>(Action::await_change())
            }
        });
        let controller = controller.max_concurrent_reconciles(OBJECTS);
        let options = sharding(ShardKey::Uid, name);
        Run::start_with(&server, options, |manager| manager.controller(controller)).await
    };
    let one = start("one").await;
    one.settle(MOMENT).await;
    let two = start("two").await;
    one.settle(Duration::from_secs(8)).await;
    let started = std::mem::take(&mut *seen.lock());
    assert_eq!(started.len(), OBJECTS, "each object once: {started:?}");
    assert!(started.iter().all(|line| line.ends_with("starts")));
    one.settle(DIVIDED).await;
    let lines = std::mem::take(&mut *seen.lock());
    let place = |line: String| lines.iter().position(|it| *it == line);
    let mut moved = 0;
    for object in all() {
        let ends = place(format!("{object} ends")).expect("it was not aborted");
        // In the second replica, after it has ended in the first one.
        if let Some(starts) = place(format!("{object} starts")) {
            assert!(ends < starts, "{lines:?}");
            moved += 1;
        }
    }
    assert!(moved > 0 && moved < OBJECTS, "{lines:?}");
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

/// At a stop, only slots in which reconciles run are kept until these have ended.
#[tokio::test(start_paused = true)]
async fn a_stop_gives_away_slots_without_work_at_once() {
    let server = Server::new(&["configmaps", "leases"]);
    put_all(&server);
    let start = async |name: &'static str| {
        let seen = Seen::default();
        let reconciled = seen.clone();
        let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
            reconciled.lock().push(map.metadata.name.clone().unwrap());
            async move {
                if map.data.is_some() && name == "one" {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                }
                Ok::<_, Error>(Action::await_change())
            }
        });
        let options = sharding(ShardKey::Uid, name);
        let setup = |manager: Manager| manager.controller(controller);
        (Run::start_with(&server, options, setup).await, seen)
    };
    let (one, of_one) = start("one").await;
    let (two, of_two) = start("two").await;
    one.settle(DIVIDED).await;
    let _ = (take(&of_one), take(&of_two));
    put_all(&server);
    one.settle(MOMENT).await;
    let (objects, _) = (take(&of_one), take(&of_two));
    let slow = objects.first().unwrap().clone();
    let number = slow.trim_start_matches("map-").parse().unwrap();
    let mut object = server.get(&path(number)).unwrap();
    object["data"] = json!({"slow": "yes"});
    server.put(&path(number), object);
    one.settle(MOMENT).await;
    assert_eq!(take(&of_one), BTreeSet::from([slow.clone()]));
    one.stop.cancel();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let taken = take(&of_two);
    assert!(taken.is_subset(&objects) && taken.len() > 1, "{taken:?}");
    assert!(!taken.contains(&slow), "it is still being reconciled");
    tokio::time::sleep(DIVIDED).await;
    assert!(take(&of_two).contains(&slow));
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_function_that_takes_a_key_is_called_for_a_deleted_object_by_one_replica() {
    let server = Server::new(&["configmaps", "leases"]);
    put_all(&server);
    let start = async |name: &'static str| {
        let seen = Seen::default();
        let reconciled = seen.clone();
        let controller = Controller::<ConfigMap>::keyed(move |request: Request, cx: Context| {
            let is_cached = cx.get::<ConfigMap>(request.key().clone());
            let line = is_cached.map(|cached| format!("{} {}", request.name, cached.is_some()));
            reconciled.lock().push(line.unwrap());
            async { Ok::<_, Error>(Action::await_change()) }
        });
        let options = sharding(ShardKey::Uid, name);
        let setup = |manager: Manager| manager.controller(controller);
        (Run::start_with(&server, options, setup).await, seen)
    };
    let (one, of_one) = start("one").await;
    let (two, of_two) = start("two").await;
    one.settle(DIVIDED).await;
    let (before_one, before_two) = (take(&of_one), take(&of_two));
    assert!(!before_one.is_empty() && !before_two.is_empty());
    for number in 0..OBJECTS {
        server.delete(&path(number));
    }
    one.settle(DIVIDED).await;
    let (gone_one, gone_two) = (take(&of_one), take(&of_two));
    assert!(!gone_one.is_empty() && gone_one.is_disjoint(&gone_two));
    let gone: BTreeSet<_> = all().iter().map(|name| format!("{name} false")).collect();
    assert_eq!(&gone_one | &gone_two, gone);
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_needs_leadership_runs_in_one_replica() {
    let server = Server::new(&["configmaps", "leases"]);
    let start = async |name: &'static str| {
        let is_running = Arc::new(AtomicBool::new(false));
        let flag = is_running.clone();
        let task = AnyRunnable::task("feed", move |cx: RunContext| {
            let flag = flag.clone();
            async move {
                flag.store(true, Ordering::SeqCst);
                cx.stopped().await;
                flag.store(false, Ordering::SeqCst);
                Ok(())
            }
        });
        let options = sharding(ShardKey::Namespace, name);
        let setup = |manager: Manager| manager.runnable(task);
        (Run::start_with(&server, options, setup).await, is_running)
    };
    let mut replicas = Vec::new();
    for name in ["one", "two", "three"] {
        replicas.push(start(name).await);
        tokio::time::sleep(DIVIDED).await;
        let running = replicas.iter().filter(|it| it.1.load(Ordering::SeqCst));
        assert_eq!(running.count(), 1);
    }
    while let Some(place) = replicas.iter().position(|it| it.1.load(Ordering::SeqCst)) {
        replicas.swap_remove(place).0.stop().await.unwrap();
        tokio::time::sleep(DIVIDED).await;
    }
    assert!(
        replicas.is_empty(),
        "it moves to the replicas that are left"
    );
}

/// Objects that are being reconciled, each with the replica.
type Active = Arc<Mutex<HashMap<String, usize>>>;

/// Removes an object from the active ones, also if its reconcile is dropped.
struct InWork(Active, String);

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// Replicas that start, stop, are cut off and come back at random: no object is reconciled by two
/// of them at a time, and at the end each object by one of them.
async fn replicas_at_random(by: ShardKey, seed: u64) {
    let mut random = Random::new(seed);
    let server = Server::new(&["configmaps", "leases"]);
    put_all(&server);
    let (active, twice) = (Active::default(), Seen::default());
    let start = async |number: usize| {
        let (seen, active, twice) = (Seen::default(), active.clone(), twice.clone());
        let reconciled = seen.clone();
        let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
            let object = map.metadata.name.clone().unwrap();
            let (seen, active, twice) = (reconciled.clone(), active.clone(), twice.clone());
            async move {
                if let Some(other) = active.lock().insert(object.clone(), number) {
                    twice
                        .lock()
                        .push(format!("{object} in {other} and {number}"));
                }
                let _in_work = InWork(active, object.clone());
                tokio::time::sleep(Duration::from_millis(700)).await;
                seen.lock().push(object);
                Ok::<_, Error>(Action::await_change())
            }
        });
        let (client, cut) = cut_off(&server);
        let options = sharding(by, &format!("replica-{number}"));
        let controller = controller.max_concurrent_reconciles(3);
        let run = Run::start_client(client, options, |manager| manager.controller(controller));
        (run.await, cut, seen)
    };
    let mut replicas = vec![start(0).await];
    let mut stopped = Vec::new();
    for number in 1..25 {
        match random.below(100) {
            0..35 if replicas.len() < 4 => replicas.push(start(number).await),
            35..55 if replicas.len() > 1 => {
                let place = random.below(replicas.len() as u64) as usize;
                let replica = replicas.swap_remove(place);
                replica.0.stop.cancel();
                stopped.push(replica);
            }
            55..75 => {
                let place = random.below(replicas.len() as u64) as usize;
                let cut = &replicas[place].1;
                cut.fetch_xor(true, Ordering::SeqCst);
            }
            _ => put_all(&server),
        }
        tokio::time::sleep(Duration::from_millis(random.below(20_000))).await;
        assert_eq!(*twice.lock(), [""; 0], "seed {seed}");
    }
    for (_, cut, _) in replicas.iter().chain(&stopped) {
        cut.store(false, Ordering::SeqCst);
    }
    tokio::time::sleep(DIVIDED * 3).await;
    for (_, _, seen) in &replicas {
        take(seen);
    }
    put_all(&server);
    tokio::time::sleep(DIVIDED).await;
    let mut seen: Vec<_> = replicas.iter().flat_map(|it| take(&it.2)).collect();
    seen.sort();
    assert!(seen.iter().eq(all().iter()), "seed {seed}: {seen:?}");
    assert_eq!(*twice.lock(), [""; 0], "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn no_object_is_reconciled_by_two_replicas_at_a_time() {
    for seed in 0..2 {
        replicas_at_random(ShardKey::Uid, seed).await;
        replicas_at_random(ShardKey::Namespace, seed).await;
    }
}

/// Each replica knows the owner of each object, also of those of the other one.
#[tokio::test(start_paused = true)]
async fn every_replica_shows_the_owners() {
    for by in [ShardKey::Namespace, ShardKey::Uid] {
        let server = Server::new(&["configmaps", "secrets", "leases"]);
        put_all(&server);
        let (runnable, mut contexts) = lend(on_every_replica);
        let setup = |manager: Manager| manager.runnable(runnable);
        let one = Replica::start_with(server.client(), by, "one", setup).await;
        let two = Replica::start(server.client(), by, "two").await;
        one.run.settle(DIVIDED).await;
        let _ = (one.seen(), two.seen());
        put_all(&server);
        one.run.settle(MOMENT).await;
        let (of_one, of_two) = (one.seen(), two.seen());
        let cx = contexts.recv().await.unwrap();
        for number in 0..OBJECTS {
            let map: ConfigMap =
                serde_json::from_value(server.get(&path(number)).unwrap()).unwrap();
            let (meta, name) = (&map.metadata, format!("map-{number:02}"));
            let uid = meta.uid.as_deref().unwrap();
            let owner = cx.owners.of(uid, meta.namespace.as_deref()).unwrap();
            let expected = if of_one.contains(&name) { "one" } else { "two" };
            assert!(expected == "one" || of_two.contains(&name));
            assert_eq!(owner.replica.as_deref(), Some(expected), "{by:?} {name}");
            assert_eq!(cx.owns(&map), expected == "one");
        }
        let metrics = two.run.metrics.encode();
        for line in [
            "opkit_shard_slots{name=\"test\",member=\"one\"} 8",
            "opkit_shard_slots{name=\"test\",member=\"two\"} 8",
            "opkit_shard_ring_slots{name=\"test\"} 16",
            "opkit_shard_members{name=\"test\"} 2",
        ] {
            assert!(metrics.contains(line), "{line} is not in {metrics}");
        }
        one.run.stop().await.unwrap();
        two.run.settle(MOMENT).await;
        let metrics = two.run.metrics.encode();
        assert!(!metrics.contains("member=\"one\""), "{metrics}");
        assert!(metrics.contains("opkit_shard_members{name=\"test\"} 1"));
        two.run.stop().await.unwrap();
    }
}

/// A controller that needs no leadership runs in every replica, for all objects.
#[tokio::test(start_paused = true)]
async fn controllers_that_need_no_leadership_are_not_sharded() {
    let server = Server::new(&["configmaps", "leases"]);
    put_all(&server);
    let start = async |name: &'static str| {
        let seen = Seen::default();
        let reconciled = seen.clone();
        let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
            let everywhere = Selection::default().all_namespaces();
            assert_eq!(cx.list::<ConfigMap>(everywhere).unwrap().len(), OBJECTS);
            reconciled.lock().push(map.metadata.name.clone().unwrap());
            async { Ok::<_, Error>(Action::await_change()) }
        });
        let controller = controller.needs_leader_election(false);
        let options = sharding(ShardKey::Uid, name);
        let setup = |manager: Manager| manager.controller(controller);
        (Run::start_with(&server, options, setup).await, seen)
    };
    let (one, of_one) = start("one").await;
    let (two, of_two) = start("two").await;
    one.settle(DIVIDED).await;
    assert_eq!(take(&of_one), all());
    assert_eq!(take(&of_two), all());
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}
