use std::sync::Arc;

use parking_lot::Mutex;

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

/// Returns the times in which `watch` sends requests, within 20 s. Each watch lasts for `length`.
async fn watches(length: Duration) -> Vec<u64> {
    let times = Arc::new(Mutex::new(Vec::new()));
    let (started, sent) = (Instant::now(), times.clone());
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        sent.lock().push(started.elapsed().as_secs());
        async move {
            sleep(length).await;
            Ok::<_, std::io::Error>(http::Response::new(kube::client::Body::empty()))
        }
    });
    let client = RestClient::new(kube::Client::new(service, "default"));
    let (changed, pause) = (Notify::new(), Duration::from_secs(2));
    let watch = watch(
        client,
        "shops".to_owned(),
        "ring".to_owned(),
        &changed,
        pause,
    );
    let limit = Duration::from_secs(20);
    assert!(tokio::time::timeout(limit, watch).await.is_err());
    let notified = tokio::time::timeout(Duration::ZERO, changed.notified());
    assert!(notified.await.is_ok(), "the end of a watch leads to a list");
    let times = times.lock();
    times.clone()
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_started_again_at_once_and_one_that_fails_after_a_pause() {
    assert_eq!(watches(Duration::from_secs(6)).await, [0, 6, 12, 18]);
    let failing = watches(Duration::ZERO).await;
    assert_eq!(failing, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
}
