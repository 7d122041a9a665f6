use http::StatusCode;
use opkit_servers::metrics::MetricsRegistry;
use serde_json::{Value, json};

use super::*;
use crate::handler::Services;
use crate::tests::send;
use crate::{WebhookRouter, WebhookSet};

fn router(convert: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> WebhookRouter {
    let set = WebhookSet {
        conversion: Some(ConversionWebhook::new(convert)),
        ..WebhookSet::default()
    };
    WebhookRouter::with_services(set, Services::default())
}

async fn response(router: &WebhookRouter, body: impl Into<Bytes>) -> Value {
    let response = send(router, ConversionWebhook::PATH, body).await;
    assert_eq!(response.status(), StatusCode::OK);
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test]
async fn the_function_gets_the_body_and_returns_the_response() {
    let router = router(|body| body.iter().rev().copied().collect());
    let response = send(&router, ConversionWebhook::PATH, "{}").await;
    assert_eq!(response.body().as_ref(), b"}{");
}

#[tokio::test]
async fn a_panic_is_a_failure_with_the_uid_of_the_request() {
    let router = router(|_| panic!("fake panic test"));
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u-1", "desiredAPIVersion": "example.com/v1", "objects": []},
    });
    let failed = response(&router, review.to_string()).await;
    assert_eq!(
        failed["response"],
        json!({
            "uid": "u-1", "convertedObjects": [],
            "result": {"status": "Failure", "code": 500, "message": "the conversion panicked"},
        })
    );
    // The next request is served.
    let failed = response(&router, "garbage").await;
    assert_eq!(failed["response"]["uid"], "");
    let registry = MetricsRegistry::default();
    router.metrics.register(&registry);
    let metrics = registry.encode_prometheus();
    let panics = "controller_runtime_conversion_webhook_panics_total 2";
    assert!(metrics.contains(panics), "{metrics}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let router = router(|_| Vec::new());
    let failed = response(&router, vec![b' '; CONVERSION_MAX_BYTES]).await;
    assert_eq!(failed["kind"], "ConversionReview");
    assert_eq!(failed["response"]["result"]["code"], 413);
}
