//! Stand-in for an API server: serves lists in pages or streaming, and watches, over plain
//! HTTP/1.1, from bytes that were prepared before the first request. It costs its clients almost
//! nothing, so that mostly the client is measured.
//!
//! `/go?events=N` sends N changes to every watch. With `&rate=R` it sends R of them per second,
//! each with the time at which it was sent, in nanoseconds since 1970, as its resourceVersion.
//! `/expire` ends every watch with 410. `/ready` responds once there is a watch that has received
//! all objects it requested.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use crate::data::Kind;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Version of all objects at the start. The changes come after it.
const VERSION: u64 = 300_000_000;
const NOT_FOUND: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not found","reason":"NotFound","code":404}"#;
/// Number of bytes that are written at once.
const WRITE: usize = 64 << 10;

/// Returns the version of the last of the first `events` changes.
pub fn version_after(events: u64) -> u64 {
    VERSION + events
}

/// Sends a command to a stand-in server.
///
/// # Errors
/// If it does not respond.
pub async fn order(port: u16, path: &str) -> std::io::Result<()> {
    let mut connection = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: stand-in\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    connection.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// Stand-in server in a separate process, which is stopped when this is dropped.
pub struct Server {
    process: Child,
    /// Port that it listens on.
    pub port: u16,
}

impl Server {
    /// Starts `program` with the argument `serve`, which must [`serve`] `objects` of a kind.
    ///
    /// # Errors
    /// If it does not start, or does not print its port.
    pub fn start(program: &Path, kind: Kind, objects: u64) -> std::io::Result<Self> {
        let mut process = Command::new(program)
            .args(["serve", &kind.to_string(), &objects.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port = line.trim().parse().map_err(std::io::Error::other)?;
        Ok(Self { process, port })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct State {
    kind: Kind,
    /// Objects in the form of list items.
    items: Vec<Bytes>,
    /// Objects in the form of events, split before and after the version.
    events: Vec<[Bytes; 3]>,
    orders: watch::Sender<Order>,
    /// Number of watches that wait for commands.
    waiting: watch::Sender<u32>,
    tasks: TaskTracker,
}

#[derive(Clone, Copy, Default)]
struct Order {
    number: u64,
    events: u64,
    /// Number of earlier changes.
    from: u64,
    /// Changes per second; `None` sends them as fast as the client reads.
    rate: Option<u64>,
    expire: bool,
}

/// Serves `count` objects of a kind on a free port until the process ends. Prints the port when
/// ready.
///
/// # Errors
/// If it cannot listen.
pub async fn serve(kind: Kind, count: u64) -> std::io::Result<()> {
    let tasks = TaskTracker::new();
    let state = Arc::new(State::new(kind, count, tasks.clone()));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        let state = state.clone();
        tasks.spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let state = state.clone();
                async move { Ok::<_, Infallible>(state.respond(&request).await) }
            });
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let io = TokioIo::new(connection);
            let _ = server.serve_connection(io, service).await;
        });
    }
}

impl State {
    fn new(kind: Kind, count: u64, tasks: TaskTracker) -> Self {
        let (mut items, mut events) = (Vec::new(), Vec::new());
        for object in kind.objects(count) {
            let text = object.to_string();
            let fields = &text[1..];
            // The real server omits the kind only in items of built-in kinds.
            items.push(match kind {
                Kind::Pods => Bytes::from(text.clone()),
                Kind::Robots => Bytes::from(format!("{{{}{fields}", kind.type_meta())),
            });
            let whole = format!("{{{}{fields}", kind.type_meta());
            let at = whole.find("\"resourceVersion\":\"").unwrap_or_default() + 19;
            events.push([
                Bytes::copy_from_slice(&whole.as_bytes()[..at]),
                Bytes::copy_from_slice(&whole.as_bytes()[at..at + 9]),
                Bytes::copy_from_slice(&whole.as_bytes()[at + 9..]),
            ]);
        }
        Self {
            kind,
            items,
            events,
            orders: watch::Sender::default(),
            waiting: watch::Sender::default(),
            tasks,
        }
    }

    async fn respond(self: &Arc<Self>, request: &Request<Incoming>) -> Response<Body> {
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.clone().find(|(n, _)| *n == name).map(|(_, v)| v)
        };
        let number = |name: &str| value(name).and_then(|value| value.parse::<u64>().ok());
        match request.uri().path() {
            "/go" => {
                let events = number("events").unwrap_or_default();
                let rate = number("rate").filter(|rate| *rate > 0);
                self.order(|order| (order.events, order.rate) = (events, rate));
                return Response::new(Full::default().boxed_unsync());
            }
            "/reset" => {
                self.orders.send_modify(|order| *order = Order::default());
                return Response::new(Full::default().boxed_unsync());
            }
            "/expire" => {
                self.order(|order| order.expire = true);
                return Response::new(Full::default().boxed_unsync());
            }
            "/ready" => {
                let mut waiting = self.waiting.subscribe();
                let _ = waiting.wait_for(|waiting| *waiting > 0).await;
                return Response::new(Full::default().boxed_unsync());
            }
            // Every access review is allowed.
            path if path.ends_with("/selfsubjectaccessreviews") => {
                return json(Full::from(r#"{"status":{"allowed":true}}"#).boxed_unsync());
            }
            path if !path.ends_with("/pods") && !path.ends_with("/robots") => {
                let mut response = json(Full::from(NOT_FOUND).boxed_unsync());
                *response.status_mut() = http::StatusCode::NOT_FOUND;
                return response;
            }
            _ => {}
        }
        let body = match value("watch") {
            Some("true" | "1") => self.watch(value("sendInitialEvents") == Some("true")),
            _ => self.list(number("limit"), number("continue").unwrap_or_default()),
        };
        json(body)
    }

    fn order(&self, change: impl FnOnce(&mut Order)) {
        self.orders.send_modify(|order| {
            order.from += order.events;
            order.events = 0;
            order.rate = None;
            order.expire = false;
            order.number += 1;
            change(order);
        });
    }

    fn list(&self, limit: Option<u64>, begin: u64) -> Body {
        let count = self.items.len() as u64;
        let end = match limit {
            Some(limit) if limit > 0 => count.min(begin + limit),
            _ => count,
        };
        let token = match end < count {
            true => format!(r#","continue":"{end}""#),
            false => String::new(),
        };
        let version = VERSION + self.orders.borrow().from;
        let mut pieces = Vec::new();
        let mut piece = Vec::with_capacity(WRITE * 2);
        piece.extend_from_slice(self.kind.list_head().as_bytes());
        let meta = format!(r#","metadata":{{"resourceVersion":"{version}"{token}}},"items":["#);
        piece.extend_from_slice(meta.as_bytes());
        for number in begin..end {
            if number > begin {
                piece.push(b',');
            }
            piece.extend_from_slice(&self.items[number as usize]);
            if piece.len() >= WRITE {
                let full = std::mem::replace(&mut piece, Vec::with_capacity(WRITE * 2));
                pieces.push(Bytes::from(full));
            }
        }
        piece.extend_from_slice(b"]}\n");
        pieces.push(Bytes::from(piece));
        let pieces = stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
        BodyExt::boxed_unsync(StreamBody::new(pieces))
    }

    fn watch(self: &Arc<Self>, initial: bool) -> Body {
        let (sender, receiver) = mpsc::channel(16);
        self.tasks.spawn(self.clone().send_events(initial, sender));
        let pieces = stream::unfold(receiver, |mut receiver| async move {
            let piece = receiver.recv().await?;
            Some((Ok(Frame::data(piece)), receiver))
        });
        BodyExt::boxed_unsync(StreamBody::new(pieces))
    }

    /// Sends the objects if `initial` is set, and then the ordered changes, until the client
    /// disconnects.
    async fn send_events(self: Arc<Self>, initial: bool, sender: mpsc::Sender<Bytes>) {
        let mut orders = self.orders.subscribe();
        let last = *orders.borrow_and_update();
        let mut writer = Writer {
            sender,
            piece: Vec::with_capacity(WRITE * 2),
        };
        let sent = self.initial(initial, last, &mut writer);
        if sent.await.is_none() {
            return;
        }
        self.waiting.send_modify(|waiting| *waiting += 1);
        loop {
            tokio::select! {
                () = writer.sender.closed() => break,
                changed = orders.changed() => if changed.is_err() { break },
            }
            let order = *orders.borrow_and_update();
            if self.execute(order, &mut writer).await.is_none() || order.expire {
                break;
            }
        }
        self.waiting.send_modify(|waiting| *waiting -= 1);
    }

    async fn initial(&self, expected: bool, last: Order, writer: &mut Writer) -> Option<()> {
        if !expected {
            return Some(());
        }
        for [before, version, after] in &self.events {
            writer.event("ADDED", &[before, version, after]).await?;
        }
        let version = VERSION + last.from + last.events;
        let bookmark = format!(
            r#"{{{}"metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#,
            self.kind.type_meta()
        );
        writer.event("BOOKMARK", &[bookmark.as_bytes()]).await?;
        writer.flush().await
    }

    async fn execute(&self, order: Order, writer: &mut Writer) -> Option<()> {
        let period = |rate: u64| Duration::from_nanos(1_000_000_000 / rate);
        let mut pace = order.rate.map(|rate| tokio::time::interval(period(rate)));
        for number in 0..order.events {
            let [before, _, after] = &self.events[(number % self.events.len() as u64) as usize];
            let version = match &mut pace {
                None => VERSION + order.from + number + 1,
                Some(pace) => {
                    pace.tick().await;
                    nanoseconds()
                }
            };
            let version = version.to_string();
            let parts: [&[u8]; 3] = [before, version.as_bytes(), after];
            writer.event("MODIFIED", &parts).await?;
            if pace.is_some() {
                writer.flush().await?;
            }
        }
        if order.expire {
            let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;
            writer.event("ERROR", &[status.as_bytes()]).await?;
        }
        writer.flush().await
    }
}

/// Returns the time in nanoseconds since 1970, which several processes on one machine can compare.
pub fn nanoseconds() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

fn json(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}

/// Writer of events in large pieces.
struct Writer {
    sender: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
}

impl Writer {
    async fn event(&mut self, kind: &str, object: &[&[u8]]) -> Option<()> {
        let head = format!(r#"{{"type":"{kind}","object":"#);
        self.piece.extend_from_slice(head.as_bytes());
        for part in object {
            self.piece.extend_from_slice(part);
        }
        self.piece.extend_from_slice(b"}\n");
        match self.piece.len() >= WRITE {
            true => self.flush().await,
            false => Some(()),
        }
    }

    async fn flush(&mut self) -> Option<()> {
        let full = std::mem::replace(&mut self.piece, Vec::with_capacity(WRITE * 2));
        self.sender.send(Bytes::from(full)).await.ok()
    }
}
