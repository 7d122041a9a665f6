//! Keepers on machines with wrong clocks, against an API server in this process. The clock of the
//! API server is the paused clock of tokio.

use std::convert::Infallible;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use opkit_client::ClientOptions;
use serde_json::json;
use tokio::task::JoinSet;

use super::*;
use crate::content::{Content, verify};

const START: i64 = 1_790_000_000;
const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;
const NAME: &str = "shop-webhook.shops.svc";

/// API server with one Secret.
#[derive(Debug, Clone)]
struct Server {
    state: Arc<Mutex<State>>,
    started: Instant,
}

#[derive(Debug, Default)]
struct State {
    secret: Option<Value>,
    version: u64,
    /// Error of the server's clock in seconds.
    skew: i64,
    /// Number of writes that are refused because another client was faster.
    conflicts: usize,
}

impl Server {
    fn new() -> Self {
        Self {
            state: Arc::default(),
            started: Instant::now(),
        }
    }

    fn now(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_secs()).unwrap();
        START + elapsed + self.state.lock().skew
    }

    fn client(&self) -> RestClient {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let query = head.uri.query().unwrap_or_default();
                let (code, body) = server.handle(&head.method, query, &body);
                let body = Body::from(serde_json::to_vec(&body).unwrap());
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        RestClient::new(ClientOptions::default().in_process(service, "shops"))
    }

    fn handle(&self, method: &Method, query: &str, body: &[u8]) -> (u16, Value) {
        let now = timestamp(self.now()).unwrap();
        let mut state = self.state.lock();
        let failed = |code: u16, reason: &str| {
            let status = json!({
                "kind": "Status", "status": "Failure", "code": code, "reason": reason,
                "message": reason,
            });
            (code, status)
        };
        if query.contains("watch=") {
            return failed(404, "NotFound");
        }
        let version = state
            .secret
            .as_ref()
            .map(|it| it["metadata"]["resourceVersion"].clone());
        if *method == Method::GET {
            return match &state.secret {
                Some(secret) => (200, secret.clone()),
                None => failed(404, "NotFound"),
            };
        }
        if let Some(conflicts) = state.conflicts.checked_sub(1) {
            state.conflicts = conflicts;
            return failed(409, "Conflict");
        }
        let mut secret: Value = serde_json::from_slice(body).unwrap();
        let sent = secret["metadata"].get("resourceVersion").cloned();
        if sent != version {
            return failed(409, "Conflict");
        }
        secret["metadata"]["managedFields"] =
            json!([{"manager": "shop-operator-webhook-ca", "time": now}]);
        if !query.contains("dryRun") {
            state.version += 1;
            secret["metadata"]["resourceVersion"] = json!(state.version.to_string());
            state.secret = Some(secret.clone());
        }
        (200, secret)
    }

    fn content(&self) -> Option<Content> {
        let secret = self.state.lock().secret.clone()?;
        Content::decode(secret.get("data")).ok()
    }

    /// Starts a keeper on a machine whose clock differs from the server's by `error` seconds.
    fn start(&self, replica: &str, error: i64, tasks: &mut JoinSet<()>) -> Running {
        let options = KeeperOptions {
            operator: "shop-operator".to_owned(),
            namespace: "shops".to_owned(),
            secret: "certificates".to_owned(),
            replica: replica.to_owned(),
            names: vec![NAME.to_owned()],
            targets: Vec::new(),
            periods: Periods::default(),
        };
        let (certificates, served) = watch::channel(None);
        let mut keeper = CertificateKeeper::new(self.client(), options, certificates);
        keeper.started.0 = timestamp(self.now() + error).unwrap();
        let health = Box::new(keeper.health());
        tasks.spawn(keeper.run(CancellationToken::new()));
        Running { served, health }
    }

    /// Checks that the certificate in the Secret is valid for an API server.
    fn verify(&self) {
        let content = self.content().unwrap();
        let serving = content.serving.as_ref().unwrap();
        let certificate = &serving.pair.certificate;
        verify(certificate, &content.bundle(), NAME, self.now()).unwrap();
        let age = self.now() - serving.dates.issued;
        assert!((0..60 * DAY).contains(&age), "issued {age} s ago");
    }
}

struct Running {
    served: watch::Receiver<Option<Arc<CertifiedKey>>>,
    health: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

async fn pass(seconds: i64) {
    sleep(Duration::from_secs(seconds.unsigned_abs())).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_with_a_wrong_clock_issues_certificates_of_the_servers_time() {
    for error in [-400 * DAY, -10 * HOUR, 10 * HOUR, 400 * DAY] {
        let (server, mut tasks) = (Server::new(), JoinSet::new());
        let mut replica = server.start("pod-1", error, &mut tasks);
        replica.served.wait_for(Option::is_some).await.unwrap();
        server.verify();
        let issued = server.content().unwrap().serving.unwrap().dates.issued;
        assert_eq!(issued, START, "{error}");
    }
}

/// A clock years ahead does not judge the certificates of the others as expired, and one years
/// behind does not judge them as certificates of the future.
#[tokio::test(start_paused = true)]
async fn a_replica_with_a_wrong_clock_leaves_valid_certificates() {
    for error in [-400 * DAY, -2 * HOUR, 2 * HOUR, 400 * DAY] {
        let (server, mut tasks) = (Server::new(), JoinSet::new());
        let mut good = server.start("pod-1", 0, &mut tasks);
        good.served.wait_for(Option::is_some).await.unwrap();
        let before = server.content().unwrap();
        // The others write the Secret whenever the replica wants to read the clock.
        server.state.lock().conflicts = 5;
        let mut wrong = server.start("pod-2", error, &mut tasks);
        wrong.served.wait_for(Option::is_some).await.unwrap();
        pass(2 * HOUR).await;
        let after = server.content().unwrap();
        assert_eq!(after.serving, before.serving, "{error}");
        assert_eq!(after.authorities, before.authorities, "{error}");
        let seen = after.replicas["pod-2"].seen;
        assert!((server.now() - seen).abs() < 600, "{error}: {seen}");
    }
}

/// Without the clock of the API server, nothing is decided; the reason is in the health check.
#[tokio::test(start_paused = true)]
async fn a_replica_that_cannot_read_the_servers_clock_does_nothing() {
    let (server, mut tasks) = (Server::new(), JoinSet::new());
    server.state.lock().conflicts = usize::MAX;
    let mut replica = server.start("pod-1", -400 * DAY, &mut tasks);
    pass(1).await;
    assert!(replica.served.borrow().is_none());
    assert_eq!(
        (replica.health)().unwrap_err(),
        "no webhook certificate: cannot read the clock of the API server: other replicas wrote \
         Secret shops/certificates at each attempt"
    );
    assert!(server.content().is_none());
    server.state.lock().conflicts = 0;
    replica.served.wait_for(Option::is_some).await.unwrap();
    server.verify();
    assert_eq!((replica.health)(), Ok(()));
}

/// The API server itself was wrong when the certificates were issued, and is corrected later.
#[tokio::test(start_paused = true)]
async fn certificates_are_replaced_after_the_servers_clock_was_corrected() {
    for (skew, is_replaced) in [
        (400 * DAY, true),
        (10 * HOUR, true),
        (HOUR / 2, false),
        (-10 * HOUR, false),
        (-400 * DAY, true),
    ] {
        let (server, mut tasks) = (Server::new(), JoinSet::new());
        server.state.lock().skew = skew;
        let mut replicas = [
            server.start("pod-1", 0, &mut tasks),
            server.start("pod-2", 0, &mut tasks),
        ];
        for replica in &mut replicas {
            replica.served.wait_for(Option::is_some).await.unwrap();
        }
        pass(10 * 60).await;
        let before = server.content().unwrap().serving;
        server.state.lock().skew = 0;
        // The keeper learns the time with its next report.
        pass(6 * 60).await;
        let after = server.content().unwrap().serving;
        assert_eq!(after != before, is_replaced, "{skew}");
        for replica in &replicas {
            assert_eq!((replica.health)(), Ok(()), "{skew}");
        }
        if is_replaced {
            server.verify();
        }
        // Reports do not stay in the future.
        let reports = server.content().unwrap().replicas;
        let is_near = |seen: i64| (server.now() - seen).abs() <= 6 * 60;
        assert!(
            reports.values().all(|it| is_near(it.seen)),
            "{skew}: {reports:?}"
        );
    }
}
