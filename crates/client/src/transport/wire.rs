//! The connections to the server.
//!
//! A server limits the concurrent requests on one HTTP/2 connection (kube-apiserver: 100). hyper
//! delays further requests until a stream is free, which never happens if watches use all streams.
//! Requests are therefore distributed over lanes. A lane is an HTTP client with its own connection;
//! a request uses the first lane that is not full, as in Go's transport. An idle lane closes its
//! connection after [`IDLE_MAX`].

mod goaway;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use http::{Request, header};
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use parking_lot::{Mutex, MutexGuard};
use rustls::pki_types::ServerName;
use tokio::time::Instant;
use tower::{BoxError, Service};

pub(super) use self::goaway::NotProcessed;
use self::goaway::{TrackClose, classify};
use super::dial::{Dialer, dialer};
use super::{HttpResponse, OnEndBody, boxed, tls};
use crate::credentials::{Credentials, Identity};
use crate::fence::{GuardedBody, guard};

/// Maximum number of concurrent requests on one connection. kube-apiserver's limit is 100; some
/// load balancers have 128.
const STREAMS_MAX: usize = 96;
/// Time without an HTTP/2 frame after which the connection is pinged; client-go's value.
const PING_AFTER: Duration = Duration::from_secs(30);
/// Time to wait for the response to a ping before the connection is closed; client-go's value.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// HTTP/2 flow control window of one request, in bytes; Go's value.
const STREAM_WINDOW: u32 = 4 << 20;
/// HTTP/2 flow control window of one connection, in bytes; Go's value. The window exceeds the
/// windows of all requests of the connection together, so that a slow reader of one watch does not
/// delay the other requests.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Time after which an idle connection is closed; Go's default.
const IDLE_MAX: Duration = Duration::from_secs(90);

type Http = Client<TrackClose<TimeoutConnector<HttpsConnector<Dialer>>>, GuardedBody>;

/// Service that selects a connection for each request and sends the request.
#[derive(Clone)]
pub(crate) struct Wire {
    lanes: Arc<Lanes>,
}

struct Lanes {
    current: Mutex<CurrentLanes>,
    new_lane: Box<dyn Fn() -> Http + Send + Sync>,
    new_upgrades: Box<dyn Fn() -> Http + Send + Sync>,
    identity: Arc<Identity>,
}

/// The HTTP clients of one client certificate.
struct CurrentLanes {
    lanes: Vec<(Http, Arc<AtomicUsize>)>,
    /// HTTP/1.1 client for requests that upgrade to another protocol.
    upgrades: Http,
    /// Number of changes of the client certificate so far.
    changes: u64,
}

/// Permission to send one request on a lane, which is an HTTP client with its own connection.
/// Dropping the permit allows another request on the lane.
struct StreamPermit(Arc<AtomicUsize>);

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Creates the HTTP clients for the server in `config`. Opens no connection yet.
pub(crate) fn connect(
    config: &kube::Config,
    credentials: &Credentials,
    http2: bool,
) -> Result<Wire, BoxError> {
    let tls = tls::client_config(config, credentials)?;
    let dialer = dialer(config, &tls)?;
    let server_name = match config.tls_server_name.clone() {
        Some(name) => Some(
            ServerName::try_from(name.clone())
                .map_err(|_| BoxError::from(format!("{name:?} is not a valid TLS server name")))?,
        ),
        None => None,
    };
    let connector = |protocols: &[&[u8]]| {
        let mut tls = tls.clone();
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let connector = match server_name.clone() {
            Some(name) => HttpsConnector::new(
                dialer.clone(),
                tls,
                false,
                Arc::new(FixedServerNameResolver::new(name)),
            ),
            None => HttpsConnector::new(
                dialer.clone(),
                tls,
                false,
                Arc::new(DefaultServerNameResolver::default()),
            ),
        };
        let mut connector = TimeoutConnector::new(connector);
        connector.set_connect_timeout(config.connect_timeout);
        connector.set_read_timeout(config.read_timeout);
        connector.set_write_timeout(config.write_timeout);
        connector.set_reset_reader_on_write(config.reset_reader_on_write);
        TrackClose(connector)
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW);
    let old = connector(&[b"http/1.1"]);
    let shared = if http2 {
        connector(&[b"h2", b"http/1.1"])
    } else {
        old.clone()
    };
    let identity = credentials.identity().clone();
    let upgrades = builder.clone();
    let new_upgrades = Box::new(move || upgrades.build(old.clone()));
    let lanes = Arc::new(Lanes {
        current: Mutex::new(CurrentLanes {
            lanes: Vec::new(),
            upgrades: new_upgrades(),
            changes: identity.changes(),
        }),
        new_lane: Box::new(move || builder.build(shared.clone())),
        new_upgrades,
        identity,
    });
    Ok(Wire { lanes })
}

impl Lanes {
    /// Returns the first lane (an HTTP client with its own connection) that is not full, or a new
    /// lane if all are full. Because the first lanes are filled first, the last lanes can become
    /// idle.
    fn take(&self) -> (Http, StreamPermit) {
        let mut current = self.current();
        for (http, used) in &current.lanes {
            if used.load(Ordering::Relaxed) < STREAMS_MAX {
                used.fetch_add(1, Ordering::Relaxed);
                return (http.clone(), StreamPermit(used.clone()));
            }
        }
        let (http, used) = ((self.new_lane)(), Arc::new(AtomicUsize::new(1)));
        current.lanes.push((http.clone(), used.clone()));
        (http, StreamPermit(used))
    }

    /// Returns the clients of the current client certificate. Connections of an older certificate
    /// get no new requests, and are closed when their last request ends; client-go closes them at
    /// once, which breaks watches.
    fn current(&self) -> MutexGuard<'_, CurrentLanes> {
        let changes = self.identity.changes();
        let mut current = self.current.lock();
        if current.changes != changes {
            current.changes = changes;
            current.lanes.clear();
            current.upgrades = (self.new_upgrades)();
        }
        current
    }
}

impl Service<Request<Body>> for Wire {
    type Response = HttpResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<HttpResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (request, refusal) = match guard(request) {
            Ok(guarded) => guarded,
            Err(fenced) => return ready(Err(fenced.into())).boxed(),
        };
        if request.headers().contains_key(header::UPGRADE) {
            let response = self.lanes.current().upgrades.request(request);
            return async move { Ok(response.await?.map(boxed)) }.boxed();
        }
        let (http, permit) = self.lanes.take();
        async move {
            let start = Instant::now();
            let response = http.request(request).await;
            if let Some(fenced) = refusal.and_then(|refusal| refusal.get().copied()) {
                return Err(fenced.into());
            }
            let response = response.map_err(|error| classify(error, start.elapsed()))?;
            Ok(response.map(|body| boxed(OnEndBody::new(boxed(body), move |_| drop(permit)))))
        }
        .boxed()
    }
}
