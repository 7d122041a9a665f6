//! The stand-in for etcd.
//!
//! The stand-in of the API server keeps objects in its own memory, so this program stores nothing.
//! It reports that it is healthy, and reports its data directory, which the API server locks (see
//! [`storage`](super::storage)).

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use http::request::Parts;
use http::{Response, StatusCode};
use opkit_servers::HttpServer;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::flags::{FlagSet, Parsed};
use crate::output;
use crate::signals::StopSignals;

/// Path at which the stand-in reports its data directory.
pub(super) const DATA_DIRECTORY_PATH: &str = "/opkit/data-dir";

/// Version of etcd that the stand-in reports. Kubernetes 1.36 is released with this version.
const VERSION: &str = "3.6.8";

const FLAGS: FlagSet = FlagSet {
    program: "etcd",
    known: include_str!("flags/etcd.txt"),
    implemented: &["data-dir", "listen-client-urls"],
};

const ABOUT: &str = "opkit's stand-in for etcd: reports that it is healthy and stores nothing.";

/// Runs the stand-in until a signal stops it.
pub(super) async fn run(arguments: Vec<String>) -> Result<ExitCode> {
    let flags = match FLAGS.parse(arguments)? {
        Parsed::Flags(flags) => flags,
        Parsed::Help => {
            output::write(&FLAGS.help(ABOUT));
            return Ok(ExitCode::SUCCESS);
        }
        Parsed::Version => {
            output::write(&format!("etcd Version: {VERSION}\n"));
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut signals = StopSignals::listen()?;
    let directory = flags.get("data-dir").unwrap_or("default.etcd");
    fs::create_dir_all(directory)
        .with_context(|| format!("--data-dir: cannot create {directory}"))?;
    let directory = Path::new(directory)
        .canonicalize()
        .with_context(|| format!("--data-dir: cannot find {directory}"))?;
    let directory = directory
        .to_str()
        .context("--data-dir: the path is not valid UTF-8")?
        .to_owned();
    let mut urls = flags.list("listen-client-urls");
    if urls.is_empty() {
        urls.push("http://localhost:2379".to_owned());
    }
    let stop = CancellationToken::new();
    let servers = TaskTracker::new();
    for url in &urls {
        let address = client_address(url)?;
        let server = HttpServer::listen("etcd", address).await?;
        let (stop, directory) = (stop.clone(), directory.clone());
        servers.spawn(async move {
            let handler = move |request: Parts| {
                let response = respond(request.uri.path(), &directory);
                async move { response }
            };
            server.serve(handler, stop).await;
        });
    }
    signals.requested().await;
    stop.cancel();
    servers.close();
    servers.wait().await;
    Ok(ExitCode::SUCCESS)
}

fn respond(path: &str, directory: &str) -> Response<String> {
    let body = match path {
        "/health" => r#"{"health":"true","reason":""}"#.to_owned(),
        "/readyz" | "/livez" => "ok\n".to_owned(),
        "/version" => {
            format!(r#"{{"etcdserver":"{VERSION}","etcdcluster":"3.6.0","storage":"3.6.0"}}"#)
        }
        DATA_DIRECTORY_PATH => directory.to_owned(),
        _ => {
            let mut response = Response::new("404 page not found\n".to_owned());
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        }
    };
    Response::new(body)
}

/// Returns the socket address of a URL such as `http://127.0.0.1:2379`.
pub(super) fn client_address(url: &str) -> Result<SocketAddr> {
    let Some(authority) = url.strip_prefix("http://") else {
        bail!("{url}: opkit's stand-in for etcd serves http:// only");
    };
    let authority = authority.trim_end_matches('/');
    authority
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .with_context(|| format!("{url} is not a URL with a host and a port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_healthy_and_reports_its_directory() {
        let health = respond("/health", "/data");
        assert_eq!(health.status(), StatusCode::OK);
        assert_eq!(health.body(), r#"{"health":"true","reason":""}"#);
        assert_eq!(respond(DATA_DIRECTORY_PATH, "/data").body(), "/data");
        assert_eq!(respond("/v3/kv", "/data").status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn only_plain_http_is_served() {
        let address = client_address("http://127.0.0.1:2379/").unwrap();
        assert_eq!(address.to_string(), "127.0.0.1:2379");
        assert_eq!(
            client_address("https://127.0.0.1:2379")
                .unwrap_err()
                .to_string(),
            "https://127.0.0.1:2379: opkit's stand-in for etcd serves http:// only"
        );
        assert!(client_address("http://127.0.0.1").is_err());
    }
}
