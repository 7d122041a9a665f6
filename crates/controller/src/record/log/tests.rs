use super::*;

fn record(n: u64) -> ReconcileRecord {
    ReconcileRecord {
        controller: "robot".into(),
        kind: "Robot".into(),
        request: Request::from(("default", format!("robot-{}", n % 2))),
        number: 0,
        causes: Cause::Retry(n as u32).into(),
        cache_reads: 1,
        live_reads: 0,
        writes: Vec::new(),
        started: Timestamp::UNIX_EPOCH,
        duration: Duration::from_millis(n),
        result: Outcome::Ok,
        hot_loop: None,
    }
}

#[tokio::test]
async fn the_oldest_are_dropped_and_the_last_of_each_object_is_kept() {
    let log = ReconcileLog::default();
    let once = ReconcileRecord {
        request: Request::from(("default", "robot-once")),
        ..record(0)
    };
    log.push(once, "test");
    for n in 0..MAX_RECORDS as u64 + 100 {
        log.push(record(n), "test");
    }
    assert_eq!(log.records().len(), MAX_RECORDS);
    assert_eq!(log.total(), MAX_RECORDS as u64 + 101);
    assert_eq!(log.records()[0].duration, Duration::from_millis(100));
    let one = Request::from(("default", "robot-1"));
    let of_one = log.of("robot", &one);
    assert_eq!(of_one.len(), MAX_RECORDS_PER_OBJECT);
    let last = of_one.last().unwrap();
    assert_eq!(
        last.causes(),
        [format!("retry {} after error", MAX_RECORDS + 99)]
    );
    assert_eq!(last.number, (MAX_RECORDS as u64 + 100) / 2);
    assert!(
        log.last("robot", &("default", "robot-once").into())
            .is_some()
    );
    log.forget(&"robot".into(), &one);
    assert!(log.of("robot", &one).is_empty());
    assert_eq!(log.last_of_each().len(), 2);
}

#[tokio::test]
async fn the_number_of_objects_is_limited() {
    let log = ReconcileLog::default();
    for n in 0..MAX_OBJECTS as u64 + 10 {
        let request = Request::from(("default", format!("robot-{n}")));
        log.push(
            ReconcileRecord {
                request,
                ..record(n)
            },
            "test",
        );
    }
    assert_eq!(log.last_of_each().len(), MAX_OBJECTS);
    assert_eq!(log.records().len(), MAX_RECORDS);
}

#[test]
fn causes_read_as_sentences() {
    let deployment: Option<Arc<str>> = Some("Deployment".into());
    let check = |cause: Cause, expected: &str| assert_eq!(cause.to_string(), expected);
    check(Cause::InitialList, "initial list");
    let name = || "robot-one".to_owned();
    let new = Cause::Changed {
        kind: None,
        name: name(),
        fields: Vec::new(),
    };
    check(new, "robot-one changed");
    let gone = Cause::Deleted {
        kind: deployment,
        name: name(),
    };
    check(gone, "Deployment robot-one deleted");
    check(Cause::Requeued, "requeued");
    check(
        Cause::Triggered {
            by: "web server".into(),
        },
        "web server",
    );
}

#[tokio::test]
async fn the_existence_of_an_object_is_checked_only_if_it_may_have_been_deleted() {
    let log = ReconcileLog::default();
    let changed = |kind: Option<&str>| Cause::Changed {
        kind: kind.map(Into::into),
        name: "robot-0".to_owned(),
        fields: Vec::new(),
    };
    let deleted = |kind: Option<&str>| Cause::Deleted {
        kind: kind.map(Into::into),
        name: "robot-0".to_owned(),
    };
    let triggered = || Cause::Triggered { by: "test".into() };
    let may_be_gone = |cause: Cause| {
        let record = ReconcileRecord {
            causes: cause.into(),
            ..record(0)
        };
        log.push(record, "test").may_be_gone
    };
    // The object may have been deleted and forgotten during its reconcile.
    assert!(may_be_gone(changed(None)));
    assert!(!may_be_gone(changed(None)));
    assert!(!may_be_gone(triggered()));
    assert!(!may_be_gone(changed(Some("Deployment"))));
    // After a deletion, every cause may concern the deleted object.
    assert!(may_be_gone(deleted(None)));
    assert!(may_be_gone(triggered()));
    assert!(may_be_gone(Cause::Requeued));
    assert!(!may_be_gone(changed(None)));
    assert!(may_be_gone(Cause::Retry(1)));
}
