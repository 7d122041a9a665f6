use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;

use super::*;

/// An API server that knows two users, and counts what it is asked.
#[derive(Clone, Default)]
struct Api {
    asked: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<Mutex<bool>>,
}

impl Api {
    fn guard(&self) -> Guard {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Guard::new(RestClient::new(kube::Client::new(service, "default")))
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        if *self.is_broken.lock() {
            let status = json!({"kind": "Status", "status": "Failure", "code": 403,
                "message": "not you", "reason": "Forbidden"});
            let answer = Response::builder().status(403);
            return answer
                .body(Body::from(status.to_string().into_bytes()))
                .unwrap();
        }
        let spec = &review["spec"];
        if path.ends_with("/tokenreviews") {
            let token = spec["token"].as_str().unwrap().to_owned();
            self.asked.lock().push(format!("who {token}"));
            review["status"] = match token.as_str() {
                "reader" | "stranger" => json!({"authenticated": true, "user": {
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
            self.asked.lock().push(format!(
                "may {user} {} {}",
                verb.as_str().unwrap(),
                path.as_str().unwrap()
            ));
            review["status"] = json!({"allowed": user == "reader" && verb == "get"});
        }
        Response::new(Body::from(review.to_string().into_bytes()))
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

async fn status(guard: &Guard, authorization: Option<&str>) -> (u16, String) {
    let mut headers = HeaderMap::new();
    if let Some(value) = authorization {
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
    }
    match guard.check(&Method::GET, "/metrics", &headers).await {
        Ok(()) => (200, String::new()),
        Err(answer) => {
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_read_is_asked_of_the_api_server() {
    let api = Api::default();
    let guard = api.guard();
    let check = async |authorization: Option<&str>, expected: u16, body: &str| {
        let said = status(&guard, authorization).await;
        assert_eq!(said, (expected, body.to_owned()), "{authorization:?}");
    };
    for without in [
        None,
        Some("Bearer"),
        Some("Bearer "),
        Some("Basic cmVhZGVy"),
    ] {
        check(without, 401, "Unauthorized\n").await;
    }
    assert!(api.asked().is_empty());
    check(Some("Bearer nobody"), 401, "Unauthorized\n").await;
    let denied = "Authorization denied for user stranger\n";
    check(Some("Bearer stranger"), 403, denied).await;
    check(Some("bearer reader"), 200, "").await;
    assert_eq!(
        api.asked(),
        [
            "who nobody",
            "who stranger",
            "may stranger get /metrics",
            "who reader",
            "may reader get /metrics"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn answers_hold_for_their_time() {
    let api = Api::default();
    let guard = api.guard();
    let asks = async |seconds: u64| {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        status(&guard, Some("Bearer reader")).await;
        status(&guard, Some("Bearer stranger")).await;
        api.asked().len()
    };
    assert_eq!(asks(0).await, 4);
    assert_eq!(asks(29).await, 0);
    // A refusal holds for 30 s, a token for a minute, a permission for five.
    assert_eq!(asks(1).await, 1);
    assert_eq!(asks(30).await, 3);
    assert_eq!(asks(238).await, 3);
    assert_eq!(asks(2).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_asked_is_an_error_that_is_not_remembered() {
    let api = Api::default();
    let guard = api.guard();
    *api.is_broken.lock() = true;
    let said = status(&guard, Some("Bearer reader")).await;
    assert_eq!(said, (500, "Authentication failed\n".to_owned()));
    *api.is_broken.lock() = false;
    assert_eq!(status(&guard, Some("Bearer reader")).await.0, 200);
    tokio::time::advance(ALLOWED).await;
    guard
        .tokens
        .lock()
        .answers
        .values_mut()
        .for_each(|(until, _)| *until = Duration::MAX);
    *api.is_broken.lock() = true;
    let said = status(&guard, Some("Bearer reader")).await;
    assert_eq!(
        said,
        (500, "Authorization for user reader failed\n".to_owned())
    );
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut remembered = Remembered::default();
    let (second, now) = (Duration::from_secs(1), Duration::ZERO);
    for number in 0..REMEMBERED {
        let time = if number < 10 { second } else { 9 * second };
        remembered.insert(now, time, number, ());
    }
    remembered.insert(2 * second, second, 1000, ());
    assert_eq!(remembered.answers.len(), REMEMBERED - 9);
    for number in 1001..1010 {
        remembered.insert(2 * second, second, number, ());
    }
    remembered.insert(2 * second, second, 2000, ());
    assert_eq!(remembered.answers.len(), 1);
    assert_eq!(remembered.get(2 * second, &2000), Some(()));
    assert_eq!(remembered.get(3 * second, &2000), None);
}
