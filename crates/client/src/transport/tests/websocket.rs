//! exec, attach, port-forward and copies of files over WebSockets, with a server that plays a
//! kubelet.

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header;
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

type Stream = WebSocketStream<TokioIo<Upgraded>>;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// Ends the channel in the second byte, since version 5 of the protocol.
const CLOSE: u8 = 255;

/// Starts a server that upgrades each request to `protocol` and then calls `script` with the path
/// and query. Returns the pods of the server.
async fn serve<F>(
    protocol: &'static str,
    script: impl Fn(String, Stream) -> F + Clone + Send + Sync + 'static,
) -> (Api<Pod>, JoinSet<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let config = kube::Config::new(url.parse().unwrap());
    let client = ClientOptions::default().client(config).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let script = script.clone();
            connections.spawn(async move {
                let (sender, mut upgraded) = tokio::sync::mpsc::channel(1);
                let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
                    let target = request.uri().path_and_query().unwrap().to_string();
                    let key = request.headers()["sec-websocket-key"].as_bytes();
                    let response = Response::builder()
                        .status(101)
                        .header(header::UPGRADE, "websocket")
                        .header(header::CONNECTION, "Upgrade")
                        .header("sec-websocket-accept", derive_accept_key(key))
                        .header("sec-websocket-protocol", protocol)
                        .body(Body::empty());
                    let upgrade = hyper::upgrade::on(&mut request);
                    let _ = sender.try_send((target, upgrade));
                    async move { response }
                });
                let builder = hyper::server::conn::http1::Builder::new();
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                connection.with_upgrades().await.unwrap();
                let (target, upgrade) = upgraded.recv().await.unwrap();
                let stream = TokioIo::new(upgrade.await.unwrap());
                let stream = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
                script(target, stream).await;
            });
        }
    });
    (Api::namespaced(client, "default"), tasks)
}

/// Sends data on a channel.
async fn send(stream: &mut Stream, channel: u8, data: &[u8]) {
    let frame = [&[channel], data].concat();
    stream.send(Message::Binary(frame.into())).await.unwrap();
}

/// Returns the channel and the data of the next message; `None` at the end.
async fn receive(stream: &mut Stream) -> Option<(u8, Bytes)> {
    loop {
        match stream.next().await? {
            Ok(Message::Binary(mut frame)) => {
                let channel = frame.split_to(1)[0];
                return Some((channel, frame));
            }
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Reads the standard input to its end.
async fn stdin(stream: &mut Stream) -> Vec<u8> {
    let mut input = Vec::new();
    while let Some((channel, data)) = receive(stream).await {
        match channel {
            STDIN => input.extend(data),
            CLOSE => {
                assert_eq!(data[..], [STDIN]);
                break;
            }
            other => panic!("a message on the channel {other}"),
        }
    }
    input
}

async fn succeed(stream: &mut Stream) {
    let status = br#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#;
    send(stream, STATUS, status).await;
    let _ = stream.close(None).await;
}

async fn read(reader: Option<impl AsyncReadExt + Unpin>) -> Vec<u8> {
    let mut output = Vec::new();
    reader.unwrap().read_to_end(&mut output).await.unwrap();
    output
}

/// Returns the status with which a process ended.
async fn status(process: &mut AttachedProcess) -> kube::core::Status {
    let status = serde_json::to_value(process.take_status().unwrap().await.unwrap());
    serde_json::from_value(status.unwrap()).unwrap()
}

#[tokio::test]
async fn exec_has_the_streams_of_the_process() {
    let (pods, _tasks) = serve("v5.channel.k8s.io", |target, mut stream| async move {
        let (path, query) = target.split_once('?').unwrap();
        assert_eq!(path, "/api/v1/namespaces/default/pods/web/exec");
        for part in ["command=cat", "command=-n", "stdin=true", "container=main"] {
            assert!(query.split('&').any(|it| it == part), "{query}");
        }
        let input = stdin(&mut stream).await;
        send(&mut stream, STDERR, b"a warning").await;
        send(&mut stream, STDOUT, &input.to_ascii_uppercase()).await;
        succeed(&mut stream).await;
    })
    .await;
    let params = AttachParams::default().stdin(true).container("main");
    let mut process = pods.exec("web", ["cat", "-n"], &params).await.unwrap();
    let mut input = process.stdin().unwrap();
    let (stdout, stderr) = (process.stdout(), process.stderr());
    let write = async {
        input.write_all(b"hello ").await.unwrap();
        input.write_all(b"pod").await.unwrap();
        // The end of the input, after which the output still arrives. Dropping it is no end.
        input.shutdown().await.unwrap();
    };
    let ((), stdout, stderr) = tokio::join!(write, read(stdout), read(stderr));
    assert_eq!(stdout, b"HELLO POD");
    assert_eq!(stderr, b"a warning");
    let ended = status(&mut process).await;
    assert!(ended.is_success(), "{ended:?}");
    process.join().await.unwrap();
}

#[tokio::test]
async fn the_exit_code_of_a_process_is_in_its_status() {
    let (pods, _tasks) = serve("v4.channel.k8s.io", |_, mut stream| async move {
        let status = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": "NonZeroExitCode", "message": "command terminated with exit code 3",
            "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
        });
        send(&mut stream, STATUS, status.to_string().as_bytes()).await;
        let _ = stream.close(None).await;
    })
    .await;
    let params = AttachParams::default();
    let mut process = pods.exec("web", ["false"], &params).await.unwrap();
    let ended = status(&mut process).await;
    assert_eq!(ended.reason, "NonZeroExitCode");
    assert_eq!(ended.details.unwrap().causes[0].message, "3");
}

#[tokio::test]
async fn attach_sends_the_size_of_the_terminal() {
    let (pods, _tasks) = serve("v5.channel.k8s.io", |target, mut stream| async move {
        assert!(
            target.starts_with("/api/v1/namespaces/default/pods/web/attach?"),
            "{target}"
        );
        assert!(target.contains("tty=true"), "{target}");
        let (channel, size) = receive(&mut stream).await.unwrap();
        assert_eq!(channel, RESIZE);
        send(&mut stream, STDOUT, &size).await;
        succeed(&mut stream).await;
    })
    .await;
    let params = AttachParams::interactive_tty();
    let mut process = pods.attach("web", &params).await.unwrap();
    let size = TerminalSize {
        width: 80,
        height: 24,
    };
    process.terminal_size().unwrap().send(size).await.unwrap();
    let output = read(process.stdout()).await;
    let size: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(size, serde_json::json!({"Width": 80, "Height": 24}));
}

#[tokio::test]
async fn ports_are_forwarded_with_their_errors() {
    let (pods, _tasks) = serve("v4.channel.k8s.io", |target, mut stream| async move {
        let (path, query) = target.split_once('?').unwrap();
        assert_eq!(path, "/api/v1/namespaces/default/pods/web/portforward");
        assert_eq!(query.trim_start_matches('&'), "ports=80%2C81");
        // Each port has a channel for data and one for errors, which start with the port.
        for (channel, port) in [(0, 80_u16), (1, 80), (2, 81), (3, 81)] {
            send(&mut stream, channel, &port.to_le_bytes()).await;
        }
        send(&mut stream, 3, b"connection refused").await;
        while let Some((channel, data)) = receive(&mut stream).await {
            send(&mut stream, channel, &data.to_ascii_uppercase()).await;
        }
    })
    .await;
    let mut forwarder = pods.portforward("web", &[80, 81]).await.unwrap();
    let refused = forwarder.take_error(81).unwrap().await;
    assert_eq!(refused.as_deref(), Some("connection refused"));
    let mut port = forwarder.take_stream(80).unwrap();
    for word in ["hello", "again"] {
        port.write_all(word.as_bytes()).await.unwrap();
        let mut reply = [0; 5];
        port.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply[..], *word.to_uppercase().as_bytes());
    }
}

/// `kubectl cp` runs `tar` in the container; so can a program.
#[tokio::test]
async fn files_are_copied_by_tar() {
    const SIZE: usize = 1 << 20;
    let archive = || (0..SIZE).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
    let (pods, _tasks) = serve("v5.channel.k8s.io", move |target, mut stream| async move {
        if target.contains("command=xf") {
            let input = stdin(&mut stream).await;
            let is_same = input == archive();
            send(&mut stream, STDOUT, is_same.to_string().as_bytes()).await;
        } else {
            for part in archive().chunks(10_000) {
                send(&mut stream, STDOUT, part).await;
            }
        }
        succeed(&mut stream).await;
    })
    .await;
    let params = AttachParams::default();
    let from_pod = ["tar", "cf", "-", "/data"];
    let mut process = pods.exec("web", from_pod, &params).await.unwrap();
    let stdout = process.stdout();
    assert!(read(stdout).await == archive());

    let params = params.stdin(true);
    let to_pod = ["tar", "xf", "-", "-C", "/data"];
    let mut process = pods.exec("web", to_pod, &params).await.unwrap();
    let (mut input, stdout) = (process.stdin().unwrap(), process.stdout());
    let write = async {
        input.write_all(&archive()).await.unwrap();
        input.shutdown().await.unwrap();
    };
    let ((), output) = tokio::join!(write, read(stdout));
    assert_eq!(output, b"true");
}
