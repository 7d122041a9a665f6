//! The document of OpenAPI v2 over HTTP.

use serde_json::Value;

use super::{Api, robot_crd};

const V2: &str = "/openapi/v2";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn openapi_v2_is_negotiated_and_cached() {
    let api = Api::start();
    let response = api.raw(V2, &[]).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let etag = response.headers()["etag"].to_str().unwrap().to_owned();
    let unchanged = api.raw(V2, &[("if-none-match", &etag)]).await;
    assert_eq!(
        (unchanged.status().as_u16(), unchanged.body().len()),
        (304, 0)
    );

    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let response = api.raw(V2, &[("accept", protobuf)]).await;
    assert_eq!(
        response.headers()["content-type"],
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
    // The first field is the version of the document.
    assert!(response.body().starts_with(b"\x0a\x032.0"));
    let refused = api.raw(V2, &[("accept", "text/html")]).await;
    assert_eq!((refused.status().as_u16(), refused.body().len()), (406, 0));

    assert_eq!(api.post(CRDS, robot_crd()).await.0, 201);
    let response = api.raw(V2, &[("if-none-match", &etag)]).await;
    assert_eq!(response.status(), 200);
    let document: Value = serde_json::from_slice(response.body()).unwrap();
    let robot = &document["definitions"]["dev.opkit.robot.v1.Robot"];
    assert_eq!(
        robot["properties"]["spec"]["properties"]["image"]["type"],
        "string"
    );
}
