use super::*;

/// client-go's `TestLeaseConversion` and `TestLeaseSpecToLeaderElectionRecordRoundTrip`.
#[test]
fn a_record_survives_the_lease() {
    let record = Record {
        holder: "baz".to_owned(),
        lease_seconds: 15,
        acquire_time: 1_700_000_000_000_001,
        renew_time: 1_700_000_002_123_456,
        transitions: 3,
    };
    let lease = written(json!({"metadata": {}}), &record, &BTreeMap::new());
    let spec = json!({
        "holderIdentity": "baz", "leaseDurationSeconds": 15, "leaseTransitions": 3,
        "acquireTime": "2023-11-14T22:13:20.000001Z", "renewTime": "2023-11-14T22:13:22.123456Z",
    });
    assert_eq!(lease, json!({"metadata": {}, "spec": spec}));
    assert_eq!(record_of(&lease), record);
    let nothing = Record {
        holder: String::new(),
        lease_seconds: 0,
        acquire_time: 0,
        renew_time: 0,
        transitions: 0,
    };
    assert_eq!(record_of(&json!({})), nothing);
    assert_eq!(record_of(&json!({"spec": null})), nothing);
}

/// What others keep in the lease stays, such as the fields of coordinated election.
#[test]
fn what_is_not_ours_is_kept() {
    let lease = json!({
        "metadata": {"resourceVersion": "7", "annotations": {"a": "b"}},
        "spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "bing"},
    });
    let record = record_of(&lease);
    let lease = written(lease, &record, &BTreeMap::new());
    assert_eq!(lease["spec"]["strategy"], "OldestEmulationVersion");
    assert_eq!(lease["metadata"]["annotations"]["a"], "b");
    assert_eq!(lease["metadata"]["resourceVersion"], "7");
}

/// client-go's `TestLabelUpdate`, `TestUpdateWithNilLabelsOnLease` and `...OnLeaseLock`.
#[test]
fn labels_are_added_to_those_that_are_there() {
    let check = |metadata: Value, labels: &[(&str, &str)], expected: Value| {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| (name.to_string(), value.to_string()));
        let lease = json!({"metadata": metadata});
        let record = record_of(&lease);
        let lease = written(lease, &record, &labels.collect());
        assert_eq!(lease["metadata"], expected);
    };
    check(json!({}), &[("a", "1")], json!({"labels": {"a": "1"}}));
    check(
        json!({"labels": null}),
        &[("a", "1")],
        json!({"labels": {"a": "1"}}),
    );
    check(
        json!({"labels": {"a": "0", "b": "2"}}),
        &[("a", "1")],
        json!({"labels": {"a": "1", "b": "2"}}),
    );
    check(json!({}), &[], json!({}));
}

/// Whatever the lease is called, no other resource is read or written for it.
#[tokio::test]
async fn a_lease_that_is_not_a_path_segment_is_refused() {
    let service = tower::service_fn(async |_: http::Request<kube::client::Body>| {
        let empty = http::Response::new(kube::client::Body::empty());
        Ok::<_, std::convert::Infallible>(empty)
    });
    let client = RestClient::new(kube::Client::new(service, "default"));
    for (namespace, name) in [("a/secrets/x?", "l"), ("", "l"), ("a", "../pods/x")] {
        let lock = Lock::new(client.clone(), namespace, name, BTreeMap::new());
        let Reply::Read(Err(error)) = lock.send(Request::Get).await else {
            panic!("{namespace:?} {name:?} was read");
        };
        let error = one_line(&error);
        assert!(error.contains("cannot be in the path"), "{error}");
        let update = Request::Update(record_of(&json!({})), "1".to_owned());
        let written = lock.send(update).await;
        let refused = matches!(written, Reply::Written(Err(RequestError::Build { .. })));
        assert!(refused, "{namespace:?} {name:?} was written");
    }
}
