//! The API server's claim to the stand-in for etcd.
//!
//! The stand-in of the API server keeps objects in its memory, so two API servers with one etcd
//! would not see each other's objects. The first API server locks a file in etcd's data directory;
//! the lock ends with the process. A second API server is refused.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use hyper::StatusCode;

use super::etcd::{DATA_DIRECTORY_PATH, client_address};
use crate::endpoint;

/// Name of the locked file in the data directory.
const LOCK_FILE: &str = "opkit-apiserver.lock";

/// The claim of this process to an etcd, which ends when the value is dropped.
#[derive(Debug)]
pub(super) struct StorageClaim {
    _locked: File,
    /// Whether another API server had claimed this etcd earlier. The objects of that API server
    /// ended with its process.
    pub(super) was_used: bool,
}

/// Claims the etcd at one of `urls`, the value of `--etcd-servers`.
///
/// # Errors
/// If the etcd is not opkit's stand-in, or another API server uses it.
pub(super) async fn claim(urls: &[String]) -> Result<StorageClaim> {
    let Some(url) = urls.first() else {
        bail!("--etcd-servers must be specified");
    };
    let address = client_address(url).context("--etcd-servers")?.to_string();
    let response = endpoint::get("etcd", &address, DATA_DIRECTORY_PATH).await?;
    if response.status != StatusCode::OK {
        bail!(
            "--etcd-servers: {url} is not opkit's stand-in for etcd. This kube-apiserver keeps \
             objects in memory, and cannot use a real etcd"
        );
    }
    let directory = String::from_utf8_lossy(&response.body).into_owned();
    lock(Path::new(&directory), url)
}

fn lock(directory: &Path, url: &str) -> Result<StorageClaim> {
    let path = directory.join(LOCK_FILE);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!(
            "--etcd-servers: another API server uses the etcd at {url}. opkit's API server keeps \
             objects in memory, so each one needs an etcd of its own"
        ),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    let mut before = String::new();
    file.read_to_string(&mut before)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(StorageClaim {
        _locked: file,
        was_used: !before.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_api_server_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let url = "http://127.0.0.1:2379";
        let first = lock(folder.path(), url).unwrap();
        assert!(!first.was_used);
        let error = lock(folder.path(), url).unwrap_err().to_string();
        assert!(
            error.starts_with("--etcd-servers: another API server uses the etcd at http://"),
            "{error}"
        );
        drop(first);
        assert!(lock(folder.path(), url).unwrap().was_used);
    }
}
