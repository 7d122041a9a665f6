use std::convert::Infallible;

use super::*;
use crate::ClientOptions;

/// Sends a request whose response starts and ends after these times, and returns the error.
async fn error(head: Duration, rest: Duration, limit: Option<Duration>) -> Option<String> {
    let service = tower::service_fn(move |_: Request<Body>| async move {
        tokio::time::sleep(head).await;
        let frame = futures::stream::once(async move {
            tokio::time::sleep(rest).await;
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"{}")))
        });
        let body = http_body_util::StreamBody::new(frame);
        Ok::<_, Infallible>(http::Response::new(boxed(body)))
    });
    let options = ClientOptions {
        request_timeout: limit,
        ..ClientOptions::default()
    };
    let metrics = options.metrics.clone();
    let client = options.in_process(service, "default");
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let response = client.request_text(request).await;
    assert_eq!(metrics.encode().matches("_retries_total{").count(), 0);
    response.err().map(|error| crate::one_line(&error))
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_at_its_limit() {
    let (ms, none) = (Duration::from_millis, Duration::ZERO);
    let limit = Some(ms(1500));
    assert_eq!(error(ms(1400), none, limit).await, None);
    assert_eq!(error(none, ms(1400), limit).await, None);
    assert_eq!(error(ms(90_000), none, None).await, None);
    for (head, rest) in [(ms(1600), none), (none, ms(1600)), (ms(900), ms(900))] {
        let error = error(head, rest, limit).await.unwrap();
        let expected = "no complete response within 1.5s, the request timeout";
        assert!(error.contains(expected), "{error}");
    }
}
