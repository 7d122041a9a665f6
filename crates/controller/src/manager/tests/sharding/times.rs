//! How long an object has no owner. The clock is paused, so the times are those of the protocol.

use tokio::time::Instant;

use super::super::election::cut_off;
use super::*;

/// Longest time without an owner after a crash: the duration of a Lease (15 s) by a clock that is
/// 10 % slow, and two retry periods (2 s each).
const AFTER_CRASH: Duration = Duration::from_millis(20_500);

/// Longest time that a reconcile may run in a slot that another replica is to get.
const DRAIN: Duration = Duration::from_secs(15);

/// Names of reconciled objects, each with the time.
type Times = Arc<Mutex<Vec<(String, Instant)>>>;

/// Starts a replica that records its reconciles. Those of an object with data never end.
async fn start(client: kube::Client, by: ShardKey, name: &str) -> (Run, Times) {
    let times = Times::default();
    let reconciled = times.clone();
    let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        let name = map.metadata.name.clone().unwrap();
        reconciled.lock().push((name, Instant::now()));
        async move {
            if map.data.is_some() {
                std::future::pending::<()>().await;
            }
            Ok::<_, Error>(Action::await_change())
        }
    });
    let controller = controller.max_concurrent_reconciles(OBJECTS);
    let setup = |manager: Manager| manager.controller(controller);
    (
        Run::start_client(client, sharding(by, name), setup).await,
        times,
    )
}

/// Two replicas that have divided the objects.
struct Divided {
    server: Server,
    /// Each replica with the objects that it owns.
    replicas: Vec<(Run, Times, BTreeSet<String>)>,
    /// Cuts the last replica off.
    cut: Arc<AtomicBool>,
}

async fn divided(by: ShardKey) -> Divided {
    let server = Server::new(&["configmaps", "leases"]);
    put_all(&server);
    let (client, cut) = cut_off(&server);
    let one = start(server.client(), by, "one").await;
    let two = start(client, by, "two").await;
    one.0.settle(DIVIDED).await;
    let mut replicas = Vec::new();
    for (run, times) in [one, two] {
        times.lock().clear();
        replicas.push((run, times, BTreeSet::new()));
    }
    put_all(&server);
    replicas[0].0.settle(MOMENT).await;
    for (_, times, own) in &mut replicas {
        let seen = std::mem::take(&mut *times.lock());
        own.extend(seen.into_iter().map(|(name, _)| name));
        assert!(!own.is_empty());
    }
    Divided {
        server,
        replicas,
        cut,
    }
}

impl Divided {
    /// Waits, and returns the time from `since` until the first replica has reconciled the last
    /// object of the second.
    async fn taken_over(&self, since: Instant) -> Duration {
        tokio::time::sleep(DIVIDED).await;
        let seen = std::mem::take(&mut *self.replicas[0].1.lock());
        let names: BTreeSet<_> = seen.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names, self.replicas[1].2, "only the objects that moved");
        seen.iter().map(|(_, time)| *time - since).max().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_a_replica_that_dies_are_reconciled_in_time() {
    for by in [ShardKey::Namespace, ShardKey::Uid] {
        let divided = divided(by).await;
        let since = Instant::now();
        divided.cut.store(true, Ordering::SeqCst);
        let time = divided.taken_over(since).await;
        assert!(time <= AFTER_CRASH, "{by:?}: {time:?}");
        // It was not a stop, so it waited for the Lease to expire.
        assert!(time > Duration::from_secs(10), "{by:?}: {time:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_a_replica_that_stops_are_reconciled_within_a_second() {
    for by in [ShardKey::Namespace, ShardKey::Uid] {
        let mut divided = divided(by).await;
        let since = Instant::now();
        divided.replicas[1].0.stop.cancel();
        let time = divided.taken_over(since).await;
        assert!(time <= Duration::from_secs(1), "{by:?}: {time:?}");
        divided.replicas.remove(0).0.stop().await.unwrap();
    }
}

/// Checks that a reconcile that never ends is ended, so that its slot can be given away.
#[tokio::test(start_paused = true)]
async fn a_reconcile_that_never_ends_does_not_keep_its_slot() {
    let divided = divided(ShardKey::Uid).await;
    let hung = divided.replicas[1].2.first().unwrap().clone();
    let number = hung.trim_start_matches("map-").parse().unwrap();
    let mut object = divided.server.get(&path(number)).unwrap();
    object["data"] = json!({"hang": "yes"});
    divided.server.put(&path(number), object);
    divided.replicas[0].0.settle(MOMENT).await;
    let since = Instant::now();
    divided.replicas[1].0.stop.cancel();
    let time = divided.taken_over(since).await;
    assert!(
        time > DRAIN / 2 && time <= DRAIN + Duration::from_secs(1),
        "{time:?}"
    );
}

/// Checks that all work ends when a person deletes the ring, and that the slots are divided again
/// after the duration of a Lease.
#[tokio::test(start_paused = true)]
async fn a_ring_that_is_deleted_is_created_again_after_a_lease() {
    let divided = divided(ShardKey::Uid).await;
    let ring = "/apis/coordination.k8s.io/v1/namespaces/d/leases/test";
    divided.server.delete(ring);
    tokio::time::sleep(Duration::from_secs(10)).await;
    put_all(&divided.server);
    tokio::time::sleep(MOMENT).await;
    for (_, times, _) in &divided.replicas {
        assert_eq!(times.lock().len(), 0, "no replica owns a slot");
    }
    assert!(divided.server.get(ring).is_none());
    tokio::time::sleep(DIVIDED).await;
    for (_, times, _) in &divided.replicas {
        times.lock().clear();
    }
    put_all(&divided.server);
    tokio::time::sleep(DIVIDED).await;
    let seen = divided
        .replicas
        .iter()
        .map(|(_, times, _)| times.lock().clone());
    let mut names: Vec<_> = seen.flatten().map(|(name, _)| name).collect();
    names.sort();
    assert!(names.iter().eq(all().iter()), "{names:?}");
    for (run, ..) in divided.replicas {
        run.stop().await.unwrap();
    }
}

/// Returns a client whose lists of config maps get no response while the flag is set.
fn without_lists(server: &Server) -> (kube::Client, Arc<AtomicBool>) {
    let (inner, cut) = (server.client(), Arc::new(AtomicBool::new(false)));
    let is_cut = cut.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, is_cut) = (inner.clone(), is_cut.clone());
        async move {
            let is_list = request.uri().path().ends_with("/configmaps");
            while is_list && is_cut.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            inner.send(request).await
        }
    });
    (kube::Client::new(service, "default"), cut)
}

/// Checks that a replica reconciles no object of new slots before it has listed them, and that it
/// does so as soon as it can.
#[tokio::test(start_paused = true)]
async fn slots_are_served_when_their_objects_are_listed() {
    let server = Server::new(&["configmaps", "leases"]);
    put_all(&server);
    let (client, cut) = without_lists(&server);
    let one = start(client, ShardKey::Uid, "one").await;
    let two = start(server.client(), ShardKey::Uid, "two").await;
    one.0.settle(DIVIDED).await;
    cut.store(true, Ordering::SeqCst);
    let of_two = {
        two.1.lock().clear();
        put_all(&server);
        two.0.settle(MOMENT).await;
        two.1.lock().len()
    };
    assert!(of_two > 0 && of_two < OBJECTS);
    one.1.lock().clear();
    two.0.stop().await.unwrap();
    tokio::time::sleep(DIVIDED * 5).await;
    assert_eq!(one.1.lock().len(), 0, "it cannot list the objects");
    cut.store(false, Ordering::SeqCst);
    tokio::time::sleep(DIVIDED).await;
    let names: BTreeSet<_> = one.1.lock().iter().map(|(name, _)| name.clone()).collect();
    assert!(names.len() >= of_two, "{names:?}");
    one.0.stop().await.unwrap();
}
