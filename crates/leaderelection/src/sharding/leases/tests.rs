use super::*;

#[test]
fn names_and_labels_are_valid() {
    assert_eq!(
        lease_of("shop-operator", "pod-a_1"),
        format!("shop-operator-{:016x}", hash("pod-a_1"))
    );
    assert_eq!(
        label_of("shop-operator.opkit.dev"),
        "shop-operator.opkit.dev"
    );
    let long = "a".repeat(64);
    assert_eq!(label_of(&long), format!("{:016x}", hash(&long)));
}

#[tokio::test]
async fn a_ring_that_was_edited_by_hand_is_not_used() {
    let kube = kube::Client::new(
        tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("not called"))
        }),
        "default",
    );
    let mut leases = RingLeases::new(RestClient::new(kube), "shops", "ring");
    let ring = |text: &str| {
        json!({"items": [
            {"metadata": {"name": "ring", "resourceVersion": "7", "annotations": {ANNOTATION: text}}},
            {"metadata": {"name": "ring-1", "resourceVersion": "9"},
             "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}},
        ]})
    };
    assert!(leases.snapshot(ring("{}")).is_none());
    let text = r#"{"revision":3,"members":[],"owners":"-*8"}"#;
    let snapshot = leases.snapshot(ring(text)).unwrap();
    let (ring, version) = snapshot.ring.unwrap();
    assert_eq!((ring.revision, version.as_str()), (3, "7"));
    let lease = &snapshot.leases[0];
    assert_eq!(
        (lease.record.holder.as_str(), lease.record.lease_seconds),
        ("a", 15)
    );
}
