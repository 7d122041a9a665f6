//! Two candidates for leadership.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::{AnyRunnable, LeaderElectionOptions, RunContext};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/d/leases/test";

/// Returns a client whose requests get no response while the flag is set.
pub(super) fn cut_off(server: &Server) -> (kube::Client, Arc<AtomicBool>) {
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

/// Returns the options of a candidate with this identity; `None` for the default identity.
pub(super) fn electing(identity: Option<&str>) -> ManagerOptions {
    let mut election = LeaderElectionOptions::new("test");
    election.namespace = Some("d".to_owned());
    election.identity = identity.map(ToOwned::to_owned);
    ManagerOptions {
        leader_election: Some(election),
        ..Default::default()
    }
}

/// A candidate, with the objects that it reconciled and the events of its runnable.
struct Candidate {
    run: Run,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Candidate {
    async fn start(name: &str, client: kube::Client) -> Self {
        let options = electing(Some(name));
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (reconciled, fed) = (seen.clone(), seen.clone());
        let controller = Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
            let reconciled = reconciled.clone();
            async move {
                reconciled.lock().push("reconcile".to_owned());
                if map.data.is_some() {
                    // Works until it is dropped, and then tries to write.
                    let _guard = Dropped(reconciled.clone());
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                    cx.delete(&map).await?;
                }
                Ok::<_, Error>(Action::await_change())
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
        Self { run, seen }
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
    assert_eq!(two.seen(), Vec::<String>::new(), "ready, and a candidate");
    assert_eq!(holder(&server), "one");
    let metrics = one.run.metrics.encode();
    assert!(
        metrics.contains(r#"leader_election_master_status{name="test"} 1"#),
        "{metrics}"
    );

    one.run.stop().await.unwrap();
    // The lease was released: there is no need to wait for its expiry.
    two.run.settle(Duration::from_secs(5)).await;
    assert_eq!(two.seen(), ["feed starts", "reconcile"]);
    assert_eq!(holder(&server), "two");
    two.run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_leader_steps_down_writes_nothing_and_is_a_candidate_again() {
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
    assert_eq!(one.seen(), ["dropped"], "its work stopped with its term");
    assert_eq!(two.seen(), ["feed starts", "reconcile"]);
    assert_eq!(holder(&server), "two");
    cut.store(false, Ordering::SeqCst);
    one.run.settle(Duration::from_secs(60)).await;
    assert_eq!(one.seen(), Vec::<String>::new(), "it is a candidate");

    // The object that was being reconciled is reconciled again in the second term.
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
    let options = electing(Some("one"));
    let slow = AnyRunnable::task("slow", |cx: RunContext| async move {
        cx.stopped().await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        // Its writes still pass: the lease is held and renewed.
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
async fn a_candidate_that_is_stopped_before_it_leads_starts_nothing() {
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
async fn an_election_does_not_requeue_controllers_that_need_no_leadership() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let options = electing(None);
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

/// The state of these tests, which contains a client.
struct App {
    client: kube::Client,
}

impl App {
    /// Writes like a task that the state spawned.
    async fn write(&self) -> Result<(), kube::Error> {
        let maps = kube::Api::<ConfigMap>::namespaced(self.client.clone(), "d");
        let patch = json!({"metadata": {"labels": {"written": "yes"}}});
        let patch = kube::api::Patch::Merge(patch);
        maps.patch("one", &Default::default(), &patch)
            .await
            .map(drop)
    }
}

/// The states that were created and read, in order.
#[derive(Clone, Default)]
struct Apps {
    created: Arc<Mutex<usize>>,
    read: Arc<Mutex<Vec<Arc<App>>>>,
}

impl Apps {
    fn give(&self, manager: Manager) -> Manager {
        let created = self.created.clone();
        manager.state_with(move |cx| {
            *created.lock() += 1;
            async move {
                Ok::<_, Error>(App {
                    client: cx.client(),
                })
            }
        })
    }

    /// Returns a controller that reads the state.
    fn reader(&self) -> Controller<ConfigMap, App> {
        let read = self.read.clone();
        Controller::new(move |_: Arc<ConfigMap>, app: Arc<App>| {
            read.lock().push(app);
            async { Ok::<_, Error>(Action::await_change()) }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_of_a_state_belongs_to_its_term() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let apps = Apps::default();
    let (client, cut) = cut_off(&server);
    let run = Run::start_client(client, elected(), |manager| {
        apps.give(manager).controller(apps.reader())
    })
    .await;
    run.settle(Duration::from_secs(1)).await;
    let first = apps.read.lock().first().unwrap().clone();
    first.write().await.unwrap();

    // The same process loses the lease and acquires it again.
    cut.store(true, Ordering::SeqCst);
    run.settle(Duration::from_secs(60)).await;
    cut.store(false, Ordering::SeqCst);
    run.settle(Duration::from_secs(60)).await;
    let second = apps.read.lock().last().unwrap().clone();
    second.write().await.unwrap();
    let error = first.write().await.unwrap_err();
    let fenced = opkit_client::Fenced::of(&error);
    assert_eq!(fenced, Some(opkit_client::Fenced::TermOver { term: 1 }));
    assert_eq!(*apps.created.lock(), 2, "once for each term");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_needs_no_leadership_has_a_state_that_always_writes() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let apps = Apps::default();
    let (client, _) = cut_off(&server);
    // Another process holds the lease.
    let other = Candidate::start("other", server.client()).await;
    other.run.settle(Duration::from_secs(1)).await;
    let run = Run::start_client(client, elected(), |manager| {
        let reader = apps.reader().needs_leader_election(false);
        apps.give(manager).controller(reader)
    })
    .await;
    run.settle(Duration::from_secs(1)).await;
    let app = apps.read.lock().first().unwrap().clone();
    app.write().await.unwrap();
    assert_eq!(*apps.created.lock(), 1);
    run.stop().await.unwrap();
    other.run.stop().await.unwrap();
}

/// Options of a candidate for the lease of these tests.
fn elected() -> ManagerOptions {
    let mut election = LeaderElectionOptions::new("test");
    election.namespace = Some("d".to_owned());
    ManagerOptions {
        leader_election: Some(election),
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_not_created_in_its_term_is_dropped() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let (client, cut) = cut_off(&server);
    let created: Arc<Mutex<usize>> = Arc::default();
    let counted = created.clone();
    let run = Run::start_client(client, elected(), |manager| {
        let manager = manager.state_with(move |cx| {
            *counted.lock() += 1;
            let hangs = *counted.lock() == 1;
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                let client = cx.client();
                Ok::<_, Error>(App { client })
            }
        });
        manager.controller(Apps::default().reader())
    })
    .await;
    run.settle(Duration::from_secs(1)).await;
    cut.store(true, Ordering::SeqCst);
    run.settle(Duration::from_secs(60)).await;
    cut.store(false, Ordering::SeqCst);
    run.settle(Duration::from_secs(60)).await;
    assert_eq!(*created.lock(), 2);
    assert_eq!(run.log.total(), 1);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_state_that_fails_ends_the_manager() {
    let server = Server::new(&["configmaps", "leases"]);
    let manager = Manager::new("test", server.client(), elected())
        .state_with(|_| async { Err::<App, _>(Error::msg("no database")) })
        .controller(Apps::default().reader());
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    let error = Error::from(error).to_string();
    assert!(error.starts_with("cannot create the state "), "{error}");
    assert!(error.ends_with("App: no database"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_election_without_a_namespace_does_not_start() {
    let server = Server::new(&["configmaps", "leases"]);
    let mut options = elected();
    options.leader_election = Some(LeaderElectionOptions::new("test"));
    let manager = Manager::new("test", server.client(), options);
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    let error = Error::from(error).to_string();
    assert!(error.contains("--leader-election-namespace"), "{error}");
    assert!(error.contains("--leader-elect=false"), "{error}");
}

/// A new term does not requeue a deleted object, so its key must not be lost with the dropped work.
#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_with_its_term_is_queued_again() {
    let server = Server::new(&["configmaps", "leases"]);
    server.put(MAP, object("one"));
    let options = electing(None);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let controller = Controller::<ConfigMap>::keyed(move |request: crate::Request, cx: Context| {
        let log = log.clone();
        async move {
            if cx.get::<ConfigMap>(request.key().clone())?.is_some() {
                return Ok::<_, Error>(Action::await_change());
            }
            let is_first = log.lock().is_empty();
            log.lock().push("started".to_owned());
            if is_first {
                // Works until it is dropped.
                std::future::pending::<()>().await;
            }
            log.lock().push("cleaned up".to_owned());
            Ok(Action::await_change())
        }
    });
    let (client, cut) = cut_off(&server);
    let run = Run::start_client(client, options, |it| it.controller(controller)).await;
    run.settle(Duration::from_secs(5)).await;
    server.delete(MAP);
    run.settle(Duration::from_secs(1)).await;
    assert_eq!(*seen.lock(), ["started"]);
    cut.store(true, Ordering::SeqCst);
    run.settle(Duration::from_secs(30)).await;
    cut.store(false, Ordering::SeqCst);
    run.settle(Duration::from_secs(60)).await;
    assert_eq!(*seen.lock(), ["started", "started", "cleaned up"]);
    let last = run.log.records().pop().unwrap();
    assert_eq!(last.causes(), ["one deleted"], "with the cause that it had");
    run.stop().await.unwrap();
}
