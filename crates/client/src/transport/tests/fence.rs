//! A fence that closes while a connection is being established.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::task::JoinSet;

use super::tls::listen;
use super::*;
use crate::{Fence, Fenced};

/// Sends a write over a slow connection. With `closes`, the fence closes before the connection is
/// established. Returns the number of complete requests that the server received.
async fn send(protocol: &'static [u8], closes: bool) -> (Result<(), Option<Fenced>>, usize) {
    let (acceptor, listener, config) = listen(&[protocol]).await;
    let fence = Fence::new();
    fence.open(1, fence.now() + std::time::Duration::from_secs(3600));
    let client = ClientOptions::default().client(config).unwrap();
    let client = fence.layer(client);
    let count = Arc::new(AtomicUsize::new(0));
    let (counter, mut tasks) = (count.clone(), JoinSet::new());
    tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // The client has passed all checks except the last, and waits for TLS.
        if closes {
            fence.close();
        }
        let stream = acceptor.accept(stream).await.unwrap();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let counter = counter.clone();
            async move {
                request.into_body().collect().await?;
                counter.fetch_add(1, Ordering::Relaxed);
                Ok::<_, hyper::Error>(Response::new(http_body_util::Empty::<bytes::Bytes>::new()))
            }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        let _ = builder
            .serve_connection(TokioIo::new(stream), service)
            .await;
    });
    let outcome = client.send(request("POST", "/api/v1/pods")).await;
    let outcome = outcome.map(drop).map_err(|error| Fenced::of(&error));
    // The server stops when the connection is closed, and has then received all requests.
    drop(client);
    if closes {
        tasks.join_next().await;
    }
    (outcome, count.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_write_does_not_leave_over_a_connection_that_came_too_late() {
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let (outcome, whole) = send(protocol, true).await;
        assert_eq!(outcome, Err(Some(Fenced::NotLeading)));
        assert_eq!(whole, 0);
        let (outcome, whole) = send(protocol, false).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(whole, 1);
    }
}
