//! Replicas that divide slots among them.

mod operators;

use std::collections::BTreeSet;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use opkit::client::{Effect, RestClient, Rule, Seam};
use opkit::prelude::*;
use opkit_controller::{LeaderElectionOptions, OwnedSlots, ShardMember, SlotAssignment};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const RING: &str = "shop-operator.opkit.dev";

/// One of several replicas, all in this process.
struct Replica {
    identity: String,
    seam: Seam,
    slots: OwnedSlots,
    assignment: watch::Receiver<SlotAssignment>,
    stop: CancellationToken,
    run: JoinSet<()>,
}

/// Times of a Lease that expires soon after the death of its holder, and that a holder renews even
/// if a busy machine delays it for some seconds.
const SHORT: [Duration; 3] = [
    Duration::from_secs(6),
    Duration::from_secs(4),
    Duration::from_millis(500),
];
/// Times of a Lease that no holder loses during a test.
const LONG: [Duration; 3] = [
    Duration::from_secs(60),
    Duration::from_secs(45),
    Duration::from_millis(500),
];

impl Replica {
    fn start(plane: &ControlPlane, identity: &str, times: [Duration; 3]) -> opkit::Result<Self> {
        let seam = Seam::new();
        let client = seam.wrap(plane.client());
        let mut options = LeaderElectionOptions::new(RING);
        options.namespace = Some(plane.namespace().to_owned());
        options.identity = Some(identity.to_owned());
        let [lease, renew, retry] = times;
        options = options.timings(lease, renew, retry);
        let member = ShardMember::try_new(RestClient::new(client), options)?;
        let slots = member.slots();
        let stop = CancellationToken::new();
        let mut run = JoinSet::new();
        run.spawn(member.run(stop.clone()));
        let (mut assignment, own) = (slots.subscribe(), slots.clone());
        // There are no caches to fill.
        run.spawn(async move {
            while assignment.changed().await.is_ok() {
                let assignment = assignment.borrow_and_update().clone();
                own.serve(&assignment);
            }
        });
        Ok(Self {
            identity: identity.to_owned(),
            seam,
            assignment: slots.subscribe(),
            slots,
            stop,
            run,
        })
    }

    fn owned(&self) -> BTreeSet<u32> {
        self.assignment.borrow().owned.clone()
    }
}

/// Waits until the replicas own all slots in equal shares, and checks all the time that no slot has
/// two owners.
async fn until_divided(replicas: &[&Replica]) -> u32 {
    let divided = async {
        loop {
            check_owners(replicas);
            let (assignments, counts): (Vec<_>, Vec<_>) = (replicas.iter())
                .map(|it| (it.assignment.borrow().clone(), it.owned().len() as u32))
                .unzip();
            let of = assignments.first().map_or(0, |it| it.of);
            let (least, most) = (counts.iter().min(), counts.iter().max());
            let is_even = least
                .zip(most)
                .is_some_and(|(least, most)| most - least <= 1);
            if is_even && of > 0 && counts.iter().sum::<u32>() == of {
                return of;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let divided = tokio::time::timeout(Duration::from_secs(60), divided).await;
    divided.expect("the slots are divided in time")
}

/// Checks that no two replicas let work on an object begin.
fn check_owners(replicas: &[&Replica]) {
    for hash in (0..64).map(|part| part << 58) {
        // A slot whose permit is held cannot be given away.
        let permits = replicas.iter().filter_map(|it| {
            let permit = it.slots.begin(hash)?;
            Some((it.identity.clone(), permit))
        });
        let permits: Vec<_> = permits.collect();
        let lost = permits
            .iter()
            .any(|(_, permit)| permit.lost().is_cancelled());
        let owners: Vec<_> = permits.iter().map(|(identity, _)| identity).collect();
        assert!(owners.len() <= 1 || lost, "{hash:x} is owned by {owners:?}");
    }
}

#[opkit::test]
async fn replicas_divide_the_slots(plane: ControlPlane) -> opkit::Result {
    let one = Replica::start(&plane, "one", LONG)?;
    let of = until_divided(&[&one]).await;
    assert_eq!(of, 8);
    let lease: Lease = plane.get(RING).await?.expect("the ring");
    assert!(lease.annotations()["opkit.dev/slots"].contains("\"identity\":\"one\""));

    let two = Replica::start(&plane, "two", LONG)?;
    let mut three = Replica::start(&plane, "three", LONG)?;
    let of = until_divided(&[&one, &two, &three]).await;
    assert_eq!(of, 32);
    let members = one.assignment.borrow().members.clone();
    let names: BTreeSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["one", "three", "two"].into());
    assert_eq!(members.iter().map(|(_, count)| count).sum::<u32>(), of);

    // A clean stop gives the slots away before the Lease is released, and deletes the Lease.
    let before = (one.owned(), two.owned());
    three.stop.cancel();
    three.run.join_next().await;
    until_divided(&[&one, &two]).await;
    assert!(before.0.is_subset(&one.owned()) && before.1.is_subset(&two.owned()));
    let leases: kube::Api<Lease> = kube::Api::default_namespaced(plane.client());
    let params = ListParams::default().labels(&format!("opkit.dev/ring={RING}"));
    assert_eq!(leases.list(&params).await?.items.len(), 3);
    Ok(())
}

#[opkit::test]
async fn the_slots_of_a_dead_replica_are_taken(plane: ControlPlane) -> opkit::Result {
    let one = Replica::start(&plane, "one", SHORT)?;
    let mut two = Replica::start(&plane, "two", SHORT)?;
    until_divided(&[&one, &two]).await;
    // Dropped without a stop, as in a crash: the Lease stays until it expires.
    two.run.abort_all();
    while two.run.join_next().await.is_some() {}
    assert!(two.owned().is_empty() && two.slots.begin(0).is_none());
    until_divided(&[&one]).await;
    assert_eq!(one.assignment.borrow().members.len(), 1);
    Ok(())
}

#[opkit::test]
async fn a_replica_without_a_connection_loses_its_slots_and_comes_back(
    plane: ControlPlane,
) -> opkit::Result {
    let (one, two) = (
        Replica::start(&plane, "one", SHORT)?,
        Replica::start(&plane, "two", SHORT)?,
    );
    until_divided(&[&one, &two]).await;
    let hash = (0..64)
        .map(|part| part << 58)
        .find(|hash| two.slots.serves(*hash));
    let permit = two
        .slots
        .begin(hash.expect("a slot of the replica"))
        .expect("a permit");
    let (fence, lost) = (permit.fence().clone(), permit.lost().clone());
    assert_eq!(fence.check(), Ok(()));
    two.seam.add(Rule::new(Effect::Refuse));
    lost.cancelled().await;
    assert!(fence.check().is_err());
    let mut taken = one.assignment.clone();
    let all = taken.wait_for(|it| it.of > 0 && it.owned.len() as u32 == it.of);
    let all = tokio::time::timeout(Duration::from_secs(60), all).await;
    drop(all.expect("in time").expect("the replica runs"));
    check_owners(&[&one, &two]);
    drop(permit);
    two.seam.clear_rules();
    until_divided(&[&one, &two]).await;
    assert!(two.assignment.borrow().term > Some(1));
    Ok(())
}
