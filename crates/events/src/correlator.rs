//! The correlator decides which events are posted: it aggregates similar events, counts repeated
//! ones and limits the rate for each object, as client-go's correlator does.
//!
//! The correlator is a state machine that takes the time as an argument. Every event goes through
//! three stages. Each stage has a cache of at most 4,096 entries and removes entries that have
//! expired:
//!
//! 1. Aggregation: from the tenth event on, events about one object that differ only in their note
//!    are combined into one event with a prefix in its note. Aggregation ends after 10 minutes
//!    without such an event.
//! 2. Counting: a repeated event increases the count of the first event. In `events.k8s.io` the
//!    second occurrence is posted immediately; later counts are posted every 30 minutes, and once
//!    after 6 minutes without a repetition. In `core` every repetition is posted.
//! 3. Spam filter: 25 posts are allowed for each object, and then one more every 5 minutes.
//!
//! There are two differences from client-go, both in `events.k8s.io`, where client-go only counts.
//! Aggregation and the spam filter apply there as well. Events with different notes are not counted
//! as one event, because that would lose the notes.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use opkit_client::Kind;

use crate::event::{NOTE_MAX_BYTES, RecordedEvent, new_name, truncate};
use crate::lru::Lru;
use crate::{EventApi, EventType};

/// Maximum number of entries in each of the three caches; client-go's value.
const CACHE_CAPACITY: usize = 4096;
/// Number of similar events at which they start to be combined; client-go's value.
const AGGREGATE_THRESHOLD: usize = 10;
/// Time without a similar event after which aggregation ends; client-go's value.
const AGGREGATE_IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Number of events about one object that may be posted in a burst; client-go's value.
const SPAM_BURST: f64 = 25.0;
/// Number of events per second that may be posted about one object after the burst: one every 5
/// minutes, as in client-go.
const SPAM_REFILL_PER_SECOND: f64 = 1.0 / 300.0;
/// Time between two posts of the count of a repeated event; client-go's value.
const SERIES_REFRESH_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// Time without a repetition after which a repeated event is no longer counted; client-go's value.
const SERIES_IDLE_TIMEOUT: Duration = Duration::from_secs(6 * 60);
/// Time without a repetition after which an event in `core` is no longer counted: API servers
/// delete events after 1 hour by default.
const CORE_EVENT_TTL: Duration = Duration::from_secs(3600);
/// Prefix of the note of a combined event; client-go's text.
const AGGREGATE_PREFIX: &str = "(combined from similar events): ";

/// Key of the spam filter: the object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ObjectId {
    kind: Kind,
    namespace: Option<String>,
    name: String,
    uid: String,
}

/// Key of the aggregation: all fields that similar events share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct AggregateKey {
    object: ObjectId,
    event_type: EventType,
    reason: String,
}

/// Key of the counts: all fields that repeated events share. `note` is `None` for combined events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct EventKey {
    aggregate: AggregateKey,
    note: Option<String>,
}

impl AggregateKey {
    fn of(event: &RecordedEvent) -> Self {
        let about = &event.about;
        Self {
            object: ObjectId {
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

/// Notes of similar events, and the time of the last event.
#[derive(Debug)]
struct Aggregate {
    /// Distinct notes of the events; at most nine, because the tenth is combined.
    notes: HashSet<String>,
    /// Time of the last event.
    last: Duration,
}

/// Token bucket of the spam filter; posting an event takes one token.
#[derive(Debug)]
struct SpamBucket {
    tokens: f64,
    /// Time at which `tokens` was computed.
    at: Duration,
}

impl SpamBucket {
    /// Returns the number of tokens at the time `now`.
    fn refilled(&self, now: Duration) -> f64 {
        let since = now.saturating_sub(self.at);
        (self.tokens + since.as_secs_f64() * SPAM_REFILL_PER_SECOND).min(SPAM_BURST)
    }
}

/// An event and the number of its occurrences.
#[derive(Debug)]
struct CountedEvent {
    post: Post,
    /// Time of the last occurrence.
    last: Duration,
}

/// An event to post.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) event: RecordedEvent,
    pub(crate) name: String,
    /// Number of occurrences. If the number is greater than 1, the event exists and is patched.
    pub(crate) count: u64,
    /// Time of the first occurrence.
    pub(crate) first: Timestamp,
    /// Time of the last occurrence.
    pub(crate) last: Timestamp,
}

/// Decision of the correlator about an event.
#[derive(Debug)]
pub(crate) enum Decision {
    /// Post the event now.
    Post(Box<Post>),
    /// Post nothing now: the event is counted, and the count is posted later.
    Defer,
    /// Drop the event, because too many events about its object were posted.
    Spam,
}

/// State of aggregation, counting and spam filter; see the module.
#[derive(Debug)]
pub(crate) struct Correlator {
    api: EventApi,
    aggregates: Lru<AggregateKey, Aggregate>,
    counted: Lru<EventKey, CountedEvent>,
    buckets: Lru<ObjectId, SpamBucket>,
    refresh_at: Duration,
    finish_at: Duration,
}

impl Correlator {
    pub(crate) fn new(api: EventApi, now: Duration) -> Self {
        Self {
            api,
            aggregates: Lru::new(CACHE_CAPACITY),
            counted: Lru::new(CACHE_CAPACITY),
            buckets: Lru::new(CACHE_CAPACITY),
            refresh_at: now.saturating_add(SERIES_REFRESH_INTERVAL),
            finish_at: now.saturating_add(SERIES_IDLE_TIMEOUT),
        }
    }

    pub(crate) fn api(&self) -> EventApi {
        self.api
    }

    /// Aggregates, counts and filters one event.
    pub(crate) fn observe(&mut self, now: Duration, mut event: RecordedEvent) -> Decision {
        let aggregate = AggregateKey::of(&event);
        let is_aggregated = self.aggregate(now, &aggregate, &event.note);
        if is_aggregated {
            event.note = format!("{AGGREGATE_PREFIX}{}", event.note);
        }
        event.note = truncate(&event.note, NOTE_MAX_BYTES).to_owned();
        let object = aggregate.object.clone();
        let note = (!is_aggregated).then(|| event.note.clone());
        let key = EventKey { aggregate, note };
        let is_series = self.api == EventApi::EventsV1;
        let known = self.counted.peek(&key);
        let is_deferred = is_series && known.is_some_and(|known| known.post.count > 1);
        let passes = is_deferred || self.take_token(now, &object);
        // An event that was never posted does not start a series; in core it is counted anyway.
        if !passes && is_series {
            return Decision::Spam;
        }
        let post = self.count(now, &key, event);
        match (passes, is_deferred) {
            (false, _) => Decision::Spam,
            (true, true) => Decision::Defer,
            (true, false) => Decision::Post(Box::new(post)),
        }
    }

    /// Returns the time at which [`wake`](Self::wake) has to be called next.
    pub(crate) fn wake_at(&self) -> Duration {
        self.refresh_at.min(self.finish_at)
    }

    /// Removes expired entries and returns the repeated events whose counts are to be posted now:
    /// those that are due for a refresh, and those that are no longer repeated.
    pub(crate) fn wake(&mut self, now: Duration) -> Vec<Post> {
        let mut posts = Vec::new();
        let (refreshes, finishes) = (now >= self.refresh_at, now >= self.finish_at);
        if refreshes {
            self.refresh_at = now.saturating_add(SERIES_REFRESH_INTERVAL);
        }
        if finishes {
            self.finish_at = now.saturating_add(SERIES_IDLE_TIMEOUT);
        }
        let is_series = self.api == EventApi::EventsV1;
        let ttl = if is_series {
            SERIES_IDLE_TIMEOUT
        } else {
            CORE_EVENT_TTL
        };
        self.counted.retain(|counted| {
            let has_ended = finishes && now.saturating_sub(counted.last) > ttl;
            if is_series && counted.post.count > 1 && (has_ended || refreshes) {
                posts.push(counted.post.clone());
            }
            !has_ended
        });
        if finishes {
            (self.aggregates).retain(|it| now.saturating_sub(it.last) <= AGGREGATE_IDLE_TIMEOUT);
            self.buckets
                .retain(|bucket| bucket.refilled(now) < SPAM_BURST);
        }
        posts
    }

    /// Adds the note of an event to the notes of similar events. Reports whether the event is to be
    /// combined with the similar events.
    fn aggregate(&mut self, now: Duration, key: &AggregateKey, note: &str) -> bool {
        let new = || Aggregate {
            notes: HashSet::new(),
            last: now,
        };
        let Aggregate { notes, last } = self.aggregates.get_or_insert_with(key, new);
        if now.saturating_sub(*last) > AGGREGATE_IDLE_TIMEOUT {
            notes.clear();
        }
        *last = now;
        if notes.contains(note) {
            return false;
        }
        if notes.len().saturating_add(1) >= AGGREGATE_THRESHOLD {
            return true;
        }
        notes.insert(note.to_owned());
        false
    }

    /// Takes a token from the bucket of an object. Returns `false` if the bucket has no token.
    fn take_token(&mut self, now: Duration, object: &ObjectId) -> bool {
        let new = || SpamBucket {
            tokens: SPAM_BURST,
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

    /// Adds one occurrence to the count of the event, and returns the event with its count.
    fn count(&mut self, now: Duration, key: &EventKey, event: RecordedEvent) -> Post {
        let at = event.at;
        let new = || CountedEvent {
            post: Post {
                name: new_name(&event),
                event: event.clone(),
                count: 0,
                first: at,
                last: at,
            },
            last: now,
        };
        let counted = self.counted.get_or_insert_with(key, new);
        counted.last = now;
        counted.post.count = counted.post.count.saturating_add(1);
        counted.post.last = at;
        // A combined event shows the latest note where the API allows a note to change.
        if self.api == EventApi::CoreV1 {
            counted.post.event.note = event.note;
        }
        counted.post.clone()
    }
}

#[cfg(test)]
mod tests;
