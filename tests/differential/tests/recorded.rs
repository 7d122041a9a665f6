//! Comparison of the embedded server with the recorded responses of a real one.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use differential::{Known, Reply, Script, Server, Suite, compare, read_recording, run};
use http::Request;
use http_body_util::{BodyExt, Full};
use opkit_apiserver::{AdmissionPlugin, Options};
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Server in this process. Its clock is paused, so that a watch of some seconds takes no time.
struct Embedded {
    runtime: Runtime,
    server: opkit_apiserver::Server,
}

/// Returns the options with which the recorded server was started: it had no controllers, and
/// Services got their addresses from a small range.
fn options(script: &Script) -> Result<Options> {
    let mut options = Options::default();
    options.controllers = false;
    options.service_cluster_ip_range = "10.0.0.0/24".to_owned();
    options
        .admission_plugins
        .retain(|plugin| *plugin != AdmissionPlugin::ServiceAccount);
    for plugin in &script.enabled_plugins {
        options.admission_plugins.push(plugin.parse()?);
    }
    let issuer = "https://kubernetes.default.svc".to_owned();
    options.authentication.service_accounts.issuers = vec![issuer];
    Ok(options)
}

impl Embedded {
    fn start(script: &Script) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        let entered = runtime.enter();
        let server = opkit_apiserver::Server::start(options(script)?)?;
        drop(entered);
        Ok(Self { runtime, server })
    }
}

impl Server for Embedded {
    fn send(&self, request: Request<Vec<u8>>) -> Result<Reply> {
        let request = request.map(|body| Full::new(Bytes::from(body)));
        self.runtime.block_on(async {
            let response = self.server.service().oneshot(request).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await?.to_bytes().to_vec();
            Ok(Reply::from_parts(parts, body))
        })
    }

    fn pause(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }
}

/// Prints a line directly, because libtest hides the output of macros when a test passes, and the
/// list is the purpose of the test.
fn print(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

#[test]
fn the_embedded_server_responds_like_the_real_one() {
    let suite = Suite::read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut differences = Vec::new();
    for script in &suite.scripts {
        let real = read_recording(&suite.folder, &script.name).unwrap();
        let embedded = run(script, &Embedded::start(script).unwrap()).unwrap();
        differences.extend(compare(script, &real.responses, &embedded).unwrap());
    }
    print(&format!(
        "{} requests in {} scripts, {} known differences",
        suite.requests(),
        suite.scripts.len(),
        suite.known_places()
    ));
    for known in &suite.known {
        print(&format!(
            "{:4}  {}",
            known.places.len(),
            known.reason.trim()
        ));
    }
    let unexplained = Known::explain(&suite.known, differences).unwrap();
    for difference in &unexplained.differences {
        print(&difference.to_string());
    }
    for place in &unexplained.obsolete {
        print(&format!(
            "nothing differs any more at {place}: remove it from known-differences.yaml"
        ));
    }
    assert!(
        unexplained.differences.is_empty() && unexplained.obsolete.is_empty(),
        "{} differences are not explained, {} known ones no longer occur",
        unexplained.differences.len(),
        unexplained.obsolete.len()
    );
}
