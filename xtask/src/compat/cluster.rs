//! A cluster of `opkit cluster up` for the time of a suite, and requests to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use differential::Server;
use http::{Method, Request, StatusCode};
use serde_json::Value;

use crate::curl::Curl;

/// Time limit for the start of the cluster.
const READY_MAX: Duration = Duration::from_secs(30);
/// Time limit for a state that controllers bring about.
const STATE_MAX: Duration = Duration::from_secs(30);
/// Time between two requests for a state.
const STATE_INTERVAL: Duration = Duration::from_millis(100);

/// Embedded control plane with its controllers, in a process that ends when this is dropped.
pub(super) struct Cluster {
    process: Child,
    kubeconfig: PathBuf,
    api: Curl,
}

impl Cluster {
    /// Starts a cluster with its kubeconfig and its log in `directory`.
    pub(super) fn start(command: &Path, directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let kubeconfig = directory.join("kubeconfig");
        let _ = fs::remove_file(&kubeconfig);
        let log = fs::File::create(directory.join("cluster.log"))?;
        let mut process = Command::new(command)
            .args(["cluster", "up", "--kubeconfig-out"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start opkit cluster up")?;
        // The file is written in one step, when the API server is ready.
        let started = SystemTime::now();
        while !kubeconfig.exists() {
            let ended = process.try_wait()?;
            if ended.is_some() || started.elapsed().unwrap_or_default() > READY_MAX {
                let _ = process.kill();
                let _ = process.wait();
                bail!("opkit cluster up is not ready; see {}", directory.display());
            }
            pause(STATE_INTERVAL);
        }
        let api = Curl::from_kubeconfig(&kubeconfig)?;
        Ok(Self {
            process,
            kubeconfig,
            api,
        })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the object or list at a path, or `None` if there is none.
    pub(super) fn get(&self, path: &str) -> Result<Option<Value>> {
        let (status, body) = self.send(Method::GET, path, "application/json", String::new())?;
        match status {
            StatusCode::OK => Ok(Some(body)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => bail!("GET {path} returned {status}: {body}"),
        }
    }

    /// Creates the object of a JSON or YAML text in the collection at a path.
    pub(super) fn create(&self, path: &str, text: &str) -> Result<()> {
        let (status, body) = self.send(Method::POST, path, "application/yaml", text.to_owned())?;
        ensure!(
            status == StatusCode::CREATED,
            "POST {path} returned {status}: {body}"
        );
        Ok(())
    }

    /// Changes the object at a path by a JSON merge patch.
    pub(super) fn patch(&self, path: &str, patch: &Value) -> Result<()> {
        let media_type = "application/merge-patch+json";
        let (status, body) = self.send(Method::PATCH, path, media_type, patch.to_string())?;
        ensure!(
            status.is_success(),
            "PATCH {path} returned {status}: {body}"
        );
        Ok(())
    }

    /// Deletes the object at a path.
    pub(super) fn delete(&self, path: &str) -> Result<()> {
        let (status, body) = self.send(Method::DELETE, path, "application/json", String::new())?;
        ensure!(
            status.is_success(),
            "DELETE {path} returned {status}: {body}"
        );
        Ok(())
    }

    /// Waits until the object or list at a path fulfils a condition. The condition gets `None` if
    /// there is no object.
    pub(super) fn wait(
        &self,
        path: &str,
        condition: impl Fn(Option<&Value>) -> bool,
    ) -> Result<()> {
        let started = SystemTime::now();
        loop {
            let found = self.get(path)?;
            if condition(found.as_ref()) {
                return Ok(());
            }
            if started.elapsed().unwrap_or_default() > STATE_MAX {
                bail!("not after {} s: {path} is {found:?}", STATE_MAX.as_secs());
            }
            pause(STATE_INTERVAL);
        }
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: String,
    ) -> Result<(StatusCode, Value)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", media_type)
            .header("Accept", "application/json")
            .body(body.into_bytes())?;
        let reply = self.api.send(request)?;
        let body = serde_json::from_slice(reply.body())
            .with_context(|| format!("the response to {path} is not JSON"))?;
        Ok((reply.status(), body))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.kubeconfig);
    }
}

/// Returns the number of items of a list; 0 for `None`.
pub(super) fn count(list: Option<&Value>) -> usize {
    let items = list.and_then(|list| list.get("items")?.as_array());
    items.map_or(0, Vec::len)
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime to block")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
