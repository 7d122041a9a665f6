//! Why a key needs work, kept while its triggers are merged.

/// What two triggers of one key become when they are handed out as one.
///
/// The unit type merges to itself, for queues whose users do not ask why.
pub trait Merge {
    /// Takes `later`, which arrived after `self`, into `self`.
    fn merge(&mut self, later: Self);
}

impl Merge for () {
    fn merge(&mut self, (): ()) {}
}

/// How many distinct reasons are kept; the rest is only counted.
const KEPT: usize = 16;

/// The distinct reasons of one key in the order of arrival: the first sixteen, and a count of the
/// triggers beyond them.
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
    kept: Vec<T>,
    more: u64,
}

impl<T> Default for Reasons<T> {
    fn default() -> Self {
        Reasons {
            kept: Vec::new(),
            more: 0,
        }
    }
}

impl<T: PartialEq> From<T> for Reasons<T> {
    fn from(reason: T) -> Self {
        Reasons {
            kept: vec![reason],
            more: 0,
        }
    }
}

impl<T> Reasons<T> {
    /// The kept reasons, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.kept.iter()
    }

    /// How many triggers are not among the kept ones, because there were too many.
    pub fn more(&self) -> u64 {
        self.more
    }
}

impl<T: PartialEq> Merge for Reasons<T> {
    fn merge(&mut self, later: Self) {
        self.more = self.more.saturating_add(later.more);
        for reason in later.kept {
            if self.kept.contains(&reason) {
                continue;
            }
            if self.kept.len() < KEPT {
                self.kept.push(reason);
            } else {
                self.more = self.more.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
