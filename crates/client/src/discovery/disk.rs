//! A cache of discovery in a file that processes share.
//!
//! Like kubectl's cache, the file is stored in `~/.kube/cache/discovery/<server>` and is valid for
//! six hours. The file is replaced by a rename, so that readers see either the old or the new
//! content even with several writers. A file that cannot be read is ignored and replaced.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Discovered;

/// Default time for which the file is valid; kubectl's value.
const TTL: Duration = Duration::from_secs(6 * 60 * 60);

/// A file that caches the result of [`Discovery`](super::Discovery).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use opkit_client::DiskCache;
///
/// let cache = DiskCache::at("/tmp/discovery").ttl(Duration::from_secs(60));
/// assert!(cache.path().starts_with("/tmp/discovery"));
/// ```
#[derive(Debug, Clone)]
pub struct DiskCache {
    path: PathBuf,
    ttl: Duration,
}

impl DiskCache {
    /// Creates a cache in `directory`, which is created when needed. Each server needs its own
    /// directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            path: directory.into().join("opkit.json"),
            ttl: TTL,
        }
    }

    /// Creates a cache for the server with this URL, in the directory of kubectl's cache, which is
    /// below `KUBECACHEDIR` or `~/.kube/cache`. Returns `None` if there is no home directory.
    pub fn for_server(url: &str) -> Option<Self> {
        let root = std::env::var_os("KUBECACHEDIR").filter(|dir| !dir.is_empty());
        let root = match root {
            Some(root) => PathBuf::from(root),
            None => std::env::home_dir()?.join(".kube/cache"),
        };
        Some(Self::at(root.join("discovery").join(directory(url))))
    }

    /// Sets the time for which the file is valid.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file. Returns `None` if the file is missing, expired or not valid.
    pub(super) async fn read(&self) -> Option<Discovered> {
        let (path, ttl) = (self.path.clone(), self.ttl);
        let read = tokio::task::spawn_blocking(move || {
            let written = std::fs::metadata(&path)?.modified()?;
            // A file with a modification time in the future counts as expired.
            let age = SystemTime::now().duration_since(written);
            if age.is_ok_and(|age| age < ttl) {
                return std::fs::read(&path);
            }
            Err(io::ErrorKind::NotFound.into())
        });
        let bytes = read.await.ok()?.ok()?;
        match serde_json::from_slice(&bytes) {
            Ok(found) => Some(found),
            Err(error) => {
                let path = self.path.display();
                tracing::debug!(%path, %error, "cannot decode the discovery cache file");
                None
            }
        }
    }

    /// Replaces the file. A failure is only logged, because a missing file only costs requests
    /// later.
    pub(super) async fn write(&self, found: Arc<Discovered>) {
        let path = self.path.clone();
        let write = tokio::task::spawn_blocking(move || replace(&path, &found));
        if let Ok(Err(error)) = write.await {
            let path = self.path.display();
            tracing::debug!(%path, %error, "cannot write the discovery cache file");
        }
    }
}

fn replace(path: &Path, found: &Discovered) -> io::Result<()> {
    let bytes = serde_json::to_vec(found)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    create_directory(directory)?;
    // Each writer has its own temporary file, so that two do not write to the same one.
    let number = (crate::backoff::random() * 1e15) as u64;
    let temporary = directory.join(format!(".opkit.json.{}.{number}", std::process::id()));
    let written = create(&temporary, &bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Creates a directory with the same mode as kubectl, so that other users of the machine cannot
/// read the directory.
fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o750);
    builder.create(path)
}

fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o660);
    options.open(path)?.write_all(bytes)
}

/// Returns the directory name for a server, formed as in kubectl: the URL without its scheme, with
/// special characters replaced. Unlike kubectl, also replaces `..`, so that the directory is always
/// below the cache directory.
fn directory(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_/.()".contains(char);
    let host = host.trim_matches('/').chars();
    host.map(|char| if is_plain(char) { char } else { '_' })
        .collect::<String>()
        .replace("..", "__")
}

#[cfg(test)]
mod tests;
