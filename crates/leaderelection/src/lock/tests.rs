use super::*;

/// client-go's `TestLeaseConversion` and `TestLeaseSpecToLeaderElectionRecordRoundTrip`.
#[test]
fn a_record_is_the_same_after_a_round_trip() {
    let record = LeaseRecord {
        holder: "baz".to_owned(),
        lease_seconds: 15,
        acquire_time: 1_700_000_000_000_001,
        renew_time: 1_700_000_002_123_456,
        transitions: 3,
    };
    let lease = with_record(json!({"metadata": {}}), &record, &BTreeMap::new());
    let spec = json!({
        "holderIdentity": "baz", "leaseDurationSeconds": 15, "leaseTransitions": 3,
        "acquireTime": "2023-11-14T22:13:20.000001Z", "renewTime": "2023-11-14T22:13:22.123456Z",
    });
    assert_eq!(lease, json!({"metadata": {}, "spec": spec}));
    assert_eq!(record_of(&lease), record);
    let nothing = LeaseRecord {
        holder: String::new(),
        lease_seconds: 0,
        acquire_time: 0,
        renew_time: 0,
        transitions: 0,
    };
    assert_eq!(record_of(&json!({})), nothing);
    assert_eq!(record_of(&json!({"spec": null})), nothing);
}

/// Checks that fields of other clients are kept, such as those of coordinated election.
#[test]
fn unknown_fields_are_kept() {
    let lease = json!({
        "metadata": {"resourceVersion": "7", "annotations": {"a": "b"}},
        "spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "bing"},
    });
    let record = record_of(&lease);
    let lease = with_record(lease, &record, &BTreeMap::new());
    assert_eq!(lease["spec"]["strategy"], "OldestEmulationVersion");
    assert_eq!(lease["metadata"]["annotations"]["a"], "b");
    assert_eq!(lease["metadata"]["resourceVersion"], "7");
}

/// client-go's `TestLabelUpdate`, `TestUpdateWithNilLabelsOnLease` and `...OnLeaseLock`.
#[test]
fn labels_are_added_to_existing_ones() {
    let check = |metadata: Value, labels: &[(&str, &str)], expected: Value| {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| (name.to_string(), value.to_string()));
        let lease = json!({"metadata": metadata});
        let record = record_of(&lease);
        let lease = with_record(lease, &record, &labels.collect());
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

/// Checks that no name of a Lease makes the lock read or write another resource.
#[tokio::test]
async fn a_name_that_is_not_a_path_segment_is_rejected() {
    let service = tower::service_fn(async |_: http::Request<kube::client::Body>| {
        let empty = http::Response::new(kube::client::Body::empty());
        Ok::<_, std::convert::Infallible>(empty)
    });
    let client = RestClient::new(kube::Client::new(service, "default"));
    for (namespace, name) in [("a/secrets/x?", "l"), ("", "l"), ("a", "../pods/x")] {
        let lock = LeaseLock::new(client.clone(), namespace, name, BTreeMap::new());
        let RequestOutcome::Read(Err(error)) = lock.send(LeaseRequest::Get).await else {
            panic!("{namespace:?} {name:?} was read");
        };
        let error = one_line(&error);
        assert!(error.contains("cannot be in the path"), "{error}");
        let update = LeaseRequest::Update(record_of(&json!({})), "1".to_owned());
        let written = lock.send(update).await;
        let is_rejected = matches!(
            written,
            RequestOutcome::Written(Err(RequestError::Build { .. }))
        );
        assert!(is_rejected, "{namespace:?} {name:?} was written");
    }
}
