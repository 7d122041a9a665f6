use opkit_apimachinery::protobuf::CONTENT_TYPE;

use super::*;

#[tokio::test]
async fn protobuf_bodies_are_read() {
    let api = Api::start();
    // A ConfigMap named "a" with the datum k=v.
    let body: &[u8] =
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v";
    let (code, created) = api
        .send_bytes(Method::POST, CONFIG_MAPS, CONTENT_TYPE, body)
        .await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["data"], json!({"k": "v"}));
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/a")).await.1, created);

    // DeleteOptions whose precondition is the resource version "0".
    let options: &[u8] = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x05\x12\x03\x12\x010";
    let path = format!("{CONFIG_MAPS}/a");
    let answer = api
        .send_bytes(Method::DELETE, &path, CONTENT_TYPE, options)
        .await;
    assert_eq!(answer.0, 409, "{}", message(&answer));
}

#[tokio::test]
async fn protobuf_that_does_not_read_is_refused() {
    let api = Api::start();
    let check = async |body: &'static [u8], expected: &str| {
        let answer = api
            .send_bytes(Method::POST, CONFIG_MAPS, CONTENT_TYPE, body)
            .await;
        assert_eq!(answer.0, 400);
        assert!(message(&answer).contains(expected), "{}", message(&answer));
    };
    check(b"{}", "does not begin with").await;
    check(
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x09",
        "core.v1.ConfigMap field 1 has a length of 9",
    )
    .await;
    let namespace = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x00";
    check(
        namespace,
        "Namespace in version \"v1\" cannot be handled as a ConfigMap",
    )
    .await;
}

#[tokio::test]
async fn other_media_types_are_listed_in_the_refusal() {
    let api = Api::start();
    let answer = api
        .send_bytes(Method::POST, CONFIG_MAPS, "text/plain", "x")
        .await;
    let expected = "the body of the request was in an unknown format - accepted media types include: \
                    application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert_eq!((answer.0, message(&answer)), (415, expected));
}
