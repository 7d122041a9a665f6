use super::*;

const NOW: i64 = 1_790_000_000;
const HOUR: i64 = 60 * 60;

/// Reports of replicas with the time of the last report.
fn reports(seen: &[(&str, i64)]) -> Content {
    let reports = seen.iter().map(|(name, seen)| {
        let report = Replica {
            serving: "new".to_owned(),
            since: *seen,
            seen: *seen,
        };
        ((*name).to_owned(), report)
    });
    Content {
        replicas: reports.collect(),
        ..Content::default()
    }
}

#[test]
fn a_report_from_the_future_does_not_block_a_rotation() {
    let mut content = reports(&[("good", NOW), ("near", NOW + 60), ("far", NOW + 9 * HOUR)]);
    let since = all_serve_since(&content, "new");
    assert_eq!(since, Some(NOW + 9 * HOUR), "it would wait for nine hours");
    assert!(correct_clock(&mut content, NOW));
    assert_eq!(all_serve_since(&content, "new"), Some(NOW + 60));
    assert!(!correct_clock(&mut content, NOW), "corrected once");

    // A replica that never comes back counts for the usual time.
    let periods = Periods::default();
    let timeout = seconds(periods.replica_timeout);
    assert!(!remove_dead(&mut content, &periods, NOW + timeout - 1));
    assert!(remove_dead(&mut content, &periods, NOW + timeout));
    assert_eq!(content.replicas.keys().collect::<Vec<_>>(), ["near"]);
}
