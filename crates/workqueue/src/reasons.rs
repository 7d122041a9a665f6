//! Reasons for which a key was added, which are kept when several adds of the key are merged.

/// Payload with which a key is added. The payload of a later add of the same key can be merged into
/// it.
///
/// The unit type merges to itself, for queues that need no reasons.
pub trait Merge {
    /// Merges `later`, which arrived after `self`, into `self`.
    fn merge(&mut self, later: Self);

    /// Reports whether this payload is delivered even if another add of the same key has the key
    /// handed out before the delay of this payload has passed. If not, the payload is dropped in
    /// that case. True by default.
    fn is_delivered_early(&self) -> bool {
        true
    }
}

impl Merge for () {
    fn merge(&mut self, (): ()) {}
}

/// Largest number of distinct reasons that are kept; further ones are only counted.
const REASONS_MAX: usize = 16;

/// Distinct reasons for which one key was added, in the order of arrival. Keeps the first fifteen
/// reasons and the last one, and counts the reasons between them.
///
/// # Examples
/// ```
/// use opkit_workqueue::{Merge, Reasons};
/// let mut reasons = Reasons::from("spec changed");
/// reasons.merge(Reasons::from("spec changed"));
/// reasons.merge(Reasons::from("child deleted"));
/// assert_eq!(reasons.iter().copied().collect::<Vec<_>>(), ["spec changed", "child deleted"]);
/// assert_eq!(reasons.more(), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasons<T> {
    /// First reason, separate from the others. Most keys have only one reason, which then needs no
    /// further memory.
    first: Option<T>,
    others: Option<Box<Others<T>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Others<T> {
    kept: Vec<T>,
    more: u64,
}

impl<T> Default for Reasons<T> {
    fn default() -> Self {
        Self {
            first: None,
            others: None,
        }
    }
}

impl<T: PartialEq> From<T> for Reasons<T> {
    fn from(reason: T) -> Self {
        Self {
            first: Some(reason),
            others: None,
        }
    }
}

impl<T> Reasons<T> {
    /// Returns the kept reasons, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let others = self.others.iter().flat_map(|others| &others.kept);
        self.first.iter().chain(others)
    }

    /// Returns the number of reasons that were dropped because there were too many. The dropped
    /// reasons arrived before the last reason.
    pub fn more(&self) -> u64 {
        self.others.as_ref().map_or(0, |others| others.more)
    }
}

impl<T: PartialEq> Reasons<T> {
    fn push(&mut self, reason: T) {
        if self.iter().any(|kept| *kept == reason) {
            return;
        }
        if self.first.is_none() {
            self.first = Some(reason);
            return;
        }
        let others = self.others();
        if others.kept.len() < REASONS_MAX - 1 {
            others.kept.push(reason);
        } else if let Some(last) = others.kept.last_mut() {
            *last = reason;
            others.more = others.more.saturating_add(1);
        }
    }

    fn others(&mut self) -> &mut Others<T> {
        self.others.get_or_insert_with(|| {
            Box::new(Others {
                kept: Vec::new(),
                more: 0,
            })
        })
    }
}

impl<T: PartialEq> Merge for Reasons<T> {
    fn merge(&mut self, later: Self) {
        if let Some(reason) = later.first {
            self.push(reason);
        }
        let Some(others) = later.others else { return };
        if others.more > 0 {
            let mine = self.others();
            mine.more = mine.more.saturating_add(others.more);
        }
        for reason in others.kept {
            self.push(reason);
        }
    }
}

#[cfg(test)]
mod tests;
