//! Proxy for the part of HTTP/1.1 that Kubernetes clients use, which stores the exchanges.
//!
//! Each connection has one request: every response closes it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use differential::Reply;
use http::{HeaderMap, Request, Response, header};
use serde_json::Value;

use crate::curl::{Curl, LIMIT};

/// Size limit of a body, in bytes; API servers accept less.
const BODY_BYTES_MAX: u64 = 16 << 20;
/// Length limit of a header line, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Limit of the number of header lines.
const HEADER_LINES_MAX: usize = 200;

/// Request and its response.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Status of the response, or the reason why there is none, for the reader.
    pub(crate) outcome: String,
    /// Body of the response if it is JSON.
    pub(crate) response: Value,
}

/// Serves requests on `listener` while `work` runs. Returns the exchanges in the order of the
/// requests.
pub(crate) fn during<T>(
    listener: &TcpListener,
    server: &Curl,
    watch_limit: Duration,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<Exchange>)> {
    let address = listener.local_addr().context("cannot listen")?;
    let exchanges = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let exchanges = &exchanges;
                // A client may close the connection at any time.
                scope.spawn(move || serve(stream, server, watch_limit, exchanges).ok());
            }
        });
        let done = work();
        is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(address));
        done
    })?;
    let exchanges = exchanges
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok((done, exchanges))
}

fn serve(
    mut stream: TcpStream,
    server: &Curl,
    watch_limit: Duration,
    exchanges: &Mutex<Vec<Exchange>>,
) -> Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    let Some(request) = read(&mut BufReader::new(stream.try_clone()?))? else {
        return Ok(());
    };
    let place = {
        let mut exchanges = exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.push(Exchange {
            method: request.method().to_string(),
            path: request.uri().to_string(),
            headers: request.headers().clone(),
            body: request.body().clone(),
            outcome: "no response".to_owned(),
            response: Value::Null,
        });
        exchanges.len() - 1
    };
    let reply = forward(request, server, watch_limit);
    let outcome = match &reply {
        Ok(reply) => reply.status().to_string(),
        Err(error) => format!("no response: {error:#}").replace('\n', " "),
    };
    if let Some(exchange) = exchanges
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_mut(place)
    {
        exchange.outcome.clone_from(&outcome);
        let body = reply.as_ref().map(|reply| reply.body().as_slice());
        exchange.response = serde_json::from_slice(body.unwrap_or_default()).unwrap_or_default();
    }
    let reply = match reply {
        Ok(reply) => reply,
        Err(_) => Response::builder().status(502).body(outcome.into_bytes())?,
    };
    write(&mut stream, &reply)
}

fn forward(mut request: Request<Vec<u8>>, server: &Curl, watch_limit: Duration) -> Result<Reply> {
    ensure!(
        !request.headers().contains_key(header::UPGRADE),
        "cannot record an upgrade of the connection"
    );
    let is_endless = is_watch(request.uri().query().unwrap_or_default());
    // Removes headers of the connection, the token, which curl gets separately, and headers that
    // would make curl print an encoded body.
    for name in [
        header::ACCEPT_ENCODING,
        header::AUTHORIZATION,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::HOST,
        header::TE,
        header::TRANSFER_ENCODING,
    ] {
        request.headers_mut().remove(name);
    }
    server.send_until(&request, is_endless.then_some(watch_limit))
}

/// Reports whether the response to a request with this query does not end by itself.
pub(crate) fn is_watch(query: &str) -> bool {
    query
        .split('&')
        .any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch" | "follow=true"))
}

/// Reads the next request, or returns `None` at the end of the input.
pub(crate) fn read(input: &mut impl BufRead) -> Result<Option<Request<Vec<u8>>>> {
    let first = line(input)?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        bail!("this is not a request line: {first:?}");
    };
    let mut request = Request::builder().method(method).uri(path);
    let mut has_ended = false;
    for _ in 0..HEADER_LINES_MAX {
        let line = line(input)?;
        if line.is_empty() {
            has_ended = true;
            break;
        }
        let (name, value) = line.split_once(':').context("a header has no colon")?;
        request = request.header(name, value.trim());
    }
    ensure!(has_ended, "more than {HEADER_LINES_MAX} headers");
    let request = request.body(())?;
    let text = |name| request.headers().get(name)?.to_str().ok();
    let body = if text(header::TRANSFER_ENCODING).is_some_and(|coding| coding == "chunked") {
        chunks(input)?
    } else {
        let length = text(header::CONTENT_LENGTH).map_or(Ok(0), str::parse)?;
        exactly(input, length)?
    };
    Ok(Some(request.map(|()| body)))
}

fn chunks(input: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(input)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).context("a chunk has no size")?;
        if size == 0 {
            while !line(input)?.is_empty() {}
            return Ok(body);
        }
        body.extend(exactly(input, size)?);
        ensure!(body.len() as u64 <= BODY_BYTES_MAX, "the body is too long");
        ensure!(line(input)?.is_empty(), "a chunk is longer than its size");
    }
}

fn exactly(input: &mut impl BufRead, length: u64) -> Result<Vec<u8>> {
    ensure!(length <= BODY_BYTES_MAX, "the body is too long");
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    ensure!(body.len() as u64 == length, "the body is cut off");
    Ok(body)
}

/// Reads a line without its line break; empty at the end of the input as well.
fn line(input: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    input.take(LINE_BYTES_MAX).read_line(&mut line)?;
    ensure!(
        line.is_empty() || line.ends_with('\n'),
        "a line is too long"
    );
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Writes a response to the client.
fn write(output: &mut impl Write, reply: &Reply) -> Result<()> {
    let mut head = format!("HTTP/1.1 {}\r\n", reply.status());
    for name in [header::CONTENT_TYPE, header::WARNING, header::RETRY_AFTER] {
        for value in reply.headers().get_all(&name) {
            let value = value.to_str().context("a header is not text")?;
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let length = reply.body().len();
    head.push_str(&format!(
        "content-length: {length}\r\nconnection: close\r\n\r\n"
    ));
    output.write_all(head.as_bytes())?;
    output.write_all(reply.body())?;
    Ok(output.flush()?)
}
