//! A memory of discovery that processes share, and that outlives them.
//!
//! As kubectl's, it lies below `~/.kube/cache/discovery/<server>` and is believed for six hours. It
//! is one file, which is replaced as a whole by a rename: whoever reads it sees the old or the new
//! one, however many write. A file that cannot be read counts as none, and is written anew.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Discovered;

/// kubectl's.
const TTL: Duration = Duration::from_secs(6 * 60 * 60);

/// A file in which discovery is remembered.
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
    /// In `directory`, which is made when it is needed. Each server needs one of its own.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            path: directory.into().join("opkit.json"),
            ttl: TTL,
        }
    }

    /// Beside kubectl's own files for a server, given its URL: below `KUBECACHEDIR` or
    /// `~/.kube/cache`. None if there is no home directory.
    pub fn for_server(url: &str) -> Option<Self> {
        let root = std::env::var_os("KUBECACHEDIR").filter(|dir| !dir.is_empty());
        let root = match root {
            Some(root) => PathBuf::from(root),
            None => std::env::home_dir()?.join(".kube/cache"),
        };
        Some(Self::at(root.join("discovery").join(directory(url))))
    }

    /// Believed for this long.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says, if it is there, young and whole.
    pub(super) async fn read(&self) -> Option<Discovered> {
        let (path, ttl) = (self.path.clone(), self.ttl);
        let read = tokio::task::spawn_blocking(move || {
            let written = std::fs::metadata(&path)?.modified()?;
            // A file of the future is not believed either.
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
                tracing::debug!(%path, %error, "discovery file is not readable");
                None
            }
        }
    }

    /// Replaces the file. That it cannot be written costs time later, and nothing else.
    pub(super) async fn write(&self, found: Arc<Discovered>) {
        let path = self.path.clone();
        let write = tokio::task::spawn_blocking(move || replace(&path, &found));
        if let Ok(Err(error)) = write.await {
            let path = self.path.display();
            tracing::debug!(%path, %error, "discovery file cannot be written");
        }
    }
}

fn replace(path: &Path, found: &Discovered) -> io::Result<()> {
    let bytes = serde_json::to_vec(found)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    create_directory(directory)?;
    // Of its own for each writer, so that two do not write into the same one.
    let number = (crate::backoff::random() * 1e15) as u64;
    let own = directory.join(format!(".opkit.json.{}.{number}", std::process::id()));
    let written = create(&own, &bytes).and_then(|()| std::fs::rename(&own, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&own);
    }
    written
}

/// What a server serves is not for every user of the machine: the modes are kubectl's.
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

/// The name of a server's directory, made as kubectl makes it: without the scheme, and with all but
/// plain characters replaced. It is always below the directory that it is joined to, whatever the
/// URL says.
fn directory(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let plain = |char: char| char.is_ascii_alphanumeric() || "_/.()".contains(char);
    let host = host.trim_matches('/').chars();
    host.map(|char| if plain(char) { char } else { '_' })
        .collect::<String>()
        .replace("..", "__")
}

#[cfg(test)]
mod tests;
