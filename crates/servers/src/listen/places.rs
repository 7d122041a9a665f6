//! Which connections a server keeps when there are too many: a plain struct without a clock.
//!
//! A connection is *busy* while one of its requests is being handled and *waits* otherwise: for its
//! first request, for the next one, or for a client that does not read. A waiting connection gives
//! way to a new one, a busy one never does. So connections that send nothing cannot keep a probe
//! out.

use std::collections::HashMap;
use std::net::IpAddr;

use tokio_util::sync::CancellationToken;

/// How many connections a server keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Of all peers together.
    pub(super) connections: usize,
    /// Of one IP address. A peer that reaches it replaces connections of its own.
    pub(super) per_peer: usize,
}

/// The connections of one server.
#[derive(Debug)]
pub(super) struct Places {
    limits: Limits,
    held: HashMap<u64, Held>,
    /// Counts what happens, so that the connection that has waited longest can be found.
    clock: u64,
}

#[derive(Debug)]
struct Held {
    peer: IpAddr,
    is_busy: bool,
    has_served: bool,
    waits_since: u64,
    evicted: CancellationToken,
}

/// Why a connection is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The peer has as many requests under way as it may have connections.
    PeerIsBusy,
    /// Every place is taken by a connection that is busy.
    AllAreBusy,
}

/// A place for one connection.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) id: u64,
    /// Is cancelled when the connection has to give way to another one.
    pub(super) evicted: CancellationToken,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            held: HashMap::new(),
            clock: 0,
        }
    }

    /// Admits a connection, which may end another one that waits.
    pub(super) fn admit(&mut self, peer: IpAddr) -> Result<Admitted, Refusal> {
        let peer = peer.to_canonical();
        let of_peer = self.held.values().filter(|held| held.peer == peer).count();
        if of_peer >= self.limits.per_peer {
            self.evict(Some(peer)).ok_or(Refusal::PeerIsBusy)?;
        } else if self.held.len() >= self.limits.connections {
            self.evict(None).ok_or(Refusal::AllAreBusy)?;
        }
        let id = self.tick();
        let evicted = CancellationToken::new();
        let held = Held {
            peer,
            is_busy: false,
            has_served: false,
            waits_since: id,
            evicted: evicted.clone(),
        };
        self.held.insert(id, held);
        Ok(Admitted { id, evicted })
    }

    /// Marks a connection as busy with a request.
    pub(super) fn begin_request(&mut self, id: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.is_busy = true;
            held.has_served = true;
        }
    }

    /// Marks a connection as waiting again.
    pub(super) fn end_request(&mut self, id: u64) {
        let now = self.tick();
        if let Some(held) = self.held.get_mut(&id) {
            held.is_busy = false;
            held.waits_since = now;
        }
    }

    /// Whether a connection has sent a complete request.
    pub(super) fn has_served(&self, id: u64) -> bool {
        self.held.get(&id).is_some_and(|held| held.has_served)
    }

    /// Frees the place of a connection that has ended.
    pub(super) fn leave(&mut self, id: u64) {
        self.held.remove(&id);
    }

    /// Ends the connection, of `peer` or of anybody, that has waited longest; those that have never
    /// sent a complete request go first. Returns `None` if all are busy.
    fn evict(&mut self, peer: Option<IpAddr>) -> Option<()> {
        let candidates = self.held.iter().filter(|(_, held)| {
            let is_of_peer = peer.is_none_or(|peer| held.peer == peer);
            !held.is_busy && is_of_peer
        });
        let (id, _) = candidates.min_by_key(|(_, held)| (held.has_served, held.waits_since))?;
        let id = *id;
        let held = self.held.remove(&id)?;
        held.evicted.cancel();
        Some(())
    }

    fn tick(&mut self) -> u64 {
        self.clock = self.clock.saturating_add(1);
        self.clock
    }
}

#[cfg(test)]
mod tests;
