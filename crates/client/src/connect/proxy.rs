//! The proxy of a connection: `proxy-url` of the kubeconfig, or the environment variables, by the
//! rules of Go (`golang.org/x/net/http/httpproxy`), which client-go and kubectl use.

use std::net::IpAddr;

use http::Uri;

/// A URL of a proxy that is not valid. The message does not contain the password.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProxyUrlError {
    #[error("{0:?} is not a valid URL of a proxy")]
    NotAUrl(String),
    #[error("the proxy {0:?} is not supported: its URL must start with http, https or socks5")]
    Scheme(String),
}

/// Parses the `proxy-url` of a kubeconfig.
pub(super) fn parse(text: &str) -> Result<Uri, ProxyUrlError> {
    let shown = || match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => text.to_owned(),
    };
    let url: Uri = text.parse().map_err(|_| ProxyUrlError::NotAUrl(shown()))?;
    match url.scheme_str() {
        // The name is resolved by the proxy in both cases, as in Go.
        Some("socks5h") => {
            let text = text.replacen("socks5h", "socks5", 1);
            text.parse().map_err(|_| ProxyUrlError::NotAUrl(shown()))
        }
        Some("http" | "https" | "socks5") => Ok(url),
        Some(_) => Err(ProxyUrlError::Scheme(shown())),
        None => Err(ProxyUrlError::NotAUrl(shown())),
    }
}

/// The environment variables that set a proxy.
#[derive(Debug, Default)]
pub(super) struct Environment {
    http_proxy: String,
    https_proxy: String,
    no_proxy: String,
    /// Whether this process is a CGI program, in which anybody can set `HTTP_PROXY`.
    is_cgi: bool,
}

impl Environment {
    /// Reads the variables of this process. The upper case name has precedence.
    pub(super) fn read() -> Self {
        let read = |names: [&str; 2]| {
            let mut values = names.iter().filter_map(|name| std::env::var(name).ok());
            values.find(|value| !value.is_empty()).unwrap_or_default()
        };
        Self {
            http_proxy: read(["HTTP_PROXY", "http_proxy"]),
            https_proxy: read(["HTTPS_PROXY", "https_proxy"]),
            no_proxy: read(["NO_PROXY", "no_proxy"]),
            is_cgi: std::env::var_os("REQUEST_METHOD").is_some_and(|it| !it.is_empty()),
        }
    }

    /// Returns the proxy for connections to `server`.
    pub(super) fn proxy_of(&self, server: &Uri) -> Result<Option<Uri>, ProxyUrlError> {
        let (proxy, default_port) = match server.scheme_str() {
            Some("https") => (&self.https_proxy, 443),
            Some("http") if !self.is_cgi => (&self.http_proxy, 80),
            _ => return Ok(None),
        };
        let host = server.host().unwrap_or_default();
        let port = server.port_u16().unwrap_or(default_port);
        if proxy.is_empty() || !self.applies_to(host, port) {
            return Ok(None);
        }
        match proxy.contains("://") {
            true => parse(proxy).map(Some),
            false => parse(&format!("http://{proxy}")).map(Some),
        }
    }

    /// Returns whether the proxy is used for this host. It is not used for this machine, and not
    /// for the hosts in `NO_PROXY`.
    fn applies_to(&self, host: &str, port: u16) -> bool {
        let host = host.trim_matches(['[', ']']).to_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return false;
        }
        let entries = self.no_proxy.split(',').map(str::trim);
        !entries
            .filter(|entry| !entry.is_empty())
            .any(|entry| matches(&entry.to_lowercase(), &host, address, port))
    }
}

/// Returns whether an entry of `NO_PROXY` means the host: `*`, a network, an address or a domain,
/// the last two with or without a port.
fn matches(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let network = network.parse().ok().zip(bits.parse().ok());
        return match (network, address) {
            (Some((network, bits)), Some(address)) => contains(network, bits, address),
            _ => false,
        };
    }
    let (name, entry_port) = match entry.parse::<IpAddr>() {
        Ok(_) => (entry, None),
        Err(_) => match entry.rsplit_once(':') {
            Some((name, port)) => (name.trim_matches(['[', ']']), Some(port)),
            None => (entry, None),
        },
    };
    if entry_port.is_some_and(|entry_port| entry_port != port.to_string()) || name.is_empty() {
        return false;
    }
    if let Ok(expected) = name.parse::<IpAddr>() {
        return address == Some(expected);
    }
    let name = name.strip_prefix('*').unwrap_or(name);
    match (address, name.strip_prefix('.')) {
        (Some(_), _) => false,
        // Only the domains below.
        (None, Some(domain)) => is_below(host, domain),
        (None, None) => host == name || is_below(host, name),
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.ends_with('.'))
}

/// Returns whether an address is in a network.
fn contains(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => (
            u128::from(network.to_bits()),
            u128::from(address.to_bits()),
            32,
        ),
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    match u32::checked_sub(width, bits) {
        Some(128) => true,
        Some(rest) => network >> rest == address >> rest,
        None => false,
    }
}

#[cfg(test)]
mod tests;
