//! Hashes of the UIDs of deleted objects, for operators that are sharded by UID: a function that
//! takes a key is called for a deleted object too, whose slot the cache does not know any more.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use crate::object::Request;

/// Largest number of deleted objects that are remembered. The oldest are forgotten. That many
/// objects take about 2 MB.
const DELETED_MAX: usize = 8_192;

/// The objects that were deleted last.
#[derive(Debug, Default)]
pub(crate) struct DeletedObjects {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Hash of the UID, and number of the deletion.
    hashes: HashMap<Request, (u64, u64)>,
    /// Deletions in their order.
    order: VecDeque<(u64, Request)>,
    deletions: u64,
}

impl DeletedObjects {
    /// Remembers a deleted object.
    pub(super) fn insert(&self, request: Request, hash: u64) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.deletions = state.deletions.wrapping_add(1);
        let number = state.deletions;
        state.order.push_back((number, request.clone()));
        state.hashes.insert(request, (hash, number));
        if state.order.len() > DELETED_MAX
            && let Some((oldest, request)) = state.order.pop_front()
            && (state.hashes.get(&request)).is_some_and(|(_, number)| *number == oldest)
        {
            state.hashes.remove(&request);
        }
    }

    /// Returns the hash of the UID of a deleted object.
    pub(crate) fn get(&self, request: &Request) -> Option<u64> {
        self.state.lock().hashes.get(request).map(|(hash, _)| *hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_deletions_are_forgotten() {
        let deleted = DeletedObjects::default();
        let request = |number: usize| Request::new(None, ("d", number.to_string().as_str()).into());
        for number in 0..=DELETED_MAX {
            deleted.insert(request(number), number as u64);
        }
        assert_eq!(deleted.get(&request(0)), None);
        assert_eq!(deleted.get(&request(1)), Some(1));
        // Deleted again: it is one of the newest now.
        deleted.insert(request(2), 20);
        deleted.insert(request(DELETED_MAX + 1), 0);
        assert_eq!(deleted.get(&request(1)), None);
        assert_eq!(deleted.get(&request(2)), Some(20));
    }
}
