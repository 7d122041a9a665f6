//! Requests to a server that closes its connections, written frame by frame.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::tls::listen;
use super::*;

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;

/// The server's reaction to the first request on a connection.
#[derive(Clone, Copy)]
enum Ending {
    /// GOAWAY with an earlier stream; the connection stays open.
    Refused,
    /// GOAWAY with the stream of the request; the connection is closed without a response.
    Processed,
    /// The connection is closed without GOAWAY and response.
    Closed,
    /// A response.
    Response,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> (u8, u8) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await.unwrap();
    (head[3], head[4])
}

/// Serves one connection for each ending, one after the other. Returns a client and a counter of
/// requests.
async fn serve(endings: &'static [Ending]) -> (kube::Client, Arc<AtomicUsize>, JoinSet<()>) {
    let (acceptor, listener, config) = listen(&[b"h2"]).await;
    let count = Arc::new(AtomicUsize::new(0));
    let (counter, mut tasks) = (count.clone(), JoinSet::new());
    tasks.spawn(async move {
        let mut open = Vec::new();
        for ending in endings {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut preface = [0; 24];
            stream.read_exact(&mut preface).await.unwrap();
            stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
            loop {
                match read_frame(&mut stream).await {
                    (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, 1, 0, &[])).await.unwrap(),
                    (HEADERS, _) => break,
                    _ => {}
                }
            }
            counter.fetch_add(1, Ordering::Relaxed);
            let go_away = |last: u8| frame(GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, 0]);
            match ending {
                Ending::Refused => stream.write_all(&go_away(0)).await.unwrap(),
                Ending::Processed => {
                    stream.write_all(&go_away(1)).await.unwrap();
                    stream.shutdown().await.unwrap();
                    continue;
                }
                Ending::Closed => {
                    stream.shutdown().await.unwrap();
                    continue;
                }
                // 0x88 is `:status: 200` in HPACK. The flags are END_HEADERS and END_STREAM.
                Ending::Response => stream
                    .write_all(&frame(HEADERS, 5, 1, &[0x88]))
                    .await
                    .unwrap(),
            }
            stream.flush().await.unwrap();
            open.push(stream);
        }
        std::future::pending::<()>().await;
    });
    let client = ClientOptions::default().client(config).unwrap();
    (client, count, tasks)
}

async fn check(method: &str, endings: &'static [Ending], succeeds: bool, requests: usize) {
    let (client, count, _tasks) = serve(endings).await;
    let outcome = client.send(request(method, "/api/v1/pods")).await;
    assert_eq!(outcome.is_ok(), succeeds, "{method}");
    assert_eq!(count.load(Ordering::Relaxed), requests, "{method}");
}

#[tokio::test]
async fn what_the_server_did_not_take_is_sent_again() {
    for method in ["GET", "POST"] {
        check(method, &[Ending::Refused, Ending::Response], true, 2).await;
    }
}

#[tokio::test]
async fn what_the_server_may_have_taken_is_sent_again_only_to_read() {
    check("GET", &[Ending::Processed, Ending::Response], true, 2).await;
    check("POST", &[Ending::Processed, Ending::Response], false, 1).await;
    check("GET", &[Ending::Closed, Ending::Response], true, 2).await;
    check("DELETE", &[Ending::Closed, Ending::Response], false, 1).await;
}
