//! The open connections of a server, and the choice of a connection to close if there are too many.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The open connections of a server, up to a maximum number.
///
/// If the maximum number is reached, a new connection replaces the oldest connection whose peer has
/// not been authenticated. If all peers have been authenticated, the new connection is refused. So
/// clients without credentials cannot lock out other clients.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    next: u64,
    /// Connections whose peers have not been authenticated, in the order of their arrival.
    pending: BTreeMap<u64, CancellationToken>,
}

/// The place of one connection among the limited number of connections of a server. Dropping this
/// value frees the place.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    number: u64,
    evicted: CancellationToken,
}

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            state: Mutex::default(),
        })
    }

    /// Takes a place for a new connection. Returns `None` if authenticated peers have all places.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut state = self.state.lock();
        if state.open >= self.max {
            let (_, oldest) = state.pending.pop_first()?;
            oldest.cancel();
            state.open = state.open.saturating_sub(1);
        }
        state.open = state.open.saturating_add(1);
        state.next = state.next.saturating_add(1);
        let (number, evicted) = (state.next, CancellationToken::new());
        state.pending.insert(number, evicted.clone());
        Some(Place {
            connections: self.clone(),
            number,
            evicted,
        })
    }
}

impl Place {
    /// Keeps the place until the connection ends, because the peer has been authenticated.
    pub(super) fn keep(&self) {
        self.connections.state.lock().pending.remove(&self.number);
    }

    /// Waits until a newer connection has taken this place.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.connections.state.lock();
        state.pending.remove(&self.number);
        if !self.evicted.is_cancelled() {
            state.open = state.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(place: &Place) -> bool {
        place.evicted.is_cancelled()
    }

    #[test]
    fn the_oldest_connection_without_credentials_is_evicted() {
        let connections = Connections::new(3);
        let [first, second, third] = [(); 3].map(|()| connections.enter().unwrap());
        first.keep();
        let fourth = connections.enter().unwrap();
        assert!(!is_evicted(&first) && is_evicted(&second) && !is_evicted(&third));
        // Its place was taken by another connection, so its end frees no place.
        drop(second);
        third.keep();
        fourth.keep();
        assert!(connections.enter().is_none(), "all are authenticated");
        drop(first);
        let fifth = connections.enter().unwrap();
        fifth.keep();
        assert!(connections.enter().is_none());
    }
}
