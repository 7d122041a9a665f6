use super::*;
use crate::content::verify;

const NOW: i64 = 1_790_000_000;
const DAY: i64 = 24 * 60 * 60;
const MINUTE: i64 = 60;

fn purpose() -> Purpose {
    Purpose {
        operator: "shop-operator".to_owned(),
        names: vec!["shop-webhook.shops.svc".to_owned()],
        periods: Periods::default(),
    }
}

fn created() -> Content {
    let mut content = Content::default();
    let change = rotate(&mut content, &purpose(), None, NOW).unwrap();
    assert_eq!(change, Some(Change::Created));
    content
}

fn is_valid(content: &Content, now: i64) -> bool {
    let serving = content.serving.as_ref().unwrap();
    let name = "shop-webhook.shops.svc";
    verify(&serving.pair.certificate, &content.bundle(), name, now).is_ok()
}

#[test]
fn the_first_step_creates_an_authority_and_a_certificate() {
    let mut content = created();
    assert!(is_valid(&content, NOW));
    assert_eq!(content.authorities.len(), 1);
    let change = rotate(&mut content, &purpose(), Some(NOW), NOW + DAY).unwrap();
    assert_eq!(change, None);
}

#[test]
fn a_serving_certificate_is_renewed_by_the_same_authority() {
    let mut content = created();
    let before = content.clone();
    let change = rotate(&mut content, &purpose(), Some(NOW), NOW + 59 * DAY).unwrap();
    assert_eq!(change, None);
    let change = rotate(&mut content, &purpose(), Some(NOW), NOW + 60 * DAY).unwrap();
    assert_eq!(change, Some(Change::ServingRenewed));
    assert_eq!(content.bundle(), before.bundle());
    assert!(is_valid(&content, NOW + 149 * DAY));
}

#[test]
fn a_new_name_needs_a_new_certificate_at_once() {
    let mut content = created();
    let mut purpose = purpose();
    purpose.names.push("other.shops.svc".to_owned());
    let change = rotate(&mut content, &purpose, None, NOW + 1).unwrap();
    assert_eq!(change, Some(Change::ServingRenewed));
    let serving = content.serving.unwrap();
    assert_eq!(serving.dates.names, purpose.names);
}

/// An IP address is one of the names, as for a webhook that is called by a URL.
#[test]
fn replicas_with_different_names_share_a_certificate() {
    let mut content = created();
    let (old, mut new) = (purpose(), purpose());
    new.names = vec![new.names[0].clone(), "127.0.0.1".to_owned()];
    let change = rotate(&mut content, &new, None, NOW + 1).unwrap();
    assert_eq!(change, Some(Change::ServingRenewed));
    for purpose in [&old, &new] {
        assert_eq!(rotate(&mut content, purpose, None, NOW + 2).unwrap(), None);
    }
    let mut other = purpose();
    other.names = vec!["other.shops.svc".to_owned()];
    rotate(&mut content, &other, None, NOW + 3).unwrap();
    let serving = content.serving.as_ref().unwrap();
    for name in [&new.names[0], "127.0.0.1", "other.shops.svc"] {
        verify(&serving.pair.certificate, &content.bundle(), name, NOW + 3).unwrap();
    }
    for purpose in [&old, &new, &other] {
        assert_eq!(rotate(&mut content, purpose, None, NOW + 4).unwrap(), None);
    }
    // The next renewal is for the names of the replica that renews.
    let change = rotate(&mut content, &new, None, NOW + 61 * DAY).unwrap();
    assert_eq!(change, Some(Change::ServingRenewed));
    assert_eq!(content.serving.unwrap().dates.names, new.names);
}

/// Each step of a rotation waits for its condition.
#[test]
fn an_authority_is_replaced_in_three_steps() {
    let purpose = purpose();
    let mut content = created();
    let start = NOW + 244 * DAY;
    content.serving = Some(sign(&content.authorities[0], &purpose, &purpose.names, start).unwrap());
    let step =
        |content: &mut Content, confirmed, now| rotate(content, &purpose, confirmed, now).unwrap();
    assert_eq!(
        step(&mut content, Some(NOW), start),
        Some(Change::AuthorityAdded)
    );
    assert!(
        is_valid(&content, start),
        "the old certificate stays in use"
    );
    // A configuration does not have the new bundle yet.
    assert_eq!(step(&mut content, None, start + DAY), None);
    let confirmed = Some(start + DAY);
    assert_eq!(
        step(&mut content, confirmed, start + DAY + 9 * MINUTE),
        None
    );
    let signed = start + DAY + 10 * MINUTE;
    assert_eq!(
        step(&mut content, confirmed, signed),
        Some(Change::ServingRenewed)
    );
    // One replica does not serve the new certificate yet.
    let fingerprint = content.serving.as_ref().unwrap().fingerprint();
    let periods = Periods::default();
    for (replica, serving, now) in [("a", fingerprint.as_str(), signed), ("b", "old", signed)] {
        replicas::report(&mut content, replica, serving, &periods, now);
    }
    assert_eq!(step(&mut content, confirmed, signed + 14 * MINUTE), None);
    replicas::report(
        &mut content,
        "b",
        &fingerprint,
        &periods,
        signed + 14 * MINUTE,
    );
    assert_eq!(step(&mut content, confirmed, signed + 23 * MINUTE), None);
    let end = signed + 24 * MINUTE;
    assert_eq!(
        step(&mut content, confirmed, end),
        Some(Change::AuthorityRemoved)
    );
    assert_eq!(content.authorities.len(), 1);
    assert!(is_valid(&content, end));
}

#[test]
fn everything_is_new_after_the_authority_has_expired() {
    let mut content = created();
    let before = content.bundle();
    let now = NOW + 366 * DAY;
    let change = rotate(&mut content, &purpose(), Some(NOW), now).unwrap();
    assert_eq!(change, Some(Change::Created));
    assert_ne!(content.bundle(), before);
    assert!(is_valid(&content, now));
}

#[test]
fn an_expired_certificate_is_replaced_by_the_oldest_authority() {
    let purpose = purpose();
    let mut content = created();
    content
        .authorities
        .insert(0, new_authority(&purpose, NOW + 99 * DAY).unwrap());
    let now = NOW + 100 * DAY;
    let change = rotate(&mut content, &purpose, None, now).unwrap();
    assert_eq!(change, Some(Change::ServingRenewed));
    let serving = content.serving.as_ref().unwrap();
    assert_eq!(serving.dates.authority, content.authorities[1].dates.name);
    assert!(is_valid(&content, now));
}
