use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{Conversion, Functions};
use super::*;
use crate::schema::Schema;

fn kinds() -> Vec<KindVersions> {
    let same = |fields: &super::super::Fields, _| {
        Ok(Conversion {
            reversed: fields.clone(),
            fields: fields.clone(),
        })
    };
    let functions = Functions {
        fields: &["spec"],
        to_hub: same,
        from_hub: same,
        notes: |_| None,
    };
    let schema = Arc::new(Schema::default());
    let robot = KindVersions::new("example.com", "Robot", "v1", schema.clone());
    let robot = robot.spoke("v1alpha1", schema.clone(), functions);
    vec![robot.spoke("v1beta1", schema, functions)]
}

fn robot(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Robot",
        "metadata": {"name": name}, "spec": {"size": 1},
    })
}

fn respond(body: &[u8]) -> (u16, Value) {
    let review = review(&kinds(), body);
    (review.status, serde_json::from_slice(&review.body).unwrap())
}

fn request(version: &str, objects: &Value) -> (u16, Value) {
    let body = json!({
        "apiVersion": API_VERSION, "kind": KIND,
        "request": {"uid": "u-1", "desiredAPIVersion": version, "objects": objects},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    });
    respond(body.to_string().as_bytes())
}

#[test]
fn a_batch_is_converted_in_its_order() {
    let objects = json!([
        robot("v1alpha1", "a"),
        robot("v1", "b"),
        robot("v1alpha1", "c")
    ]);
    let (status, review) = request("example.com/v1", &objects);
    assert_eq!(status, 200);
    assert_eq!(
        review,
        json!({
            "apiVersion": API_VERSION, "kind": KIND,
            "response": {
                "uid": "u-1",
                "result": {"status": "Success"},
                "convertedObjects": [robot("v1", "a"), robot("v1", "b"), robot("v1", "c")],
            },
        })
    );
    let (_, empty) = request("example.com/v1", &json!([]));
    assert_eq!(empty["response"]["convertedObjects"], json!([]));
}

#[test]
fn each_version_is_converted_to_each_other() {
    let versions = ["v1", "v1alpha1", "v1beta1"];
    for (from, to) in versions
        .iter()
        .flat_map(|from| versions.map(|to| (from, to)))
    {
        let (status, review) = request(&format!("example.com/{to}"), &json!([robot(from, "a")]));
        assert_eq!(status, 200);
        let response = &review["response"];
        assert_eq!(response["result"]["status"], "Success", "{from} to {to}");
        assert_eq!(response["convertedObjects"], json!([robot(to, "a")]));
    }
}

#[test]
fn an_object_that_cannot_be_converted_fails_with_a_sentence() {
    let unknown_kind = json!([{"apiVersion": "example.com/v1", "kind": "Arm", "spec": {}}]);
    let other_group = json!([{"apiVersion": "other.com/v1", "kind": "Robot", "spec": {}}]);
    for (version, objects, message) in [
        (
            "example.com/v1",
            unknown_kind,
            "there is no conversion for kind \"Arm\" of \"example.com/v1\"",
        ),
        (
            "example.com/v1",
            other_group,
            "there is no conversion for kind \"Robot\" of \"other.com/v1\"",
        ),
        (
            "example.com/v9",
            json!([robot("v1", "a")]),
            "Robot of example.com has no version \"v9\"; its versions are v1, v1alpha1, v1beta1",
        ),
        (
            "example.com/v1",
            json!([robot("v9", "a")]),
            "Robot of example.com has no version \"v9\"; its versions are v1, v1alpha1, v1beta1",
        ),
        (
            "example.com/v1",
            json!([3]),
            "there is no conversion for kind \"\" of \"example.com/v1\"",
        ),
    ] {
        let (status, review) = request(version, &objects);
        assert_eq!(status, 200);
        assert_eq!(review["response"]["uid"], "u-1");
        assert_eq!(
            review["response"]["result"],
            json!({"status": "Failure", "message": message})
        );
    }
}

#[test]
fn a_body_that_is_not_a_review_is_refused() {
    let deep = "[".repeat(200_000);
    let other = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#;
    let without = format!(r#"{{"apiVersion": "{API_VERSION}", "kind": "{KIND}"}}"#);
    for (body, message) in [
        ("", "the request is not a ConversionReview"),
        ("garbage", "the request is not a ConversionReview"),
        ("null", "the request is not a ConversionReview"),
        (deep.as_str(), "the request is not a ConversionReview"),
        (other, "found kind \"AdmissionReview\""),
        (without.as_str(), "has no request"),
    ] {
        let (status, review) = respond(body.as_bytes());
        let found = review["response"]["result"]["message"].as_str().unwrap();
        assert!(status == 400 && found.contains(message), "{found}");
    }
}

#[test]
fn an_object_that_is_nested_too_deeply_is_refused() {
    let nested = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let body = format!(
        r#"{{"apiVersion": "{API_VERSION}", "kind": "{KIND}", "request": {{
            "uid": "u-1", "desiredAPIVersion": "example.com/v1",
            "objects": [{}, {nested}]}}}}"#,
        robot("v1alpha1", "a"),
    );
    let (status, review) = respond(body.as_bytes());
    assert_eq!(status, 400);
    let response = &review["response"];
    assert_eq!(response["result"]["status"], "Failure");
    assert_eq!(response["convertedObjects"], json!([]), "nothing of a part");
}
