use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;

use super::*;

/// API server that knows two users and records the reviews that it receives.
#[derive(Clone, Default)]
struct Api {
    reviews: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<Mutex<bool>>,
}

impl Api {
    fn filter(&self) -> AuthFilter {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.respond(request).await) }
        });
        AuthFilter::new(RestClient::new(kube::Client::new(service, "default")))
    }

    async fn respond(&self, request: Request<Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        if *self.is_broken.lock() {
            let status = json!({"kind": "Status", "status": "Failure", "code": 403,
                "message": "not you", "reason": "Forbidden"});
            let response = Response::builder().status(403);
            return response
                .body(Body::from(status.to_string().into_bytes()))
                .unwrap();
        }
        let spec = &review["spec"];
        if path.ends_with("/tokenreviews") {
            let token = spec["token"].as_str().unwrap().to_owned();
            self.reviews.lock().push(format!("token {token}"));
            review["status"] = match token.as_str() {
                "reader" | "outsider" => json!({"authenticated": true, "user": {
                    "username": token, "groups": ["g"], "extra": {"pod": ["p"]},
                }}),
                _ => json!({"authenticated": false}),
            };
        } else {
            assert_eq!(spec["groups"], json!(["g"]));
            assert_eq!(spec["extra"], json!({"pod": ["p"]}));
            let attributes = &spec["nonResourceAttributes"];
            let user = spec["user"].as_str().unwrap();
            let (verb, path) = (&attributes["verb"], &attributes["path"]);
            self.reviews.lock().push(format!(
                "access {user} {} {}",
                verb.as_str().unwrap(),
                path.as_str().unwrap()
            ));
            review["status"] = json!({"allowed": user == "reader" && verb == "get"});
        }
        Response::new(Body::from(review.to_string().into_bytes()))
    }

    /// Returns the reviews since the last call.
    fn take_reviews(&self) -> Vec<String> {
        std::mem::take(&mut self.reviews.lock())
    }
}

async fn status(filter: &AuthFilter, authorization: Option<&str>) -> (u16, String) {
    let mut headers = HeaderMap::new();
    if let Some(value) = authorization {
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
    }
    match filter.check(&Method::GET, "/metrics", &headers).await {
        Ok(()) => (200, String::new()),
        Err(response) => {
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_api_server_decides_on_access() {
    let api = Api::default();
    let filter = api.filter();
    let check = async |authorization: Option<&str>, expected: u16, body: &str| {
        let response = status(&filter, authorization).await;
        assert_eq!(response, (expected, body.to_owned()), "{authorization:?}");
    };
    for without in [
        None,
        Some("Bearer"),
        Some("Bearer "),
        Some("Basic cmVhZGVy"),
    ] {
        check(without, 401, "Unauthorized\n").await;
    }
    assert!(api.take_reviews().is_empty());
    check(Some("Bearer unknown"), 401, "Unauthorized\n").await;
    let denied = "Authorization denied for user outsider\n";
    check(Some("Bearer outsider"), 403, denied).await;
    check(Some("bearer reader"), 200, "").await;
    assert_eq!(
        api.take_reviews(),
        [
            "token unknown",
            "token outsider",
            "access outsider get /metrics",
            "token reader",
            "access reader get /metrics"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn reviews_are_cached_for_their_ttl() {
    let api = Api::default();
    let filter = api.filter();
    let reviews = async |seconds: u64| {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        status(&filter, Some("Bearer reader")).await;
        status(&filter, Some("Bearer outsider")).await;
        api.take_reviews().len()
    };
    assert_eq!(reviews(0).await, 4);
    assert_eq!(reviews(29).await, 0);
    // A denial is cached for 30 s, a token for 60 s, a permission for 300 s.
    assert_eq!(reviews(1).await, 1);
    assert_eq!(reviews(30).await, 3);
    assert_eq!(reviews(238).await, 3);
    assert_eq!(reviews(2).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_review_is_an_error_and_is_not_cached() {
    let api = Api::default();
    let filter = api.filter();
    *api.is_broken.lock() = true;
    let response = status(&filter, Some("Bearer reader")).await;
    assert_eq!(response, (500, "Authentication failed\n".to_owned()));
    *api.is_broken.lock() = false;
    assert_eq!(status(&filter, Some("Bearer reader")).await.0, 200);
    tokio::time::advance(ALLOWED_TTL).await;
    filter
        .users
        .lock()
        .entries
        .values_mut()
        .for_each(|(expires, _)| *expires = Duration::MAX);
    *api.is_broken.lock() = true;
    let response = status(&filter, Some("Bearer reader")).await;
    assert_eq!(
        response,
        (500, "Authorization for user reader failed\n".to_owned())
    );
}

#[test]
fn the_cache_is_bounded() {
    let mut cache = TtlCache::default();
    let (second, now) = (Duration::from_secs(1), Duration::ZERO);
    for number in 0..CACHE_CAPACITY {
        let ttl = if number < 10 { second } else { 9 * second };
        cache.insert(now, ttl, number, ());
    }
    cache.insert(2 * second, second, 1000, ());
    assert_eq!(cache.entries.len(), CACHE_CAPACITY - 9);
    for number in 1001..1010 {
        cache.insert(2 * second, second, number, ());
    }
    cache.insert(2 * second, second, 2000, ());
    assert_eq!(cache.entries.len(), 1);
    assert_eq!(cache.get(2 * second, &2000), Some(()));
    assert_eq!(cache.get(3 * second, &2000), None);
}
