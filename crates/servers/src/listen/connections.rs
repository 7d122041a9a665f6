//! The table of a server's connections. The table selects the connection to close when there
//! are too many connections, and has no clock.
//!
//! A connection is *busy* while one of its requests is being handled. Otherwise the connection
//! *waits* for its first request, for the next request, or for a client that does not read. When a
//! limit is reached, a waiting connection is closed in favour of a new one; a busy connection is
//! never closed. So connections that send nothing cannot block a probe.

use std::collections::HashMap;
use std::net::IpAddr;

use tokio_util::sync::CancellationToken;

/// Maximum numbers of connections of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Maximum for all peers together.
    pub(crate) connections: usize,
    /// Maximum for one IP address. At this limit, a new connection replaces a waiting connection of
    /// the same IP address.
    pub(crate) per_peer: usize,
}

/// Connections of one server.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    limits: ConnectionLimits,
    connections: HashMap<u64, Connection>,
    /// Logical clock, which orders connections by the time that they have waited.
    clock: u64,
}

/// State of one connection.
#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    /// Number of requests that are being handled: with HTTP/1.1, at most one.
    requests: usize,
    /// Whether the connection has sent a complete request.
    has_served: bool,
    /// Logical time at which the last request of the connection ended, or at which the connection
    /// was admitted.
    waits_since: u64,
    evicted: CancellationToken,
}

/// Reason why a connection is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// The peer is at its limit, and all its connections are busy.
    PeerBusy,
    /// The server is at its limit, and all its connections are busy.
    ServerBusy,
}

/// Admission of one connection.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) id: u64,
    /// Token that is cancelled when the connection is closed in favour of another one.
    pub(super) evicted: CancellationToken,
}

impl ConnectionTable {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            connections: HashMap::new(),
            clock: 0,
        }
    }

    /// Admits a connection. If a limit is reached, closes the connection that has waited longest.
    ///
    /// # Errors
    /// Returns an error if a limit is reached and no connection waits.
    pub(super) fn admit(&mut self, peer: IpAddr) -> Result<Admission, Rejection> {
        let peer = peer.to_canonical();
        let of_peer = self
            .connections
            .values()
            .filter(|it| it.peer == peer)
            .count();
        if of_peer >= self.limits.per_peer {
            self.evict(Some(peer)).ok_or(Rejection::PeerBusy)?;
        } else if self.connections.len() >= self.limits.connections {
            self.evict(None).ok_or(Rejection::ServerBusy)?;
        }
        let id = self.tick();
        let evicted = CancellationToken::new();
        let connection = Connection {
            peer,
            requests: 0,
            has_served: false,
            waits_since: id,
            evicted: evicted.clone(),
        };
        self.connections.insert(id, connection);
        Ok(Admission { id, evicted })
    }

    /// Marks a connection as busy with a request.
    pub(super) fn begin_request(&mut self, id: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.requests = connection.requests.saturating_add(1);
            connection.has_served = true;
        }
    }

    /// Ends a request of a connection, which waits again if it has no other.
    pub(super) fn end_request(&mut self, id: u64) {
        let now = self.tick();
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.requests = connection.requests.saturating_sub(1);
            connection.waits_since = now;
        }
    }

    /// Reports whether a connection has sent a complete request.
    pub(super) fn has_served(&self, id: u64) -> bool {
        self.connections.get(&id).is_some_and(|it| it.has_served)
    }

    /// Removes a connection that has ended.
    pub(super) fn remove(&mut self, id: u64) {
        self.connections.remove(&id);
    }

    /// Closes the connection that has waited longest, of `peer` or of all peers. Connections that
    /// have never sent a complete request are closed before others. Returns `None` if all
    /// connections are busy.
    fn evict(&mut self, peer: Option<IpAddr>) -> Option<()> {
        let candidates = self.connections.iter().filter(|(_, it)| {
            let is_of_peer = peer.is_none_or(|peer| it.peer == peer);
            it.requests == 0 && is_of_peer
        });
        let (id, _) = candidates.min_by_key(|(_, it)| (it.has_served, it.waits_since))?;
        let id = *id;
        let connection = self.connections.remove(&id)?;
        connection.evicted.cancel();
        Some(())
    }

    /// Advances the logical clock and returns its time.
    fn tick(&mut self) -> u64 {
        self.clock = self.clock.saturating_add(1);
        self.clock
    }
}

#[cfg(test)]
mod tests;
