//! The node ports of all Services.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use parking_lot::Mutex;

/// The range of node ports, and the ports that Services have.
#[derive(Debug)]
pub(crate) struct NodePorts {
    range: RangeInclusive<u16>,
    taken: Mutex<BTreeSet<u16>>,
}

/// The reason why a Service does not get a node port, with the words of Kubernetes.
pub(super) const ALLOCATED: &str = "provided port is already allocated";
pub(super) const FULL: &str = "range is full";

impl NodePorts {
    pub(crate) fn new(range: RangeInclusive<u16>) -> Self {
        Self {
            range,
            taken: Mutex::default(),
        }
    }

    /// Reserves `port`.
    ///
    /// # Errors
    /// If the port is out of range or belongs to another Service, with the words of Kubernetes.
    pub(super) fn reserve(&self, port: i64) -> Result<u16, String> {
        let wanted = u16::try_from(port).ok();
        let Some(port) = wanted.filter(|port| self.range.contains(port)) else {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                self.range.start(),
                self.range.end()
            ));
        };
        match self.taken.lock().insert(port) {
            true => Ok(port),
            false => Err(ALLOCATED.to_owned()),
        }
    }

    /// Reserves a free port, starting at a place that `random` determines. The lower part of the
    /// range is used last, because users choose their ports there.
    pub(super) fn reserve_next(&self, random: u64) -> Option<u16> {
        let (first, last) = (u64::from(*self.range.start()), u64::from(*self.range.end()));
        let size = last.saturating_sub(first) + 1;
        let lower = match size {
            0..=16 => 0,
            size => (size / 32).clamp(16, 128),
        };
        let part = |from: u64, count: u64| {
            let start = random.checked_rem(count).unwrap_or_default();
            (0..count).map(move |at| from + (start + at) % count)
        };
        let mut taken = self.taken.lock();
        let candidates = part(first + lower, size - lower).chain(part(first, lower));
        let mut ports = candidates.filter_map(|port| u16::try_from(port).ok());
        ports.find(|port| taken.insert(*port))
    }

    pub(super) fn is_taken(&self, port: i64) -> bool {
        u16::try_from(port).is_ok_and(|port| self.taken.lock().contains(&port))
    }

    pub(super) fn release(&self, port: i64) {
        if let Ok(port) = u16::try_from(port) {
            self.taken.lock().remove(&port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_once_until_the_range_is_full() {
        let ports = NodePorts::new(30_000..=30_019);
        assert_eq!(ports.reserve(30_005), Ok(30_005));
        assert_eq!(ports.reserve(30_005).unwrap_err(), ALLOCATED);
        let error = ports.reserve(80).unwrap_err();
        assert!(error.ends_with("30000-30019"), "{error}");
        let rest: BTreeSet<u16> = (0..19).filter_map(|n| ports.reserve_next(n)).collect();
        assert_eq!(rest.len(), 19);
        assert!(!rest.contains(&30_005));
        assert_eq!(ports.reserve_next(3), None);
        ports.release(30_007);
        assert_eq!(ports.reserve_next(3), Some(30_007));
    }

    #[test]
    fn the_lower_part_is_used_last() {
        let ports = NodePorts::new(30_000..=32_767);
        let first: Vec<u16> = (0..1_000).filter_map(|n| ports.reserve_next(n)).collect();
        assert!(first.iter().all(|port| *port >= 30_086));
    }
}
