//! Connections through proxies, which run in the test.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::tls::{listen, serve, text};
use super::*;

/// A proxy, and the requests to it.
struct Proxy {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy that calls `handle` for each connection.
    async fn start<F>(
        handle: impl Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(handle(stream, log.clone()));
            }
        });
        Self {
            port,
            requests,
            _tasks: tasks,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    /// Makes `config` use the proxy, as a kubeconfig with `proxy-url`.
    fn set(&self, config: &mut kube::Config, scheme: &str, user: &str) {
        let url = format!("{scheme}://{user}127.0.0.1:{}", self.port);
        config.proxy_url = Some(url.parse().unwrap());
    }
}

/// Serves one HTTP CONNECT. A request without credentials gets a 407.
async fn tunnel(mut client: impl AsyncRead + AsyncWrite + Unpin, log: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    log.lock().push(head.clone());
    if !head.contains(&STANDARD.encode("me:p@ss")) {
        let refused = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        client.write_all(refused).await.unwrap();
        return;
    }
    let target = head.split_whitespace().nth(1).unwrap();
    let mut server = TcpStream::connect(target).await.unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

/// Serves one connection of SOCKS 5 (RFC 1928), and resolves names itself. A user must have the
/// password `p@ss` (RFC 1929).
async fn socks(mut client: TcpStream, log: Arc<Mutex<Vec<String>>>) {
    let mut start = [0; 3];
    client.read_exact(&mut start).await.unwrap();
    assert_eq!(start[..2], [5, 1], "version 5 and one method");
    client.write_all(&[5, start[2]]).await.unwrap();
    let mut user = String::new();
    if start[2] == 2 {
        assert_eq!(client.read_u8().await.unwrap(), 1);
        user = field(&mut client).await;
        let is_right = field(&mut client).await == "p@ss";
        client.write_all(&[1, u8::from(!is_right)]).await.unwrap();
        if !is_right {
            return;
        }
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await.unwrap();
    assert_eq!(request[..3], [5, 1, 0], "connect");
    let host = match request[3] {
        1 => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await.unwrap();
            std::net::Ipv4Addr::from(address).to_string()
        }
        3 => field(&mut client).await,
        other => panic!("address of the type {other}"),
    };
    let port = client.read_u16().await.unwrap();
    log.lock().push(format!("{user} {host}:{port}"));
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else {
        // Connection refused.
        client
            .write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
            .await
            .unwrap();
        return;
    };
    client
        .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

/// Reads a text after its length.
async fn field(client: &mut TcpStream) -> String {
    let mut text = vec![0; client.read_u8().await.unwrap().into()];
    client.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

async fn error(config: &kube::Config) -> String {
    let client = ClientOptions::default().client(config.clone()).unwrap();
    let request = Request::get("/x").body(Body::empty()).unwrap();
    crate::one_line(&client.send(request).await.err().unwrap())
}

/// Sends a request and an upgrade, each over a connection of its own.
async fn check(config: &kube::Config) {
    let client = ClientOptions::default().client(config.clone()).unwrap();
    assert_eq!(text(&client, Request::get("/x")).await, "HTTP/2.0 1");
    let upgrade = Request::get("/x").header("upgrade", "websocket");
    assert_eq!(text(&client, upgrade).await, "HTTP/1.1 2");
}

#[tokio::test]
async fn a_proxy_is_used_with_its_credentials() {
    let (mut config, _tasks) = serve(&[b"h2", b"http/1.1"]).await;
    let proxy = Proxy::start(tunnel).await;
    proxy.set(&mut config, "http", "me:p%40ss@");
    check(&config).await;
    let authority = config.cluster_url.authority().unwrap();
    let requests = proxy.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert!(
            request.starts_with(&format!("CONNECT {authority} ")),
            "{request}"
        );
    }
    // The password is not in the message.
    proxy.set(&mut config, "http", "me:wrong@");
    let error = error(&config).await;
    let expected = format!(
        "cannot connect through the proxy http://127.0.0.1:{}: tunnel error: proxy authorization required",
        proxy.port
    );
    assert!(
        error.contains(&expected) && !error.contains("wrong"),
        "{error}"
    );
}

#[tokio::test]
async fn a_proxy_is_reached_over_tls() {
    let (mut config, _tasks) = serve(&[b"h2", b"http/1.1"]).await;
    let (acceptor, listener, of_proxy) = listen(&[]).await;
    drop(listener);
    let proxy = Proxy::start(move |stream, log| {
        let acceptor = acceptor.clone();
        async move {
            // A client that does not trust the proxy ends the handshake.
            if let Ok(stream) = acceptor.accept(stream).await {
                tunnel(stream, log).await;
            }
        }
    })
    .await;
    // The certificate of the proxy is for its name, and not for that of the API server.
    let url = format!("https://me:p%40ss@localhost:{}", proxy.port);
    config.proxy_url = Some(url.parse().unwrap());
    let error = error(&config).await;
    let expected = format!(
        "cannot connect through the proxy https://localhost:{}",
        proxy.port
    );
    assert!(
        error.contains(&expected) && error.contains("certificate"),
        "{error}"
    );
    // As in Go, the authorities of the cluster are those of the proxy.
    let roots = config.root_cert.as_mut().unwrap();
    roots.extend(of_proxy.root_cert.unwrap());
    check(&config).await;
    assert_eq!(proxy.requests().len(), 2);
}

#[tokio::test]
async fn a_socks_proxy_is_used_with_its_credentials() {
    let (mut config, _tasks) = serve(&[b"h2", b"http/1.1"]).await;
    let proxy = Proxy::start(socks).await;
    proxy.set(&mut config, "socks5", "");
    check(&config).await;
    let port = config.cluster_url.port_u16().unwrap();
    let direct = format!(" 127.0.0.1:{port}");
    assert_eq!(proxy.requests(), [direct.clone(), direct]);

    // The proxy resolves the name.
    let (mut config, _tasks) = serve(&[b"h2", b"http/1.1"]).await;
    let port = config.cluster_url.port_u16().unwrap();
    let url = format!("https://api.test:{port}");
    config.cluster_url = url.parse().unwrap();
    proxy.set(&mut config, "socks5", "m%65:p%40ss@");
    check(&config).await;
    assert_eq!(
        proxy.requests()[2..],
        [format!("me api.test:{port}"), format!("me api.test:{port}")]
    );

    proxy.set(&mut config, "socks5", "me:wrong@");
    let message = error(&config).await;
    let expected = format!(
        "cannot connect through the proxy socks5://127.0.0.1:{}",
        proxy.port
    );
    assert!(
        message.contains(&expected) && !message.contains("wrong"),
        "{message}"
    );
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for scheme in ["http", "https", "socks5"] {
        let mut config = kube::Config::new("https://api.test".parse().unwrap());
        config.proxy_url = Some(format!("{scheme}://127.0.0.1:{port}").parse().unwrap());
        let error = error(&config).await;
        let expected = format!("cannot connect through the proxy {scheme}://127.0.0.1:{port}");
        // hyper-util drops the cause for SOCKS.
        let cause = match scheme {
            "socks5" => "failed to create underlying connection",
            _ => "refused",
        };
        assert!(
            error.contains(&expected) && error.contains(cause),
            "{error}"
        );
    }
}
