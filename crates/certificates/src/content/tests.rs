use std::time::Duration;

use super::*;
use crate::Periods;
use crate::rotation::{Purpose, rotate};

const NOW: i64 = 1_790_000_000;

fn content() -> Content {
    let purpose = Purpose {
        operator: "shop-operator".to_owned(),
        names: vec!["shop-webhook.shops.svc".to_owned()],
        periods: Periods {
            authority: Duration::from_secs(3000),
            ..Periods::default()
        },
    };
    let mut content = Content::default();
    rotate(&mut content, &purpose, None, NOW).unwrap();
    rotate(&mut content, &purpose, None, NOW + 2000).unwrap();
    assert_eq!(content.authorities.len(), 2);
    let report = Replica {
        serving: "x".to_owned(),
        since: NOW,
        seen: NOW + 1,
    };
    content.replicas.insert("pod-1".to_owned(), report);
    content
}

#[test]
fn the_data_of_a_secret_is_read_as_it_was_written() {
    let content = content();
    let data = content.encode();
    assert_eq!(Content::decode(Some(&data)), Ok(content));
    assert_eq!(Content::decode(None), Ok(Content::default()));
}

/// An edit by hand is noticed, whichever key it changes, and lost reports are no damage.
#[test]
fn damaged_data_has_a_reason() {
    let content = content();
    let good = content.encode();
    let other = self::content().encode();
    for key in [CERTIFICATE, KEY, AUTHORITIES, AUTHORITY_KEYS, DATES] {
        for damage in [json!("bm9uc2Vuc2U="), json!("%"), Value::Null, json!("")] {
            let mut data = good.clone();
            data[key] = damage.clone();
            let decoded = Content::decode(Some(&data));
            let is_damaged = decoded.as_ref().is_err_and(|reason| !reason.is_empty());
            assert!(is_damaged, "{key}: {damage}: {decoded:?}");
        }
    }
    for key in [CERTIFICATE, KEY, AUTHORITIES] {
        let mut data = good.clone();
        data[key] = other[key].clone();
        assert!(
            Content::decode(Some(&data)).is_err(),
            "{key} of another Secret"
        );
    }
    let mut data = good;
    data[REPLICAS] = json!("%");
    assert!(Content::decode(Some(&data)).unwrap().replicas.is_empty());
}
