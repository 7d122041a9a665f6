//! Why a key needs work, kept while its triggers are merged.

/// What two triggers of one key become when they are handed out as one.
///
/// The unit type merges to itself, for queues whose users do not ask why.
pub trait Merge {
    /// Takes `later`, which arrived after `self`, into `self`.
    fn merge(&mut self, later: Self);

    /// Whether a trigger whose time has not come is told when another has the key handed out before
    /// it. By default it is.
    fn is_told_early(&self) -> bool {
        true
    }
}

impl Merge for () {
    fn merge(&mut self, (): ()) {}
}

/// How many distinct reasons are kept; the rest is only counted.
const KEPT: usize = 16;

/// The distinct reasons of one key in the order of arrival: the first fifteen, the last, and a
/// count of those between.
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
    /// Apart from the others, because most keys have one reason, which then needs no more memory.
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
    /// The kept reasons, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let others = self.others.iter().flat_map(|others| &others.kept);
        self.first.iter().chain(others)
    }

    /// How many reasons are not among the kept ones, because there were too many. They came before
    /// the last.
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
        if others.kept.len() < KEPT - 1 {
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
