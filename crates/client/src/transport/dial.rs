//! Opening of connections to the server, directly or through the proxy that kube reads from the
//! kubeconfig or the environment.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use rustls::ClientConfig;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt};

/// Interval of TCP keep-alive probes on an idle connection; Go's default.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A service that opens connections; TLS with the API server is added on top.
pub(super) type Dialer = BoxCloneSyncService<Uri, Io, BoxError>;

/// A boxed connection, direct or through a proxy, so that the HTTP stack is compiled only once.
pub(super) struct Io(Box<dyn Stream>);

trait Stream: Read + Write + Connection + Send + Unpin {}

impl<S: Read + Write + Connection + Send + Unpin> Stream for S {}

/// Creates the dialer for the server and proxy in `config`.
pub(super) fn dialer(config: &kube::Config, tls: &ClientConfig) -> Result<Dialer, ProxyError> {
    let mut direct = HttpConnector::new();
    direct.enforce_http(false);
    direct.set_nodelay(true);
    direct.set_keepalive(Some(KEEP_ALIVE));
    let Some(proxy) = config.proxy_url.clone() else {
        return Ok(boxed(direct));
    };
    let name = without_credentials(&proxy);
    match proxy.scheme_str() {
        Some("socks5") => {
            let socks = SocksV5::new(with_socks_port(&proxy).unwrap_or(proxy.clone()), direct);
            Ok(named(
                name,
                match user_and_password(&proxy) {
                    Some((user, password)) => socks.with_auth(user, password),
                    None => socks,
                },
            ))
        }
        Some("http") => {
            let credentials = credentials(&proxy);
            let tunnel = Tunnel::new(proxy, direct);
            Ok(named(name, with_credentials(tunnel, credentials)))
        }
        Some("https") => {
            // As in Go, the authorities of the API server are those of the proxy.
            let resolver = Arc::new(DefaultServerNameResolver::default());
            let secure = HttpsConnector::new(direct, tls.clone(), true, resolver);
            let credentials = credentials(&proxy);
            let tunnel = Tunnel::new(proxy, secure);
            Ok(named(name, with_credentials(tunnel, credentials)))
        }
        _ => Err(ProxyError { proxy: name }),
    }
}

/// The proxy of the kubeconfig or the environment is of a kind that is not supported.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {proxy} is not supported: its URL must start with http, https or socks5")]
pub(super) struct ProxyError {
    proxy: String,
}

/// Returns the URL of a proxy for messages.
fn without_credentials(proxy: &Uri) -> String {
    let authority = proxy.authority().map(|it| it.as_str()).unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{}://{host}", proxy.scheme_str().unwrap_or_default())
}

fn with_credentials<C>(tunnel: Tunnel<C>, credentials: Option<HeaderValue>) -> Tunnel<C> {
    match credentials {
        Some(credentials) => tunnel.with_auth(credentials),
        None => tunnel,
    }
}

/// No connection could be established through a proxy.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect through the proxy {proxy}")]
struct ProxyFailed {
    proxy: String,
    #[source]
    cause: BoxError,
}

/// Boxes a connector of a proxy. Its errors name the proxy.
fn named<C>(proxy: String, connector: C) -> Dialer
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
{
    boxed(connector.map_err(move |cause: C::Error| ProxyFailed {
        proxy: proxy.clone(),
        cause: cause.into(),
    }))
}

/// Returns the URL of a SOCKS proxy with the default port of SOCKS, unless it has a port.
fn with_socks_port(proxy: &Uri) -> Option<Uri> {
    let host = proxy.host().filter(|_| proxy.port().is_none())?;
    format!("socks5://{host}:1080").parse().ok()
}

/// Returns the percent-decoded user and password in the URL of a proxy.
fn user_and_password(proxy: &Uri) -> Option<(String, String)> {
    let (user, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let decode = |text: &str| {
        let text = percent_encoding::percent_decode_str(text);
        text.decode_utf8_lossy().into_owned()
    };
    Some((decode(user), decode(password)))
}

/// Returns a `Basic` credentials header with the percent-decoded user and password of the proxy's
/// URL, or `None` if the URL has none.
fn credentials(proxy: &Uri) -> Option<HeaderValue> {
    let (user, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let plain: Vec<u8> = percent_encoding::percent_decode_str(user).collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(plain);
    let mut header = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn boxed<C>(connector: C) -> Dialer
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
{
    let connector = connector
        .map_response(|stream| Io(Box::new(stream)))
        .map_err(Into::into);
    BoxCloneSyncService::new(connector)
}

impl Connection for Io {
    fn connected(&self) -> Connected {
        self.0.connected()
    }
}

impl Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write_vectored(cx, bytes)
    }
}

#[cfg(test)]
mod tests;
