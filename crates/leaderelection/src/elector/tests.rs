use std::pin::pin;

use http::{Method, Request as HttpRequest, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use opkit_client::{ClientOptions, RequestError, RetryOptions};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/shops/leases";

/// Connection of a client to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Good,
    /// Requests are lost without an error.
    LosesRequests,
    /// The server executes requests, and its responses are lost.
    LosesResponses,
}

/// Server with one Lease that counts all other writes.
#[derive(Debug, Clone, Default)]
struct Cluster {
    state: Arc<Mutex<ClusterState>>,
}

#[derive(Debug, Default)]
struct ClusterState {
    lease: Option<Value>,
    version: u64,
    /// Methods of the requests for the Lease, in order.
    requests: Vec<Method>,
    writes: usize,
}

impl Cluster {
    fn client(&self) -> (kube::Client, watch::Sender<Connection>) {
        let (connection, seen) = watch::channel(Connection::Good);
        let cluster = self.clone();
        let service = tower::service_fn(move |request: HttpRequest<Body>| {
            let (cluster, connection) = (cluster.clone(), *seen.borrow());
            async move {
                if connection == Connection::LosesRequests {
                    std::future::pending::<()>().await;
                }
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let (code, body) = cluster.handle(&head.method, head.uri.path(), &body);
                if connection == Connection::LosesResponses {
                    std::future::pending::<()>().await;
                }
                let body = Body::from(serde_json::to_vec(&body).unwrap());
                let response = Response::builder().status(code).body(body).unwrap();
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let options = ClientOptions::default();
        (options.in_process(service, "shops"), connection)
    }

    fn handle(&self, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
        let mut state = self.state.lock();
        if !path.starts_with(LEASES) {
            state.writes += 1;
            return (200, json!({}));
        }
        state.requests.push(method.clone());
        let status = |code: u16, reason: &str| {
            let body = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason});
            (code, body)
        };
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let lease = state.lease.clone();
        match (method.as_str(), lease) {
            ("GET", None) => return status(404, "NotFound"),
            ("GET", Some(lease)) => return (200, lease),
            ("POST", Some(_)) => return status(409, "AlreadyExists"),
            ("PUT", None) => return status(404, "NotFound"),
            ("PUT", Some(lease))
                if lease["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] =>
            {
                return status(409, "Conflict");
            }
            _ => {}
        }
        state.version += 1;
        let mut lease = body;
        lease["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.lease = Some(lease.clone());
        (200, lease)
    }

    fn lease(&self) -> Value {
        self.state.lock().lease.clone().unwrap_or_default()
    }

    fn holder(&self) -> String {
        let holder = self.lease()["spec"]["holderIdentity"].clone();
        holder.as_str().unwrap_or_default().to_owned()
    }

    fn requests(&self) -> Vec<Method> {
        std::mem::take(&mut self.state.lock().requests)
    }
}

/// Simulated process whose elector runs in a task.
struct Process {
    client: kube::Client,
    connection: watch::Sender<Connection>,
    leadership: watch::Receiver<Leadership>,
    work: LeaderWork,
    fence: Fence,
    watchdog: LeaderWatchdog,
    metrics: LeaderElectionMetrics,
    stop: CancellationToken,
    run: tokio::task::JoinSet<()>,
}

impl Process {
    fn start(cluster: &Cluster, identity: &str) -> Self {
        let (client, connection) = cluster.client();
        let mut options = LeaderElectionOptions::new("lease");
        options.namespace = Some("shops".to_owned());
        options.identity = Some(identity.to_owned());
        options.labels = [("app".to_owned(), "shop".to_owned())].into();
        let metrics = options.metrics.clone();
        let elector = LeaderElector::try_new(RestClient::new(client.clone()), options).unwrap();
        let (leadership, work, fence) = (elector.leadership(), elector.work(), elector.fence());
        let watchdog = elector.watchdog(Duration::from_secs(20));
        let stop = CancellationToken::new();
        let mut run = tokio::task::JoinSet::new();
        run.spawn(elector.run(stop.clone()));
        Self {
            client,
            connection,
            leadership,
            work,
            fence,
            watchdog,
            metrics,
            stop,
            run,
        }
    }

    /// Waits for a leadership, and returns the time that this took.
    async fn until(&mut self, wanted: Leadership) -> Duration {
        let start = Instant::now();
        let wait = self.leadership.wait_for(|now| *now == wanted);
        let waited = timeout(Duration::from_secs(120), wait).await;
        waited.expect("in time").unwrap();
        start.elapsed()
    }

    /// Sends a write of leader-only work that started in `term`.
    async fn write(&self, term: u64) -> Result<(), RequestError> {
        let client = RestClient::new(self.fence.for_term(term).layer(self.client.clone()));
        let request = client.request(Method::POST, "/api/v1/namespaces/shops/configmaps");
        request.json(&json!({})).bytes().await.map(drop)
    }

    fn metrics_text(&self) -> String {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }
}

const LEADING: fn(u64) -> Leadership = |term| Leadership::Leading { term };

#[tokio::test(start_paused = true)]
async fn the_first_one_leads_and_renews() {
    let cluster = Cluster::default();
    let mut one = Process::start(&cluster, "one");
    assert!(
        one.metrics_text()
            .contains(r#"leader_election_master_status{name="lease"} 0"#)
    );
    one.until(LEADING(1)).await;
    assert_eq!(cluster.requests(), [Method::GET, Method::POST]);
    let lease = cluster.lease();
    assert_eq!(lease["metadata"]["labels"]["app"], "shop");
    assert_eq!(lease["spec"]["holderIdentity"], "one");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
    assert!(
        one.metrics_text()
            .contains(r#"leader_election_master_status{name="lease"} 1"#)
    );
    one.write(1).await.unwrap();
    // There is one renewal every 2 s.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(*one.leadership.borrow(), LEADING(1));
    let requests = cluster.requests();
    assert!((299..=300).contains(&requests.len()), "{}", requests.len());
    assert!(requests.iter().all(|method| method == Method::PUT));
    one.watchdog.check().unwrap();
    // Another client writes a label.
    cluster.state.lock().version += 1;
    let version = cluster.state.lock().version.to_string();
    cluster.state.lock().lease.as_mut().unwrap()["metadata"]["resourceVersion"] = json!(version);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let requests = cluster.requests();
    assert!(requests.starts_with(&[Method::PUT, Method::GET, Method::PUT]));
    assert!(
        one.metrics_text()
            .contains(r#"leader_election_slowpath_total{name="lease"} 1"#)
    );
}

/// Checks that after a stop the Lease is renewed until the work has ended, and then released; the
/// next candidate leads within one acquire interval.
#[tokio::test(start_paused = true)]
async fn a_stop_releases_the_lease_after_the_work() {
    let cluster = Cluster::default();
    let mut one = Process::start(&cluster, "one");
    one.until(LEADING(1)).await;
    let mut two = Process::start(&cluster, "two");
    let work = one.work.begin(1).unwrap();
    one.stop.cancel();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*one.leadership.borrow(), LEADING(1));
    assert_eq!(cluster.holder(), "one");
    one.write(1).await.unwrap();
    // No new work can start, but guards of running work can be cloned.
    assert!(one.work.begin(1).is_none());
    let more = work.clone();
    drop(work);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.holder(), "one");
    drop(more);
    one.run.join_next().await.unwrap().unwrap();
    assert_eq!(cluster.holder(), "");
    assert_eq!(cluster.lease()["spec"]["leaseDurationSeconds"], 1);
    assert_eq!(*one.leadership.borrow(), Leadership::Standby);
    assert!(one.write(1).await.unwrap_err().is_fenced());
    let waited = two.until(LEADING(1)).await;
    assert!(waited < Duration::from_millis(4400), "{waited:?}");
    assert_eq!(cluster.lease()["spec"]["leaseTransitions"], 1);
}

/// cilium#42920: the leader could not renew, its work did not end, and it wrote while another
/// process was the leader. Here it is fenced, its watchdog fails, and it becomes a candidate again
/// once the work has ended.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_is_fenced_and_acquires_again() {
    let cluster = Cluster::default();
    let mut one = Process::start(&cluster, "one");
    one.until(LEADING(1)).await;
    let mut two = Process::start(&cluster, "two");
    let work = one.work.begin(1).unwrap();
    one.connection.send_replace(Connection::LosesRequests);
    let start = Instant::now();
    one.until(Leadership::Standby).await;
    // The last renewal was at most one retry period before.
    let lost = start.elapsed();
    assert!(
        lost >= Duration::from_secs(8) && lost <= Duration::from_secs(10),
        "{lost:?}"
    );
    assert!(
        one.metrics_text()
            .contains(r#"leader_election_master_status{name="lease"} 0"#)
    );
    two.until(LEADING(1)).await;
    let taken = start.elapsed();
    assert!(
        taken <= Duration::from_secs(15) + Duration::from_millis(2 * 4400),
        "{taken:?}"
    );
    // The connection is good again, and the work of the first term still runs.
    one.connection.send_replace(Connection::Good);
    let before = cluster.state.lock().writes;
    assert!(one.write(1).await.unwrap_err().is_fenced());
    assert_eq!(cluster.state.lock().writes, before);
    two.write(1).await.unwrap();
    one.watchdog.check().unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let error = one.watchdog.check().unwrap_err().to_string();
    assert!(error.contains("has not ended"), "{error}");
    drop(work);
    tokio::time::sleep(Duration::from_secs(10)).await;
    one.watchdog.check().unwrap();
    assert_eq!(*one.leadership.borrow(), Leadership::Standby);
    // The process can become the leader again.
    two.stop.cancel();
    one.until(LEADING(2)).await;
    assert!(one.write(1).await.unwrap_err().is_fenced());
    one.write(2).await.unwrap();
}

/// Checks a server that executes requests and whose responses are lost: no other process may lead,
/// and the holder leads again when it can read the Lease.
#[tokio::test(start_paused = true)]
async fn lost_responses_end_the_term_but_not_the_elector() {
    let cluster = Cluster::default();
    let mut one = Process::start(&cluster, "one");
    one.until(LEADING(1)).await;
    one.connection.send_replace(Connection::LosesResponses);
    one.until(Leadership::Standby).await;
    assert!(one.write(1).await.unwrap_err().is_fenced());
    // The elector does not end after hours without a response.
    tokio::time::sleep(Duration::from_secs(7200)).await;
    one.connection.send_replace(Connection::Good);
    let waited = one.until(LEADING(2)).await;
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    assert_eq!(cluster.lease()["spec"]["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn requests_to_an_unavailable_server_are_rate_limited() {
    let cluster = Cluster::default();
    let (mut one, mut two) = (
        Process::start(&cluster, "one"),
        Process::start(&cluster, "two"),
    );
    one.until(LEADING(1)).await;
    let requests = Arc::new(Mutex::new(0_u64));
    let counter = requests.clone();
    let service = tower::service_fn(move |_: HttpRequest<Body>| {
        *counter.lock() += 1;
        let response = Response::builder().status(503).body(Body::empty()).unwrap();
        async { Ok::<_, std::convert::Infallible>(response) }
    });
    let mut options = ClientOptions::default();
    options.retry = RetryOptions::never();
    let client = RestClient::new(options.in_process(service, "shops"));
    let mut options = LeaderElectionOptions::new("lease");
    options.namespace = Some("shops".to_owned());
    let elector = LeaderElector::try_new(client, options).unwrap();
    let stop = CancellationToken::new();
    let run = elector.run(stop.clone());
    assert!(timeout(Duration::from_secs(600), run).await.is_err());
    // One request every 2 s to 4.4 s for 10 minutes.
    let requests = *requests.lock();
    assert!((130..=300).contains(&requests), "{requests}");
    one.stop.cancel();
    two.until(LEADING(1)).await;
}

/// Checks that the fence closes if an elector is dropped or its task is stuck.
#[tokio::test(start_paused = true)]
async fn an_elector_that_does_not_run_does_not_lead() {
    let cluster = Cluster::default();
    let (client, _connection) = cluster.client();
    let elector = |identity: &str| {
        let mut options = LeaderElectionOptions::new("lease");
        options.namespace = Some("shops".to_owned());
        options.identity = Some(identity.to_owned());
        LeaderElector::try_new(RestClient::new(client.clone()), options).unwrap()
    };
    let one = elector("one");
    let (mut leadership, fence, watchdog) = (
        one.leadership(),
        one.fence(),
        one.watchdog(Duration::from_secs(20)),
    );
    let stop = CancellationToken::new();
    {
        let mut run = pin!(one.run(stop.clone()));
        tokio::select! {
            () = &mut run => panic!("the elector ended"),
            led = leadership.wait_for(|now| now.term().is_some()) => drop(led.unwrap()),
        }
        // The future is not polled.
        assert!(fence.check().is_ok());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(fence.check().is_err());
        assert!(watchdog.check().is_ok());
        tokio::time::advance(Duration::from_secs(26)).await;
        let error = watchdog.check().unwrap_err().to_string();
        assert!(error.contains("was not renewed for 36 s"), "{error}");
    }
    assert!(watchdog.check().is_ok());
    assert_eq!(*leadership.borrow(), Leadership::Standby);
    assert_eq!(cluster.holder(), "one");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_released_expires() {
    let cluster = Cluster::default();
    let (client, _connection) = cluster.client();
    let mut options = LeaderElectionOptions::new("lease");
    options.namespace = Some("shops".to_owned());
    options.release_on_cancel = false;
    let elector = LeaderElector::try_new(RestClient::new(client), options).unwrap();
    let (mut leadership, identity) = (elector.leadership(), elector.identity().to_owned());
    let mut holder = elector.holder();
    let stop = CancellationToken::new();
    let lead = async {
        leadership
            .wait_for(|now| now.term().is_some())
            .await
            .unwrap();
        holder.wait_for(|holder| *holder == identity).await.unwrap();
        stop.cancel();
    };
    tokio::join!(elector.run(stop.clone()), lead);
    assert_eq!(cluster.holder(), identity);
    let mut two = Process::start(&cluster, "two");
    let waited = two.until(LEADING(1)).await;
    assert!(waited >= Duration::from_secs(15) && waited < Duration::from_millis(15_000 + 4400));
}

#[test]
fn options_that_are_not_valid_are_rejected() {
    let cluster = Cluster::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _guard = runtime.enter();
    let (client, _connection) = cluster.client();
    let mut options = LeaderElectionOptions::new("lease");
    options.retry_period = Duration::from_secs(20);
    let error = LeaderElector::try_new(RestClient::new(client), options).unwrap_err();
    assert!(matches!(
        error,
        LeaderElectionError::Invalid {
            field: "renew_deadline",
            ..
        }
    ));
}
