use super::*;
use crate::content::verify;

const NOW: i64 = 1_790_000_000;
const NAMES: [&str; 2] = [
    "shop-webhook.shops.svc",
    "shop-webhook.shops.svc.cluster.local",
];

fn names() -> Vec<String> {
    NAMES.map(str::to_owned).to_vec()
}

#[test]
fn a_serving_certificate_is_verified_by_its_authority_only() {
    let own = authority("shop CA 1", NOW, NOW + 1000).unwrap();
    let other = authority("shop CA 1", NOW, NOW + 1000).unwrap();
    let pair = serving("shop CA 1", &own.key, &names(), NOW, NOW + 500).unwrap();
    for name in NAMES {
        assert_eq!(
            verify(&pair.certificate, &own.certificate, name, NOW),
            Ok(())
        );
    }
    assert!(verify(&pair.certificate, &other.certificate, NAMES[0], NOW).is_err());
    assert!(verify(&pair.certificate, &own.certificate, "other.shops.svc", NOW).is_err());
}

#[test]
fn a_serving_certificate_is_valid_in_its_time_and_an_hour_before() {
    let own = authority("shop CA 1", NOW, NOW + 10_000).unwrap();
    let pair = serving("shop CA 1", &own.key, &names(), NOW, NOW + 500).unwrap();
    let is_valid = |time| verify(&pair.certificate, &own.certificate, NAMES[0], time).is_ok();
    assert!(is_valid(NOW - 3600) && is_valid(NOW + 499));
    assert!(!is_valid(NOW - 3602) && !is_valid(NOW + 502));
}

#[test]
fn long_names_are_possible() {
    let own = authority("shop CA 1", NOW, NOW + 1000).unwrap();
    let name = format!("{}.{}.svc", "a".repeat(63), "b".repeat(63));
    let pair = serving(
        "shop CA 1",
        &own.key,
        std::slice::from_ref(&name),
        NOW,
        NOW + 500,
    )
    .unwrap();
    assert_eq!(
        verify(&pair.certificate, &own.certificate, &name, NOW),
        Ok(())
    );
}

#[test]
fn debug_output_has_no_private_key() {
    let own = authority("shop CA 1", NOW, NOW + 1000).unwrap();
    assert!(!format!("{own:?}").contains("PRIVATE"));
}
