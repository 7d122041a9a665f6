//! Which events were posted lately, and whether the next one is news.

use std::collections::HashMap;
use std::time::Duration;

use super::EventType;

/// An event that is not repeated for this long is a new one the next time.
const SERIES: Duration = Duration::from_secs(6 * 60);
/// How often the count of a series is told.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// How many series are followed; with more, the quiet ones are given up, then all.
const FOLLOWED: usize = 4096;

/// What makes two events the same.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Repeat {
    pub(super) uid: String,
    pub(super) event_type: EventType,
    pub(super) reason: String,
    pub(super) note: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    New {
        name: String,
    },
    Again {
        name: String,
        count: u64,
    },
    /// Counted, and told later.
    Quiet,
}

/// An event that was posted lately.
#[derive(Debug)]
struct Followed {
    name: String,
    count: u64,
    last: Duration,
    /// When the count was told last, if it was.
    told: Option<Duration>,
}

/// Which events were posted lately. Synchronous, told the time.
#[derive(Debug, Default)]
pub(super) struct Series {
    followed: HashMap<Repeat, Followed>,
}

impl Series {
    pub(super) fn next(&mut self, now: Duration, repeat: Repeat, name: String) -> Next {
        if self.followed.len() >= FOLLOWED {
            self.followed
                .retain(|_, followed| now.saturating_sub(followed.last) < SERIES);
            if self.followed.len() >= FOLLOWED {
                self.followed.clear();
            }
        }
        if let Some(followed) = self.followed.get_mut(&repeat)
            && now.saturating_sub(followed.last) < SERIES
        {
            followed.count = followed.count.saturating_add(1);
            followed.last = now;
            let told = followed.told;
            if told.is_some_and(|told| now.saturating_sub(told) < TOLD_EVERY) {
                return Next::Quiet;
            }
            followed.told = Some(now);
            return Next::Again {
                name: followed.name.clone(),
                count: followed.count,
            };
        }
        let followed = Followed {
            name: name.clone(),
            count: 1,
            last: now,
            told: None,
        };
        self.followed.insert(repeat, followed);
        Next::New { name }
    }
}
