//! The connections.
//!
//! A server allows a bounded number of requests on one HTTP/2 connection (kube-apiserver: 100), and
//! hyper lets further ones wait for a free place, which never comes when watches hold them all. So
//! there are lanes: each a connection of its own, the next one used when one is full, as Go's
//! transport does. A lane that is not used any more closes its connection after the pool's timeout.

mod ending;

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
use kube::client::{Body, ConfigExt};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Service};

pub(super) use self::ending::NotTaken;
use self::ending::{Noting, judge};
use super::dial::{Dialer, dialer};
use super::{Answer, TailedBody, boxed};
use crate::fence::{GuardedBody, guarded};

/// How many requests one connection carries at once; kube-apiserver's limit is 100, that of some
/// load balancers 128.
const STREAMS_MAX: usize = 96;
/// client-go pings after 30 s without a frame and gives the connection up 15 s later.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Go's: a slow reader of one watch must not hold up the others, so the connection has room for
/// all its requests together.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;
const IDLE_MAX: Duration = Duration::from_secs(90);

type Http = Client<Noting<TimeoutConnector<HttpsConnector<Dialer>>>, GuardedBody>;

/// Sends requests over the right connection.
#[derive(Clone)]
pub(super) struct Wire {
    lanes: Arc<Lanes>,
    /// In HTTP/1.1, for requests that change the protocol.
    upgrades: Http,
}

struct Lanes {
    lanes: Mutex<Vec<(Http, Arc<AtomicUsize>)>>,
    make: Box<dyn Fn() -> Http + Send + Sync>,
}

/// A place on a lane, free again when it is dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections to the server of `config`. None is opened yet.
pub(super) fn connect(config: &kube::Config, http2: bool) -> Result<Wire, Box<kube::Error>> {
    let dialer = dialer(config)?;
    // Once: it may run a program that asks somebody for a password.
    let tls = config.rustls_client_config().map_err(Box::new)?;
    let fixed = match config.tls_server_name.clone().map(TryInto::try_into) {
        Some(Ok(name)) => Some(name),
        Some(Err(cause)) => {
            let cause = kube::client::RustlsTlsError::InvalidServerName(cause);
            return Err(Box::new(kube::Error::RustlsTls(cause)));
        }
        None => None,
    };
    let connector = |protocols: &[&[u8]]| {
        let mut tls = tls.clone();
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let connector = match fixed.clone() {
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
        Noting(connector)
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
    let upgrades = builder.build(connector(&[b"http/1.1"]));
    let shared = if http2 {
        connector(&[b"h2", b"http/1.1"])
    } else {
        connector(&[b"http/1.1"])
    };
    let make = Box::new(move || builder.build(shared.clone()));
    let lanes = Arc::new(Lanes {
        lanes: Mutex::default(),
        make,
    });
    Ok(Wire { lanes, upgrades })
}

impl Lanes {
    /// The first lane with a free place; a new one if all are full. Filling the first ones first
    /// lets the last ones fall idle.
    fn take(&self) -> (Http, Place) {
        let mut lanes = self.lanes.lock();
        for (http, used) in lanes.iter() {
            if used.load(Ordering::Relaxed) < STREAMS_MAX {
                used.fetch_add(1, Ordering::Relaxed);
                return (http.clone(), Place(used.clone()));
            }
        }
        let (http, used) = ((self.make)(), Arc::new(AtomicUsize::new(1)));
        lanes.push((http.clone(), used.clone()));
        (http, Place(used))
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (request, held) = match guarded(request) {
            Ok(guarded) => guarded,
            Err(fenced) => return ready(Err(fenced.into())).boxed(),
        };
        if request.headers().contains_key(header::UPGRADE) {
            let answer = self.upgrades.request(request);
            return async move { Ok(answer.await?.map(boxed)) }.boxed();
        }
        let (http, place) = self.lanes.take();
        async move {
            let start = Instant::now();
            let answer = http.request(request).await;
            if let Some(fenced) = held.and_then(|held| held.get().copied()) {
                return Err(fenced.into());
            }
            let answer = answer.map_err(|error| judge(error, start.elapsed()))?;
            Ok(answer.map(|body| boxed(TailedBody::new(boxed(body), move |_| drop(place)))))
        }
        .boxed()
    }
}
