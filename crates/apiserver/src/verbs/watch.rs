//! Watch: from the parameters of the request to a [`WatchRequest`].

use std::time::Duration;

use super::{Handler, list_options};
use crate::response::Response;
use crate::status::ApiResult;
use crate::watch::{Start, WatchRequest};

/// Minimum duration of a watch without `timeoutSeconds`. The actual duration is random, up to twice
/// the minimum, so that watches that start together do not end together.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(1800);

/// Maximum `timeoutSeconds` of a watch.
const WATCH_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

impl Handler<'_> {
    pub(super) fn watch(&self) -> ApiResult<Response> {
        let query = self.query();
        list_options::check_watch(query)?;
        let revision = list_options::revision(query, "")?;
        let initial = query.flag("sendInitialEvents");
        let bookmarks = query.flag("allowWatchBookmarks");
        let start = match revision {
            _ if initial => Start::Present {
                end_bookmark: bookmarks,
            },
            0 if query.get("sendInitialEvents") == Some("false") => {
                Start::After(self.registry.store.revision())
            }
            0 => Start::Present {
                end_bookmark: false,
            },
            revision => Start::After(revision),
        };
        let seconds = query.get("timeoutSeconds");
        let timeout = match seconds.and_then(|text| text.parse().ok()) {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds).min(WATCH_TIMEOUT_MAX),
            _ => {
                let extra = self.registry.random.next() % WATCH_TIMEOUT_MIN.as_secs();
                WATCH_TIMEOUT_MIN + Duration::from_secs(extra)
            }
        };
        Ok(Response::Watch(Box::new(WatchRequest {
            filter: self.filter()?,
            target: self.target.clone(),
            start,
            bookmarks,
            timeout,
            representation: self.representation,
            media: self.media,
            warnings: Vec::new(),
        })))
    }
}
