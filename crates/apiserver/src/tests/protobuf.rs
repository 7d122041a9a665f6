use opkit_apimachinery::protobuf::CONTENT_TYPE;

use super::*;

#[tokio::test]
async fn protobuf_bodies_are_read() {
    let api = Api::start();
    // A ConfigMap named "a" with the data k=v.
    let body: &[u8] =
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v";
    let (code, created) = api
        .send_bytes(Method::POST, CONFIG_MAPS, CONTENT_TYPE, body)
        .await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["data"], json!({"k": "v"}));
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/a")).await.1, created);

    // DeleteOptions with the resource version "0" as a precondition.
    let options: &[u8] = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x05\x12\x03\x12\x010";
    let path = format!("{CONFIG_MAPS}/a");
    let response = api
        .send_bytes(Method::DELETE, &path, CONTENT_TYPE, options)
        .await;
    assert_eq!(response.0, 409, "{}", message(&response));
}

#[tokio::test]
async fn invalid_protobuf_is_refused() {
    let api = Api::start();
    let check = async |body: &'static [u8], expected: &str| {
        let response = api
            .send_bytes(Method::POST, CONFIG_MAPS, CONTENT_TYPE, body)
            .await;
        assert_eq!(response.0, 400);
        assert!(
            message(&response).contains(expected),
            "{}",
            message(&response)
        );
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
async fn the_error_lists_the_accepted_media_types() {
    let api = Api::start();
    let response = api
        .send_bytes(Method::POST, CONFIG_MAPS, "text/plain", "x")
        .await;
    let expected = "the body of the request was in an unknown format - accepted media types include: \
                    application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert_eq!((response.0, message(&response)), (415, expected));
}
