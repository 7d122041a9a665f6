//! Which events are news, which repeat others, and which are too many: client-go's correlator.
//!
//! A plain state machine, told the time. Every event goes through three steps, each of which
//! remembers 4,096 things at most, and forgets them when they no longer matter:
//!
//! 1. Aggregation: from the tenth on, events about one object that differ in their note alone are
//!    one, whose note says that it is combined, until none came for ten minutes.
//! 2. Counting: an event that repeats another one is a higher count of it. In `events.k8s.io` the
//!    second is told at once, further ones every half hour and when none came for six minutes; in
//!    `core` each one is.
//! 3. A spam filter: 25 posts about an object, and then one more every five minutes.
//!
//! It differs from client-go in two ways, for the sake of `events.k8s.io`, where client-go has
//! counting alone: the other two steps are there as well, and events that differ in their note are
//! not taken for the same, which would lose the notes.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use opkit_client::Kind;

use crate::event::{NOTE, Recorded, cut, new_name};
use crate::lru::Lru;
use crate::{EventApi, EventType};

/// How many of each are remembered.
const REMEMBERED: usize = 4096;
/// From how many similar events on they are one.
const SIMILAR: usize = 10;
/// After how long without similar events they are no longer.
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// How many events about one object may come at once.
const BURST: f64 = 25.0;
/// How many more a second.
const REFILL: f64 = 1.0 / 300.0;
/// How often the counts of series are told.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// After how long without repetition a series has ended.
const FINISH: Duration = Duration::from_secs(6 * 60);
/// After how long without repetition an event in `core` is forgotten: for as long a server keeps it
/// by default.
const EXPIRED: Duration = Duration::from_secs(3600);
/// What the note of combined events begins with.
const COMBINED: &str = "(combined from similar events): ";

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Object {
    kind: Kind,
    namespace: Option<String>,
    name: String,
    uid: String,
}

/// What similar events have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Similar {
    object: Object,
    event_type: EventType,
    reason: String,
}

/// What events that repeat each other have in common; combined ones have no note.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Same {
    similar: Similar,
    note: Option<String>,
}

impl Similar {
    fn of(event: &Recorded) -> Self {
        let about = &event.about;
        Self {
            object: Object {
                kind: (*about.kind).clone(),
                namespace: about.key.namespace.clone(),
                name: about.key.name.clone(),
                uid: about.uid.clone(),
            },
            event_type: event.event_type,
            reason: event.reason.clone(),
        }
    }
}

/// The notes of similar events.
#[derive(Debug)]
struct Notes {
    /// At most nine.
    notes: HashSet<String>,
    last: Duration,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Bucket {
    /// How many tokens there are now.
    fn refilled(&self, now: Duration) -> f64 {
        let since = now.saturating_sub(self.at);
        (self.tokens + since.as_secs_f64() * REFILL).min(BURST)
    }
}

/// An event that was seen, and how often.
#[derive(Debug)]
struct Counted {
    post: Post,
    /// When it was seen last.
    last: Duration,
}

/// An event to post.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) event: Recorded,
    pub(crate) name: String,
    /// How often it was seen. From the second time on it is changed, not made.
    pub(crate) count: u64,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
}

/// What is to be done with an event.
#[derive(Debug)]
pub(crate) enum Verdict {
    Post(Box<Post>),
    /// Counted, and told later.
    Quiet,
    /// Too many about this object.
    Spam,
}

#[derive(Debug)]
pub(crate) struct Correlator {
    api: EventApi,
    similar: Lru<Similar, Notes>,
    counted: Lru<Same, Counted>,
    buckets: Lru<Object, Bucket>,
    refresh_at: Duration,
    finish_at: Duration,
}

impl Correlator {
    pub(crate) fn new(api: EventApi, now: Duration) -> Self {
        Self {
            api,
            similar: Lru::new(REMEMBERED),
            counted: Lru::new(REMEMBERED),
            buckets: Lru::new(REMEMBERED),
            refresh_at: now.saturating_add(REFRESH),
            finish_at: now.saturating_add(FINISH),
        }
    }

    pub(crate) fn api(&self) -> EventApi {
        self.api
    }

    /// Takes an event in.
    pub(crate) fn observe(&mut self, now: Duration, mut event: Recorded) -> Verdict {
        let similar = Similar::of(&event);
        let is_combined = self.combines(now, &similar, &event.note);
        if is_combined {
            event.note = format!("{COMBINED}{}", event.note);
        }
        event.note = cut(&event.note, NOTE).to_owned();
        let object = similar.object.clone();
        let note = (!is_combined).then(|| event.note.clone());
        let same = Same { similar, note };
        let is_series = self.api == EventApi::EventsV1;
        let known = self.counted.peek(&same);
        let is_quiet = is_series && known.is_some_and(|known| known.post.count > 1);
        let passes = is_quiet || self.passes(now, &object);
        // An event that was never posted begins no series; in core it counts all the same.
        if !passes && is_series {
            return Verdict::Spam;
        }
        let post = self.count(now, &same, event);
        match (passes, is_quiet) {
            (false, _) => Verdict::Spam,
            (true, true) => Verdict::Quiet,
            (true, false) => Verdict::Post(Box::new(post)),
        }
    }

    /// When there is something to do without an event.
    pub(crate) fn wake_at(&self) -> Duration {
        self.refresh_at.min(self.finish_at)
    }

    /// The series whose counts are to be told now, because their time has come or they have ended.
    pub(crate) fn wake(&mut self, now: Duration) -> Vec<Post> {
        let mut posts = Vec::new();
        let (refreshes, finishes) = (now >= self.refresh_at, now >= self.finish_at);
        if refreshes {
            self.refresh_at = now.saturating_add(REFRESH);
        }
        if finishes {
            self.finish_at = now.saturating_add(FINISH);
        }
        let is_series = self.api == EventApi::EventsV1;
        let lasts = if is_series { FINISH } else { EXPIRED };
        self.counted.retain(|counted| {
            let has_ended = finishes && now.saturating_sub(counted.last) > lasts;
            if is_series && counted.post.count > 1 && (has_ended || refreshes) {
                posts.push(counted.post.clone());
            }
            !has_ended
        });
        if finishes {
            (self.similar).retain(|it| now.saturating_sub(it.last) <= SIMILAR_WITHIN);
            self.buckets.retain(|bucket| bucket.refilled(now) < BURST);
        }
        posts
    }

    /// Whether the event is one of so many similar ones that they are combined.
    fn combines(&mut self, now: Duration, similar: &Similar, note: &str) -> bool {
        let new = || Notes {
            notes: HashSet::new(),
            last: now,
        };
        let Notes { notes, last } = self.similar.get_or_insert_with(similar, new);
        if now.saturating_sub(*last) > SIMILAR_WITHIN {
            notes.clear();
        }
        *last = now;
        if notes.contains(note) {
            return false;
        }
        if notes.len().saturating_add(1) >= SIMILAR {
            return true;
        }
        notes.insert(note.to_owned());
        false
    }

    fn passes(&mut self, now: Duration, object: &Object) -> bool {
        let new = || Bucket {
            tokens: BURST,
            at: now,
        };
        let bucket = self.buckets.get_or_insert_with(object, new);
        bucket.tokens = bucket.refilled(now);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }

    fn count(&mut self, now: Duration, same: &Same, event: Recorded) -> Post {
        let at = event.at;
        let new = || Counted {
            post: Post {
                name: new_name(&event),
                event: event.clone(),
                count: 0,
                first: at,
                last: at,
            },
            last: now,
        };
        let counted = self.counted.get_or_insert_with(same, new);
        counted.last = now;
        counted.post.count = counted.post.count.saturating_add(1);
        counted.post.last = at;
        // Of combined events, the last one is told where the API lets a note change.
        if self.api == EventApi::CoreV1 {
            counted.post.event.note = event.note;
        }
        counted.post.clone()
    }
}

#[cfg(test)]
mod tests;
