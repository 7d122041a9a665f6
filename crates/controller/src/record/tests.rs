use super::*;

fn record(n: u64) -> ReconcileRecord {
    ReconcileRecord {
        controller: "robot".into(),
        kind: "Robot".into(),
        namespace: Some("default".into()),
        name: format!("robot-{}", n % 2),
        causes: vec![Cause::Retry(n as u32).to_string()],
        started: Timestamp::UNIX_EPOCH,
        duration: Duration::from_millis(n),
        result: Outcome::Ok,
    }
}

#[test]
fn the_oldest_go_and_the_last_of_each_object_stays() {
    let log = ReconcileLog::default();
    for n in 0..300 {
        log.push(record(n));
    }
    assert_eq!((log.records().len(), log.total()), (KEPT, 300));
    assert_eq!(log.records()[0].duration, Duration::from_millis(44));
    let last = log.last("robot", &("default", "robot-1").into()).unwrap();
    assert_eq!(last.causes, ["retry 299 after error"]);
    log.forget("robot", &("default", "robot-1").into());
    assert!(log.last("robot", &("default", "robot-1").into()).is_none());
}

#[test]
fn causes_read_as_sentences() {
    let deployment: Option<Arc<str>> = Some("Deployment".into());
    let check = |cause: Cause, expected: &str| assert_eq!(cause.to_string(), expected);
    check(Cause::InitialList, "initial list");
    check(
        Cause::Changed {
            kind: None,
            name: "robot-one".into(),
        },
        "robot-one changed",
    );
    check(
        Cause::Deleted {
            kind: deployment,
            name: "robot-one".into(),
        },
        "Deployment robot-one deleted",
    );
    check(Cause::Requeued, "requeued");
}

#[test]
fn a_record_is_json() {
    let error = Outcome::Error {
        message: "no".into(),
        retry_after: Some(Duration::from_secs(2)),
    };
    let json = serde_json::to_value(ReconcileRecord {
        result: error,
        ..record(1)
    })
    .unwrap();
    assert_eq!(json["result"]["outcome"], "error");
    assert_eq!(json["result"]["retrySeconds"], 2.0);
    let after = Duration::from_secs(3);
    let requeue = serde_json::to_value(Outcome::Requeue { after }).unwrap();
    assert_eq!(requeue["afterSeconds"], 3.0);
    assert_eq!(json["durationSeconds"], 0.001);
    assert_eq!(json["started"], "1970-01-01T00:00:00Z");
}
