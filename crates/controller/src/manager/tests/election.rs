//! Two processes, one of which works.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::{AnyRunnable, LeaderElectionOptions, RunContext};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/d/leases/test";

/// A client whose requests get no answer while it is cut off.
fn cut_off(server: &Server) -> (kube::Client, Arc<AtomicBool>) {
    let (inner, cut) = (server.client(), Arc::new(AtomicBool::new(false)));
    let is_cut = cut.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, is_cut) = (inner.clone(), is_cut.clone());
        async move {
            if is_cut.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            inner.send(request).await
        }
    });
    (kube::Client::new(service, "default"), cut)
}

/// One candidate: what it reconciled, and what its runnable saw.
struct Candidate {
    run: Run,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Candidate {
    async fn start(name: &str, client: kube::Client) -> Self {
        let mut election = LeaderElectionOptions::new("test");
        election.namespace = Some("d".to_owned());
        election.identity = Some(name.to_owned());
        let options = ManagerOptions {
            leader_election: Some(election),
            ..Default::default()
        };
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (reconciled, fed) = (seen.clone(), seen.clone());
        let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
            let reconciled = reconciled.clone();
            async move {
                reconciled.lock().push("reconcile".to_owned());
                if map.data.is_some() {
                    // Works until it is dropped, and then wants to write.
                    let _guard = Dropped(reconciled.clone());
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                    cx.delete(&map).await?;
                }
                Ok(Action::await_change())
            }
        });
        let task = AnyRunnable::task("feed", move |cx: RunContext| {
            let fed = fed.clone();
            async move {
                fed.lock().push("feed starts".to_owned());
                cx.stopped().await;
                Ok(())
            }
        });
        let run = Run::start_client(client, options, |manager| {
            manager.controller(controller).runnable(task)
        })
        .await;
        Candidate { run, seen }
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock())
    }
}

struct Dropped(Arc<Mutex<Vec<String>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.lock().push("dropped".to_owned());
    }
}

fn holder(server: &Server) -> Value {
    server.get(LEASE).unwrap()["spec"]["holderIdentity"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_second_takes_over_when_the_first_is_stopped() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let one = Candidate::start("one", server.client()).await;
    one.run.settle(Duration::from_secs(1)).await;
    let two = Candidate::start("two", server.client()).await;
    two.run.settle(Duration::from_secs(60)).await;
    assert_eq!(one.seen(), ["feed starts", "reconcile"]);
    assert_eq!(two.seen(), Vec::<String>::new(), "ready, and standing by");
    assert_eq!(holder(&server), "one");
    let metrics = one.run.metrics.encode();
    assert!(
        metrics.contains(r#"leader_election_master_status{name="test"} 1"#),
        "{metrics}"
    );

    one.run.stop().await.unwrap();
    // Released: no need to wait for the lease to run out.
    two.run.settle(Duration::from_secs(5)).await;
    assert_eq!(two.seen(), ["feed starts", "reconcile"]);
    assert_eq!(holder(&server), "two");
    two.run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_is_cut_off_steps_down_writes_nothing_and_stands_again() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(
        MAP,
        json!({"metadata": object("one")["metadata"], "data": {"slow": "yes"}}),
    );
    let (client, cut) = cut_off(&server);
    let one = Candidate::start("one", client).await;
    one.run.settle(Duration::from_secs(5)).await;
    let two = Candidate::start("two", server.client()).await;
    two.run.settle(Duration::from_secs(5)).await;
    assert_eq!(one.seen(), ["feed starts", "reconcile"]);

    cut.store(true, Ordering::SeqCst);
    one.run.settle(Duration::from_secs(30)).await;
    assert_eq!(one.seen(), ["dropped"], "its work ended with its term");
    assert_eq!(two.seen(), ["feed starts", "reconcile"]);
    assert_eq!(holder(&server), "two");
    cut.store(false, Ordering::SeqCst);
    one.run.settle(Duration::from_secs(60)).await;
    assert_eq!(one.seen(), Vec::<String>::new(), "it stands by");

    // The object that it was at is reconciled again, in its second term.
    two.run.stop().await.unwrap_err();
    one.run.settle(Duration::from_secs(10)).await;
    assert_eq!(one.seen(), ["feed starts", "reconcile"]);
    let writes = server.writes();
    assert!(
        writes.iter().all(|write| !write.contains("configmaps")),
        "{writes:?}"
    );
    one.run.stop().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_released_after_the_work_has_ended() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let mut election = LeaderElectionOptions::new("test");
    election.namespace = Some("d".to_owned());
    election.identity = Some("one".to_owned());
    let options = ManagerOptions {
        leader_election: Some(election),
        ..Default::default()
    };
    let slow = AnyRunnable::task("slow", |cx: RunContext| async move {
        cx.stopped().await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        // Its writes still pass: the lease is held, and renewed.
        let maps = kube::Api::<ConfigMap>::namespaced(cx.client(), "d");
        maps.delete("one", &Default::default()).await?;
        Ok(())
    });
    let mut run = Run::start_with(&server, options, |manager| manager.runnable(slow)).await;
    run.settle(Duration::from_secs(5)).await;
    run.stop.cancel();
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(holder(&server), "one");
    run.task.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(holder(&server), "", "released");
    assert!(server.get(MAP).is_none(), "the last write passed");
}

#[tokio::test(start_paused = true)]
async fn who_is_stopped_before_it_led_starts_nothing() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let one = Candidate::start("one", server.client()).await;
    one.run.settle(Duration::from_secs(5)).await;
    let two = Candidate::start("two", server.client()).await;
    two.run.settle(Duration::from_secs(5)).await;
    two.run.stop().await.unwrap();
    assert!(two.seen.lock().is_empty());
    assert_eq!(holder(&server), "one");
    one.run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_election_is_no_cause_for_who_needs_no_leadership() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let mut election = LeaderElectionOptions::new("test");
    election.namespace = Some("d".to_owned());
    let options = ManagerOptions {
        leader_election: Some(election),
        ..Default::default()
    };
    let (client, cut) = cut_off(&server);
    let controller =
        |name: &str| counting(&Arc::default(), |_| Ok(Action::await_change())).named(name);
    let run = Run::start_client(client, options, |manager| {
        let others = controller("others").needs_leader_election(false);
        manager.controller(controller("leaders")).controller(others)
    })
    .await;
    run.settle(Duration::from_secs(5)).await;
    cut.store(true, Ordering::SeqCst);
    run.settle(Duration::from_secs(30)).await;
    cut.store(false, Ordering::SeqCst);
    run.settle(Duration::from_secs(60)).await;
    let records = run.log.records();
    let causes = |name: &str| {
        let of = records.iter().filter(|record| &*record.controller == name);
        of.flat_map(|record| record.causes()).collect::<Vec<_>>()
    };
    assert!(
        causes("leaders").contains(&"elected".to_owned()),
        "{records:?}"
    );
    assert!(
        !causes("others").contains(&"elected".to_owned()),
        "{records:?}"
    );
    run.stop().await.unwrap();
}
