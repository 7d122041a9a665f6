use http::HeaderValue;
use http_body_util::BodyExt;
use prometheus_client::metrics::counter::Counter;

use super::*;

#[test]
fn openmetrics_is_sent_to_clients_that_prefer_it() {
    let check = |accept: &'static str, expected: bool| {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        assert_eq!(prefers_openmetrics(&headers), expected, "{accept}");
    };
    assert!(!prefers_openmetrics(&HeaderMap::new()));
    check("*/*", false);
    check("text/plain", false);
    check("application/openmetrics-text", true);
    check("application/openmetrics-text;q=0", false);
    check(
        "text/plain;version=0.0.4;q=0.8,application/openmetrics-text;q=0.3",
        false,
    );
    // The header of Prometheus 3.
    check(
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
         application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
         escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        true,
    );
}

#[tokio::test]
async fn each_format_has_its_content_type() {
    let registry = MetricsRegistry::default();
    let orders: Counter = Counter::default();
    registry.lock().register("orders", "Orders", orders.clone());
    orders.inc();
    let scrape = ScrapeHandler {
        filter: None,
        registry,
    };
    let check = async |path: &str, accept: &str, status: u16, content_type: &str, body: &str| {
        let request = http::Request::get(path).header(header::ACCEPT, accept);
        let request = request.body(()).unwrap().into_parts().0;
        let response = scrape.respond(&request).await;
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.headers()[header::CONTENT_TYPE], content_type);
        let received = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(String::from_utf8_lossy(&received), body);
    };
    let prometheus = "# HELP orders_total Orders.\n# TYPE orders_total counter\norders_total 1\n";
    check("/metrics", "*/*", 200, PROMETHEUS_CONTENT_TYPE, prometheus).await;
    let openmetrics = "# HELP orders Orders.\n# TYPE orders counter\norders_total 1\n# EOF\n";
    let accept = "application/openmetrics-text";
    check(
        "/metrics",
        accept,
        200,
        OPENMETRICS_CONTENT_TYPE,
        openmetrics,
    )
    .await;
    let plain = "text/plain; charset=utf-8";
    check("/other", "*/*", 404, plain, "404 page not found\n").await;
    let request = http::Request::post("/metrics").body(()).unwrap();
    let response = scrape.respond(&request.into_parts().0).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn responses_are_compressed_for_clients_that_accept_gzip() {
    let scrape = ScrapeHandler {
        filter: None,
        registry: MetricsRegistry::default(),
    };
    let check = async |accept: &str, is_compressed: bool| {
        let request = http::Request::get("/metrics").header(header::ACCEPT_ENCODING, accept);
        let request = request.body(()).unwrap().into_parts().0;
        let response = scrape.respond(&request).await;
        let coding = response.headers().get(header::CONTENT_ENCODING);
        assert_eq!(coding.is_some(), is_compressed, "{accept}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.starts_with(&[0x1f, 0x8b]), is_compressed, "{accept}");
    };
    check("gzip", true).await;
    check("br, gzip;q=0.5", true).await;
    check("identity", false).await;
    check("gzip;q=0", false).await;
}
