use tower::{BoxError, Layer};

use super::*;
use crate::transport::HttpResponse;
use crate::transport::middleware::MiddlewareLayer;

fn bucket(qps: f64, burst: u32) -> Bucket {
    Bucket::new(RateLimit { qps, burst }).unwrap()
}

#[test]
fn a_burst_passes_and_the_rest_wait_in_order() {
    let mut bucket = bucket(10.0, 3);
    let now = Duration::from_secs(7);
    let waits: Vec<u128> = (0..6).map(|_| bucket.take(now).as_millis()).collect();
    assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
    // Half a second later the three waiting requests have their tokens, and two more are free.
    let later = now + Duration::from_millis(500);
    let waits: Vec<u128> = (0..3).map(|_| bucket.take(later).as_millis()).collect();
    assert_eq!(waits, [0, 0, 100]);
}

#[test]
fn an_idle_bucket_fills_up_to_its_capacity() {
    let mut bucket = bucket(10.0, 2);
    assert!(bucket.take(Duration::from_secs(3600)).is_zero());
    assert!(bucket.take(Duration::from_secs(3600)).is_zero());
    assert_eq!(bucket.take(Duration::from_secs(3600)).as_millis(), 100);
}

#[test]
fn no_rate_is_no_limit() {
    for qps in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Bucket::new(RateLimit { qps, burst: 1 }).is_none(), "{qps}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_takes_no_token() {
    let limit = RateLimit { qps: 1.0, burst: 1 };
    let inner = tower::service_fn(async |_: Request<Body>| {
        let body = super::super::boxed(http_body_util::Empty::<bytes::Bytes>::new());
        Ok::<HttpResponse, BoxError>(http::Response::new(body))
    });
    let limited = MiddlewareLayer(Limiter::new(limit, Metrics::default())).layer(inner);
    let send = || limited.clone().oneshot(Request::new(Body::empty()));
    send().await.unwrap();
    for _ in 0..100 {
        let given_up = tokio::time::timeout(Duration::from_millis(1), send()).await;
        assert!(given_up.is_err());
    }
    let start = Instant::now();
    send().await.unwrap();
    assert!(
        start.elapsed() <= Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}
