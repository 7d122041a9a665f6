//! Client of a real API server that uses `curl`, so that this crate needs no TLS stack.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use differential::{Reply, Server};
use http::{Request, Response};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// Time limit of a response that is not a watch.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// Exit code of curl when `--max-time` is over.
const TIMED_OUT: i32 = 28;

/// API server to send requests to.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// Base URL of the API server; its certificate is not checked
    #[arg(long, required_unless_present = "kubeconfig")]
    server: Option<String>,
    /// Bearer token of an administrator
    #[arg(long, required_unless_present = "kubeconfig")]
    token: Option<String>,
    /// Kubeconfig to read both from: its current context, whose user must have a token
    #[arg(long, conflicts_with_all = ["server", "token"])]
    kubeconfig: Option<PathBuf>,
}

impl Target {
    pub(crate) fn server(&self) -> Result<Curl> {
        match &self.kubeconfig {
            Some(path) => Curl::from_kubeconfig(path),
            None => Ok(Curl::new(
                self.server.as_deref().unwrap_or_default(),
                self.token.as_deref().unwrap_or_default(),
            )),
        }
    }
}

/// Server that is reached with curl.
pub(crate) struct Curl {
    server: String,
    token: String,
}

impl Curl {
    pub(crate) fn new(server: &str, token: &str) -> Self {
        Self {
            server: server.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
        }
    }

    /// Reads the server and the token of a kubeconfig's current context.
    pub(crate) fn from_kubeconfig(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        kubeconfig(&text).with_context(|| format!("cannot use {}", path.display()))
    }

    pub(crate) fn version(&self) -> Result<String> {
        let reply = self.send(Request::get("/version").body(Vec::new())?)?;
        let version: Value =
            serde_json::from_slice(reply.body()).context("/version is not JSON")?;
        let version = version.get("gitVersion").and_then(Value::as_str);
        Ok(version.context("/version has no gitVersion")?.to_owned())
    }

    /// Sends one request. With `cut_after`, a response that is not complete by then is cut off;
    /// without, it is an error if the response takes too long.
    pub(crate) fn send_until(
        &self,
        request: &Request<Vec<u8>>,
        cut_after: Option<Duration>,
    ) -> Result<Reply> {
        let limit = cut_after.unwrap_or(LIMIT);
        let url = format!("{}{}", self.server, request.uri());
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--insecure", "--include"])
            .args(["--http1.1", "--globoff", "--path-as-is", "--max-time"])
            .arg(limit.as_secs().to_string())
            .args(["--request", request.method().as_str()])
            .args(["--header", &format!("Authorization: Bearer {}", self.token)]);
        for (name, value) in request.headers() {
            let value = value.to_str().context("a header is not text")?;
            curl.args(["--header", &format!("{name}: {value}")]);
        }
        if !request.body().is_empty() {
            // Without this, curl sends `Expect: 100-continue` for a long body and prints the
            // interim response too.
            curl.args(["--header", "Expect:", "--data-binary", "@-"]);
        }
        let mut running = curl
            .arg(&url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run curl")?;
        if let Some(mut input) = running.stdin.take() {
            input
                .write_all(request.body())
                .context("cannot write to curl")?;
        }
        let output = running.wait_with_output().context("cannot wait for curl")?;
        // An empty output is not a response, not even of a watch.
        let is_cut = cut_after.is_some()
            && output.status.code() == Some(TIMED_OUT)
            && !output.stdout.is_empty();
        if !output.status.success() && !is_cut {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("cannot send {} {url}: {}", request.method(), error.trim());
        }
        parse(&output.stdout)
    }
}

impl Server for Curl {
    fn send(&self, request: Request<Vec<u8>>) -> Result<Reply> {
        self.send_until(&request, None)
    }

    #[expect(clippy::disallowed_methods, reason = "there is no runtime to block")]
    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Returns the server and the token of a kubeconfig's current context.
fn kubeconfig(text: &str) -> Result<Curl> {
    let config: Value = serde_saphyr::from_str(text)?;
    let named = |list: &str, name: &str, part: &str| {
        let entries = config.get(list).and_then(Value::as_array)?;
        let entry = entries.iter().find(|entry| {
            let found = entry.get("name").and_then(Value::as_str);
            found == Some(name)
        })?;
        entry.get(part).cloned()
    };
    let text = |value: &Value, field: &str| value.get(field)?.as_str().map(str::to_owned);
    let context = text(&config, "current-context").context("there is no current context")?;
    let context =
        named("contexts", &context, "context").context("the current context does not exist")?;
    let cluster = text(&context, "cluster").and_then(|name| named("clusters", &name, "cluster"));
    let user = text(&context, "user").and_then(|name| named("users", &name, "user"));
    let server = cluster.and_then(|cluster| text(&cluster, "server"));
    let token = user.and_then(|user| text(&user, "token"));
    Ok(Curl::new(
        &server.context("the cluster has no server")?,
        &token.context("the user has no token")?,
    ))
}

/// Parses a response in the format of `curl --include`.
fn parse(output: &[u8]) -> Result<Reply> {
    let end = output
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .context("a response has no headers")?;
    let (head, body) = output.split_at(end);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let mut response = Response::builder().status(status.context("a response has no status")?);
    for line in lines {
        if let Some((name, value)) = line.split_once(": ") {
            response = response.header(name, value);
        }
    }
    let body = body.get(4..).unwrap_or_default().to_vec();
    Ok(response.body(body)?)
}
