use std::io::Read;

use http_body::Body;
use opkit_apimachinery::protobuf::{CONTENT_TYPE, decode};

use super::*;

/// Number of ConfigMaps of 2 KB, which are several chunks of a list.
const COUNT: usize = 200;

async fn with_config_maps() -> Api {
    let api = Api::alone();
    for number in 0..COUNT {
        let mut object = config_map(&format!("c{number:03}"));
        object["data"]["text"] = json!(format!("\"{}\u{e9}", "x".repeat(2_000)));
        object["metadata"]["labels"] = json!({"half": (number % 2).to_string()});
        assert_eq!(api.post(CONFIG_MAPS, object).await.0, 201);
    }
    api
}

/// Returns the body of a list, and the number of its chunks.
async fn chunks(api: &Api, path: &str, headers: &[(&str, &str)]) -> (Vec<u8>, usize) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let response = api.server.service().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let chunks = BodyStream::new(response.into_body());
    let chunks = chunks.map(|chunk| chunk.unwrap().into_data().unwrap());
    let chunks: Vec<Bytes> = chunks.collect().await;
    (chunks.concat(), chunks.len())
}

#[tokio::test]
async fn a_long_list_is_sent_in_chunks() {
    let api = with_config_maps().await;
    let mut expected = Vec::new();
    for number in 0..COUNT {
        let (_, object) = api.get(&format!("{CONFIG_MAPS}/c{number:03}")).await;
        expected.push(object);
    }
    let (body, count) = chunks(&api, CONFIG_MAPS, &[]).await;
    assert!(count > 3, "{count}");
    let list: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(list["kind"], "ConfigMapList");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), COUNT);
    for (item, object) in items.iter().zip(&expected) {
        assert!(item.get("kind").is_none() && item.get("apiVersion").is_none());
        assert_eq!(item["metadata"], object["metadata"]);
        assert_eq!(item["data"], object["data"]);
    }

    let (compressed, count) = chunks(&api, CONFIG_MAPS, &[("accept-encoding", "gzip")]).await;
    assert!(count > 1 && compressed.len() < body.len() / 4, "{count}");
    let mut text = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&compressed[..]);
    decoder.read_to_end(&mut text).unwrap();
    assert_eq!(text, body);

    for _ in 0..2 {
        let (protobuf, count) = chunks(&api, CONFIG_MAPS, &[("accept", CONTENT_TYPE)]).await;
        assert!(count > 3, "{count}");
        let read = decode(&protobuf).unwrap();
        assert_eq!(read["kind"], list["kind"]);
        assert!(read["items"] == list["items"]);
    }
    let (yaml, _) = chunks(&api, CONFIG_MAPS, &[("accept", "application/yaml")]).await;
    let read: Value = serde_saphyr::from_slice(&yaml).unwrap();
    assert!(read["items"] == list["items"]);
}

#[tokio::test]
async fn rows_of_a_table_are_sent_in_chunks() {
    let api = with_config_maps().await;
    let path = format!("{CONFIG_MAPS}?includeObject=Object");
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let (body, count) = chunks(&api, &path, &[("accept", accept)]).await;
    assert!(count > 3, "{count}");
    let table: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"].as_array().unwrap().len(), COUNT);
    let (_, object) = api.get(&format!("{CONFIG_MAPS}/c007")).await;
    assert_eq!(table["rows"][7]["object"], object);
    assert_eq!(table["rows"][7]["cells"][0], "c007");
}

#[tokio::test]
async fn a_short_list_has_a_length() {
    let api = with_config_maps().await;
    for (query, is_short) in [
        ("", false),
        ("?limit=5", true),
        ("?labelSelector=half%3D2", true),
    ] {
        let request = Request::get(format!("{CONFIG_MAPS}{query}"));
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let response = api.server.service().oneshot(request).await.unwrap();
        assert_eq!(response.body().size_hint().exact().is_some(), is_short);
    }
    let (_, half) = api
        .get(&format!("{CONFIG_MAPS}?labelSelector=half%3D1"))
        .await;
    assert_eq!(half["items"].as_array().unwrap().len(), COUNT / 2);
    let (_, empty) = api.get("/api/v1/secrets").await;
    assert_eq!(empty["items"], json!([]));
}

#[tokio::test]
async fn a_list_is_a_snapshot() {
    let api = with_config_maps().await;
    let request = Request::get(CONFIG_MAPS)
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = api.server.service().oneshot(request).await.unwrap();
    // Changes after the start of the response are not in the list.
    api.delete(&format!("{CONFIG_MAPS}/c199"), Value::Null)
        .await;
    api.merge(
        &format!("{CONFIG_MAPS}/c198"),
        json!({"data": {"a": "changed"}}),
    )
    .await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let list: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), COUNT);
    assert_eq!(list["items"][198]["data"]["a"], "b");
}
