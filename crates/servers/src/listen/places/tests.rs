use std::net::Ipv4Addr;

use super::*;

const LIMITS: Limits = Limits {
    connections: 4,
    per_peer: 2,
};

fn peer(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, n).into()
}

/// Admits a connection of each of these peers.
fn admit(places: &mut Places, peers: &[u8]) -> Vec<Admitted> {
    let admitted = peers.iter().map(|n| places.admit(peer(*n)).unwrap());
    admitted.collect()
}

/// Which of the connections had to give way.
fn evicted(connections: &[Admitted]) -> Vec<usize> {
    let gone = connections.iter().enumerate();
    let gone = gone.filter(|(_, connection)| connection.evicted.is_cancelled());
    gone.map(|(n, _)| n).collect()
}

#[test]
fn a_peer_that_has_its_share_replaces_its_own_oldest() {
    let mut places = Places::new(LIMITS);
    let mut held = admit(&mut places, &[9, 1, 1]);
    held.push(places.admit(peer(1)).unwrap());
    assert_eq!(evicted(&held), [1]);
    held.push(places.admit(peer(1)).unwrap());
    assert_eq!(evicted(&held), [1, 2]);
}

#[test]
fn an_address_of_ipv4_in_ipv6_is_the_same_peer() {
    let mut places = Places::new(LIMITS);
    let held = admit(&mut places, &[1, 1]);
    let mapped = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().into();
    places.admit(mapped).unwrap();
    assert_eq!(evicted(&held), [0]);
}

#[test]
fn when_full_the_oldest_without_a_complete_request_goes() {
    let mut places = Places::new(LIMITS);
    let held = admit(&mut places, &[1, 2, 3, 4]);
    // The oldest one has sent a request and is idle, the second is busy.
    places.begin_request(held[0].id);
    places.end_request(held[0].id);
    places.begin_request(held[1].id);
    places.admit(peer(5)).unwrap();
    assert_eq!(evicted(&held), [2]);
    places.admit(peer(6)).unwrap();
    assert_eq!(evicted(&held), [2, 3]);
}

#[test]
fn among_idle_connections_the_one_that_waits_longest_goes() {
    let mut places = Places::new(LIMITS);
    let held = admit(&mut places, &[1, 2, 3, 4]);
    held.iter().for_each(|it| places.begin_request(it.id));
    for n in [2, 0, 1, 3] {
        places.end_request(held[n].id);
    }
    places.admit(peer(5)).unwrap();
    assert_eq!(evicted(&held), [2]);
}

#[test]
fn busy_connections_stay() {
    let mut places = Places::new(LIMITS);
    let held = admit(&mut places, &[1, 1, 2, 3]);
    held.iter().for_each(|it| places.begin_request(it.id));
    assert_eq!(places.admit(peer(4)).unwrap_err(), Refusal::AllAreBusy);
    places.end_request(held[3].id);
    assert_eq!(places.admit(peer(1)).unwrap_err(), Refusal::PeerIsBusy);
    places.admit(peer(4)).unwrap();
    assert_eq!(evicted(&held), [3]);
}

#[test]
fn a_connection_that_ends_frees_its_place() {
    let mut places = Places::new(LIMITS);
    let held = admit(&mut places, &[1, 1]);
    held.iter().for_each(|it| places.begin_request(it.id));
    places.leave(held[0].id);
    places.admit(peer(1)).unwrap();
    assert_eq!(evicted(&held), [] as [usize; 0]);
    assert!(places.has_served(held[1].id));
    assert!(!places.has_served(held[0].id));
}
