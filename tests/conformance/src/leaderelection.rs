//! Two candidates for one Lease.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use opkit::client::{Client, Effect, Fence, RequestError, RestClient, Rule, Seam};
use opkit::prelude::*;
use opkit_controller::{LeaderElectionOptions, LeaderElector, LeaderWork, Leadership};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const LEASE: &str = "shop-operator.opkit.dev";

/// One of several candidates, all in this process.
struct Candidate {
    client: kube::Client,
    seam: Seam,
    leadership: watch::Receiver<Leadership>,
    work: LeaderWork,
    fence: Fence,
    stop: CancellationToken,
    run: JoinSet<()>,
}

impl Candidate {
    fn start(plane: &ControlPlane, identity: &str) -> opkit::Result<Self> {
        let seam = Seam::new();
        let client = seam.wrap(plane.client());
        let mut options = LeaderElectionOptions::new(LEASE);
        options.namespace = Some(plane.namespace().to_owned());
        options.identity = Some(identity.to_owned());
        options.lease_duration = Duration::from_secs(3);
        options.renew_deadline = Duration::from_secs(2);
        options.retry_period = Duration::from_millis(500);
        options.labels = [("app".to_owned(), "shop".to_owned())].into();
        let elector = LeaderElector::try_new(RestClient::new(client.clone()), options)?;
        let (leadership, work, fence) = (elector.leadership(), elector.work(), elector.fence());
        let stop = CancellationToken::new();
        let mut run = JoinSet::new();
        run.spawn(elector.run(stop.clone()));
        Ok(Self {
            client,
            seam,
            leadership,
            work,
            fence,
            stop,
            run,
        })
    }

    async fn until(&mut self, expected: Leadership) {
        let wait = self.leadership.wait_for(|now| *now == expected);
        let waited = tokio::time::timeout(Duration::from_secs(30), wait).await;
        waited
            .expect("the state is reached in time")
            .expect("the candidate runs");
    }

    /// Writes as work that started in `term`.
    async fn write(&self, term: u64, name: &str) -> Result<ConfigMap, RequestError> {
        let client = Client::new(self.fence.for_term(term).layer(self.client.clone()));
        let map = json!({"metadata": {"name": name}});
        client.create(&serde_json::from_value(map).unwrap()).await
    }
}

#[opkit::test]
async fn a_released_lease_is_taken_immediately(plane: ControlPlane) -> opkit::Result {
    let mut one = Candidate::start(&plane, "one")?;
    one.until(Leadership::Leading { term: 1 }).await;
    let lease: Lease = plane.get(LEASE).await?.expect("the lease");
    assert_eq!(lease.labels()["app"], "shop");
    let spec = lease.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("one"));
    assert_eq!(spec.lease_duration_seconds, Some(3));
    assert_eq!(spec.lease_transitions, Some(0));
    assert!(spec.acquire_time.is_some() && spec.renew_time.is_some());

    let mut two = Candidate::start(&plane, "two")?;
    let work = one.work.begin(1).expect("the term lasts");
    one.stop.cancel();
    // Work that has not finished may still write.
    one.write(1, "from-one").await?;
    assert_eq!(*two.leadership.borrow(), Leadership::Standby);
    drop(work);
    one.run.join_next().await.unwrap().unwrap();
    let released: Lease = plane.get(LEASE).await?.expect("the lease");
    let holder = released.spec.unwrap().holder_identity.unwrap_or_default();
    assert!(holder.is_empty() || holder == "two", "{holder}");
    // One acquire interval is at most 1.1 s; a Lease that was not released would take 3 s.
    let taken = two.until(Leadership::Leading { term: 1 });
    tokio::time::timeout(Duration::from_millis(2500), taken)
        .await
        .expect("the released Lease is taken immediately");
    assert!(one.write(1, "late").await.unwrap_err().is_fenced());
    two.write(1, "from-two").await?;
    let lease: Lease = plane.get(LEASE).await?.expect("the lease");
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(1));
    Ok(())
}

#[opkit::test]
async fn a_leader_that_is_cut_off_is_fenced(plane: ControlPlane) -> opkit::Result {
    let mut one = Candidate::start(&plane, "one")?;
    one.until(Leadership::Leading { term: 1 }).await;
    one.write(1, "from-one").await?;
    let work = one.work.begin(1).expect("the term lasts");
    let mut two = Candidate::start(&plane, "two")?;
    one.seam.add(Rule::new(Effect::Refuse));
    one.until(Leadership::Standby).await;
    two.until(Leadership::Leading { term: 1 }).await;

    // Requests pass again, but those of the lost term are still refused.
    one.seam.clear_rules();
    assert!(one.write(1, "late").await.unwrap_err().is_fenced());
    assert!(plane.get::<ConfigMap>("late").await?.is_none());
    two.write(1, "from-two").await?;

    // The process becomes a candidate again once its work has finished, and leads when the other
    // one has stopped.
    drop(work);
    two.stop.cancel();
    one.until(Leadership::Leading { term: 2 }).await;
    assert!(one.write(1, "late").await.unwrap_err().is_fenced());
    one.write(2, "again").await?;
    let lease: Lease = plane.get(LEASE).await?.expect("the lease");
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(2));
    Ok(())
}
