use super::*;

fn reconcile(result: Outcome) -> Reconcile {
    Reconcile {
        controller: "robot".to_owned(),
        kind: "Robot".to_owned(),
        cluster: None,
        namespace: Some("default".to_owned()),
        name: "one".to_owned(),
        number: 1,
        causes: vec!["initial list".to_owned()],
        cache_reads: 1,
        live_reads: 0,
        writes: Vec::new(),
        started: Timestamp::UNIX_EPOCH,
        duration_seconds: 0.001,
        result,
        hot_loop: None,
    }
}

#[test]
fn a_reconcile_is_decoded_as_it_was_sent() {
    let outcomes = [
        Outcome::Ok,
        Outcome::Requeue { after_seconds: 3.0 },
        Outcome::Error {
            message: "no".to_owned(),
            retry_seconds: Some(2.0),
        },
    ];
    for outcome in outcomes {
        let sent = reconcile(outcome);
        let json = serde_json::to_string(&sent).unwrap();
        assert_eq!(serde_json::from_str::<Reconcile>(&json).unwrap(), sent);
    }
}

#[test]
fn fields_are_named_as_in_kubernetes() {
    let error = Outcome::Error {
        message: "no".to_owned(),
        retry_seconds: Some(2.0),
    };
    let json = serde_json::to_value(reconcile(error)).unwrap();
    assert_eq!(json["cacheReads"], 1);
    assert_eq!(json["durationSeconds"], 0.001);
    assert_eq!(json["started"], "1970-01-01T00:00:00Z");
    assert_eq!(json["result"]["outcome"], "error");
    assert_eq!(json["result"]["retrySeconds"], 2.0);
    assert_eq!(json.get("cluster"), None);
    let requeue = serde_json::to_value(Outcome::Requeue { after_seconds: 3.0 }).unwrap();
    assert_eq!(requeue["afterSeconds"], 3.0);
}
