use std::net::Ipv4Addr;

use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 4,
    per_peer: 2,
};

fn peer(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, n).into()
}

/// Admits one connection of each peer.
fn admit(table: &mut ConnectionTable, peers: &[u8]) -> Vec<Admission> {
    let admitted = peers.iter().map(|n| table.admit(peer(*n)).unwrap());
    admitted.collect()
}

/// Returns the indices of the closed connections.
fn evicted(connections: &[Admission]) -> Vec<usize> {
    let evicted = connections.iter().enumerate();
    let evicted = evicted.filter(|(_, connection)| connection.evicted.is_cancelled());
    evicted.map(|(n, _)| n).collect()
}

#[test]
fn a_peer_at_its_limit_replaces_its_own_oldest_connection() {
    let mut table = ConnectionTable::new(LIMITS);
    let mut held = admit(&mut table, &[9, 1, 1]);
    held.push(table.admit(peer(1)).unwrap());
    assert_eq!(evicted(&held), [1]);
    held.push(table.admit(peer(1)).unwrap());
    assert_eq!(evicted(&held), [1, 2]);
}

#[test]
fn an_ipv4_mapped_address_is_the_same_peer() {
    let mut table = ConnectionTable::new(LIMITS);
    let held = admit(&mut table, &[1, 1]);
    let mapped = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().into();
    table.admit(mapped).unwrap();
    assert_eq!(evicted(&held), [0]);
}

#[test]
fn the_oldest_connection_without_a_request_is_closed_first() {
    let mut table = ConnectionTable::new(LIMITS);
    let held = admit(&mut table, &[1, 2, 3, 4]);
    // The oldest one has sent a request and is idle, the second is busy.
    table.begin_request(held[0].id);
    table.end_request(held[0].id);
    table.begin_request(held[1].id);
    table.admit(peer(5)).unwrap();
    assert_eq!(evicted(&held), [2]);
    table.admit(peer(6)).unwrap();
    assert_eq!(evicted(&held), [2, 3]);
}

#[test]
fn the_idle_connection_that_waits_longest_is_closed() {
    let mut table = ConnectionTable::new(LIMITS);
    let held = admit(&mut table, &[1, 2, 3, 4]);
    held.iter().for_each(|it| table.begin_request(it.id));
    for n in [2, 0, 1, 3] {
        table.end_request(held[n].id);
    }
    table.admit(peer(5)).unwrap();
    assert_eq!(evicted(&held), [2]);
}

#[test]
fn busy_connections_are_not_closed() {
    let mut table = ConnectionTable::new(LIMITS);
    let held = admit(&mut table, &[1, 1, 2, 3]);
    held.iter().for_each(|it| table.begin_request(it.id));
    assert_eq!(table.admit(peer(4)).unwrap_err(), Rejection::ServerBusy);
    table.end_request(held[3].id);
    assert_eq!(table.admit(peer(1)).unwrap_err(), Rejection::PeerBusy);
    table.admit(peer(4)).unwrap();
    assert_eq!(evicted(&held), [3]);
}

#[test]
fn a_removed_connection_does_not_count() {
    let mut table = ConnectionTable::new(LIMITS);
    let held = admit(&mut table, &[1, 1]);
    held.iter().for_each(|it| table.begin_request(it.id));
    table.remove(held[0].id);
    table.admit(peer(1)).unwrap();
    assert_eq!(evicted(&held), [] as [usize; 0]);
    assert!(table.has_served(held[1].id));
    assert!(!table.has_served(held[0].id));
}
