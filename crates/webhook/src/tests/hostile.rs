//! Requests that no API server sends: each is refused with a reason, and none ends the process.

use super::*;

fn allowed(review: &Value) -> bool {
    review["response"]["allowed"].as_bool().unwrap()
}

async fn refusal(body: impl Into<Bytes>) -> Value {
    let response = send(&one(webhook()), VALIDATE, body).await;
    assert_eq!(response.status(), 200);
    let review: Value = serde_json::from_slice(response.body()).unwrap();
    assert!(!allowed(&review), "{review}");
    review["response"]["status"].clone()
}

#[tokio::test]
async fn a_request_without_a_valid_uid_is_refused() {
    for uid in [json!(""), json!(null), json!(7), json!({})] {
        let mut review = review("CREATE", config_map(json!({})), json!(null));
        review["request"]["uid"] = uid;
        assert_eq!(refusal(review.to_string()).await["code"], 400);
    }
}

#[tokio::test]
async fn another_version_or_kind_of_review_is_refused() {
    for (field, value) in [
        ("apiVersion", "admission.k8s.io/v2"),
        ("apiVersion", "v1"),
        ("kind", "TokenReview"),
    ] {
        let mut review = review("CREATE", config_map(json!({})), json!(null));
        review[field] = json!(value);
        assert_eq!(
            refusal(review.to_string()).await["code"],
            400,
            "{field} {value}"
        );
    }
    let mut review = review("CREATE", config_map(json!({})), json!(null));
    review["request"]["operation"] = json!("PATCH");
    let message = "unknown operation \"PATCH\"";
    assert_eq!(refusal(review.to_string()).await["message"], message);
}

#[tokio::test]
async fn another_version_of_the_object_is_refused() {
    let mut review = review("CREATE", config_map(json!({})), json!(null));
    review["request"]["kind"]["version"] = json!("v2");
    let status = refusal(review.to_string()).await;
    assert_eq!(status["code"], 400);
    assert!(
        status["message"].as_str().unwrap().contains("ConfigMap"),
        "{status}"
    );
}

#[tokio::test]
async fn an_object_of_3_mib_is_decided() {
    let object = config_map(json!({"a": "x".repeat(3 * 1024 * 1024)}));
    let sent = review("UPDATE", object.clone(), object);
    let response = call(&one(webhook()), MUTATE, &sent).await;
    assert!(allowed(&response));
    let expected = json!([{"op": "add", "path": "/data/default", "value": "1"}]);
    assert_eq!(patch_of(&response), expected);
}

#[tokio::test]
async fn deep_nesting_is_refused_or_ignored() {
    let depth = 500_000;
    let deep = "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(refusal(deep.clone()).await["code"], 400);
    let text = review("CREATE", json!("OBJECT"), json!(null)).to_string();
    // A field that the type knows.
    let object = format!(r#"{{"metadata": {{"name": "one"}}, "data": {deep}}}"#);
    assert_eq!(
        refusal(text.replace("\"OBJECT\"", &object)).await["code"],
        400
    );
    // A field that the type does not know is skipped, also by the patch.
    let object = format!(r#"{{"metadata": {{"name": "one"}}, "new": {deep}}}"#);
    let body = text.replace("\"OBJECT\"", &object);
    let response = send(&one(webhook()), VALIDATE, body.clone()).await;
    assert!(allowed(&serde_json::from_slice(response.body()).unwrap()));
    let response = send(&one(webhook()), MUTATE, body).await;
    let response = serde_json::from_slice(response.body()).unwrap();
    assert!(allowed(&response));
    assert_eq!(patch_of(&response).as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_field_that_occurs_twice_is_refused() {
    let text = review("CREATE", config_map(json!({})), json!(null)).to_string();
    let twice = text.replacen("\"uid\"", "\"uid\":\"a\",\"uid\"", 1);
    assert_eq!(refusal(twice).await["code"], 400);
}
