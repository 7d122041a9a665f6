//! HTTP/2 connections, which are off by default.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::{ConnectionSlot, HEADER_MAX_BYTES, MAX_CONNECTION_AGE, SHUTDOWN_GRACE_PERIOD};

/// Maximum number of requests that a connection has at the same time; Go's value.
const STREAMS_MAX: u32 = 250;

/// Tasks of the requests of one connection. They end with the connection.
#[derive(Clone, Default)]
struct RequestTasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for RequestTasks {
    fn execute(&self, request: F) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(request);
    }
}

/// Serves requests, several at the same time, until the connection is closed, too old, or the
/// server stops. The client learns which of its requests are served before the connection is
/// closed, so no request is lost.
pub(super) async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    slot: ConnectionSlot,
) {
    let (slot, tasks) = (Arc::new(slot), RequestTasks::default());
    let handling = slot.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let slot = handling.clone();
        async move { Ok::<_, Infallible>(slot.handle(request).await) }
    });
    let connection = http2::Builder::new(tasks.clone())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEADER_MAX_BYTES).unwrap_or(u32::MAX))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = slot.first_request_timeout() => None,
        () = slot.server.stop.cancelled() => None,
        () = sleep(MAX_CONNECTION_AGE) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            timeout(SHUTDOWN_GRACE_PERIOD, connection)
                .await
                .unwrap_or(Ok(()))
        }
    };
    tasks.0.lock().abort_all();
    if let Err(error) = ended {
        debug!(%error, "connection failed");
    }
}
