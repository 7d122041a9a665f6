//! The reflector: lists a kind in pages, then watches it, and writes both into an informer.
//!
//! The rules are client-go's (`tools/cache/reflector.go`): a watch lasts a random 5 to 10 minutes
//! and is resumed from the last version seen; bookmarks keep that version fresh; 410 means a new
//! list, whose differences to the store are told exactly; failures, and lists that help nothing, back
//! off with jitter, each watch by itself. Unlike client-go's the first list is a quorum read. Streaming lists come later.

use std::time::Duration;

use bytes::Bytes;
use opkit_client::{ObjectKey, RequestError, RestClient, WatchOptions, one_line};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::Informer;
use crate::backoff::Backoff;
use crate::informer::Change;
use crate::random::Random;
use crate::store::Entry;
use crate::watch_event::{Page, Step, read_line, read_object};

/// Objects per page; client-go's figure.
const PAGE: u32 = 500;
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(5 * 60);
/// How long the server may take to end a watch, or to begin one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a watch may be silent: bookmarks come every minute, so the connection is half-open then.
const IDLE_MAX: Duration = Duration::from_secs(3 * 60);
/// A watch that ends sooner than this without an event counts as a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// After so many objects decoded in one go, other tasks get a turn.
const DECODED_IN_ONE_GO: usize = 64;

/// Why a watch ended.
#[derive(Debug)]
enum Ended {
    /// As planned, or at least not our fault: resume.
    Resume,
    /// The server cannot resume from our version: list again.
    Relist(String),
    /// Something failed: wait, then resume.
    Failed(String),
}

#[derive(Debug)]
pub(crate) struct Reflector {
    client: RestClient,
    informer: Informer,
    namespace: Option<String>,
    random: Random,
    backoff: Backoff,
    origin: Instant,
    listed: bool,
}

impl Reflector {
    pub(crate) fn new(
        client: RestClient,
        informer: Informer,
        namespace: Option<String>,
        random: Random,
    ) -> Self {
        Reflector {
            client,
            informer,
            namespace,
            random,
            backoff: Backoff::default(),
            origin: Instant::now(),
            listed: false,
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        // Whether the watch after the last list came no further than that list.
        let mut fruitless = false;
        loop {
            let mut resource_version = match self.list().await {
                Ok(resource_version) => resource_version,
                Err(error) => {
                    self.pause("cannot list; will try again", one_line(&error))
                        .await;
                    continue;
                }
            };
            self.informer.set_last_error(None);
            let listed = resource_version.clone();
            loop {
                match self.watch(&mut resource_version).await {
                    Ended::Resume => self.informer.set_last_error(None),
                    Ended::Failed(why) => {
                        self.pause("the watch failed; will resume it", why).await;
                    }
                    Ended::Relist(why) => {
                        // A version that expired is put right by one list. A watch that cannot
                        // begin after a list either would make it a loop of lists.
                        let again = fruitless;
                        fruitless = resource_version == listed;
                        if again && fruitless {
                            self.pause("the watch cannot go on; will list again", why)
                                .await;
                        } else {
                            debug!(kind = %self.informer.kind(), why, "the watch expired; will list again");
                        }
                        break;
                    }
                }
            }
        }
    }

    async fn pause(&mut self, what: &'static str, error: String) {
        let delay = self
            .backoff
            .failed(self.origin.elapsed(), self.random.unit());
        let namespace = self.namespace.as_deref();
        warn!(kind = %self.informer.kind(), namespace, error, ?delay, "{what}");
        self.informer.set_last_error(Some(error));
        tokio::time::sleep(delay).await;
    }

    /// Reads the whole collection and answers the version to watch from.
    async fn list(&mut self) -> Result<String, RequestError> {
        let mut list = Vec::new();
        let mut token: Option<String> = None;
        let mut limit = PAGE;
        let resource_version = loop {
            let page = self.client.list(
                self.informer.kind(),
                self.namespace.as_deref(),
                limit,
                token.as_deref(),
            );
            let page = match page.await {
                // The snapshot of the first page is gone: take everything at once.
                Err(error) if error.is_expired() && token.is_some() => {
                    list.clear();
                    token = None;
                    limit = 0;
                    continue;
                }
                page => page?,
            };
            let (resource_version, next) = self.read_page(&page, &mut list).await?;
            match next {
                Some(next) => token = Some(next),
                None => break resource_version,
            }
        };
        self.informer.replace(
            self.namespace.as_deref(),
            list,
            &resource_version,
            !self.listed,
        );
        self.listed = true;
        Ok(resource_version)
    }

    async fn read_page(
        &self,
        bytes: &Bytes,
        list: &mut Vec<(ObjectKey, Entry)>,
    ) -> Result<(String, Option<String>), RequestError> {
        let unreadable = |cause| RequestError::Decode {
            call: Box::new(
                self.client
                    .list_call(self.informer.kind(), self.namespace.as_deref()),
            ),
            cause,
        };
        let page: Page<'_> = serde_json::from_slice(bytes).map_err(unreadable)?;
        for (n, raw) in page.items.into_iter().flatten().enumerate() {
            if n % DECODED_IN_ONE_GO == DECODED_IN_ONE_GO - 1 {
                tokio::task::yield_now().await;
            }
            let (key, entry) = read_object(self.informer.codec(), raw).map_err(unreadable)?;
            warn_if_unreadable(&entry);
            list.push((key, entry));
        }
        let next = page
            .metadata
            .continue_token
            .filter(|token| !token.is_empty());
        Ok((page.metadata.resource_version.unwrap_or_default(), next))
    }

    /// Follows the collection from `resource_version`, which it keeps up to date.
    async fn watch(&mut self, resource_version: &mut String) -> Ended {
        let timeout = WATCH_TIMEOUT_MIN.mul_f64(1.0 + self.random.unit());
        let options = WatchOptions {
            resource_version: resource_version.clone(),
            timeout,
        };
        let started = Instant::now();
        let watch = self
            .client
            .watch(self.informer.kind(), self.namespace.as_deref(), &options);
        let mut lines = match tokio::time::timeout(PATIENCE, watch).await {
            Ok(Ok(lines)) => lines,
            Ok(Err(error)) if error.is_expired() => return Ended::Relist(one_line(&error)),
            Ok(Err(error)) => return Ended::Failed(one_line(&error)),
            Err(_) => return Ended::Failed("the server did not begin the watch".to_owned()),
        };
        let deadline = started + timeout + PATIENCE;
        let mut events = 0u64;
        loop {
            let silent = Instant::now() + IDLE_MAX;
            let line = match tokio::time::timeout_at(deadline.min(silent), lines.next()).await {
                Ok(Some(Ok(line))) => line,
                Ok(Some(Err(error))) => return Ended::Failed(one_line(&error)),
                Ok(None) if events == 0 && started.elapsed() < SHORT_WATCH => {
                    return Ended::Failed("the server ended the watch at once".to_owned());
                }
                Ok(None) | Err(_) => return Ended::Resume,
            };
            events = events.saturating_add(1);
            if let Some(ended) = self.take(&line, resource_version) {
                return ended;
            }
        }
    }

    /// Takes in one line; answers why the watch cannot go on, if so.
    fn take(&self, line: &[u8], resource_version: &mut String) -> Option<Ended> {
        let (change, seen) = match read_line(self.informer.codec(), line) {
            Ok(Step::Upsert {
                key,
                entry,
                resource_version,
            }) => {
                warn_if_unreadable(&entry);
                (Change::Upsert(key, entry), resource_version)
            }
            Ok(Step::Remove {
                key,
                uid,
                resource_version,
            }) => (Change::Remove(key, uid), resource_version),
            Ok(Step::Bookmark { resource_version }) => (Change::None, resource_version),
            Ok(Step::Failed(status)) if status.code == 429 => {
                return Some(Ended::Failed(status.message));
            }
            // Expired, or anything else that makes our version doubtful.
            Ok(Step::Failed(status)) => return Some(Ended::Relist(status.message)),
            Err(error) => return Some(Ended::Relist(format!("unreadable event: {error}"))),
        };
        self.informer
            .take(self.namespace.as_deref(), change, seen.as_deref());
        if let Some(seen) = seen {
            *resource_version = seen;
        }
        None
    }
}

fn warn_if_unreadable(entry: &Entry) {
    if let Entry::Unreadable { error, .. } = entry {
        warn!(
            error = one_line(&**error),
            "skipping an object that does not fit its type"
        );
    }
}

#[cfg(test)]
mod tests;
