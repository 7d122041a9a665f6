use super::*;

fn read(text: &str) -> Result<(Vec<String>, ListMeta), PageError> {
    let mut page = JsonPage::new(Bytes::copy_from_slice(text.as_bytes()));
    let mut items = Vec::new();
    while let Some(item) = page.next()? {
        items.push(String::from_utf8(item.to_vec()).unwrap());
    }
    Ok((items, page.into_meta()))
}

#[test]
fn objects_are_split_completely() {
    let hard = r#"{"a":"}\"{","b":[{"c":"\\"},[]],"d":{"e":{}}}"#;
    let text = format!(
        r#"{{ "kind" : "List", "metadata":{{"resourceVersion":"7","continue":"x","n":[1]}},
            "items": [ {hard} , {{}},{hard}], "more": [1, {{"items": []}}], "last": null }}"#
    );
    let (items, meta) = read(&text).unwrap();
    assert_eq!(items, [hard, "{}", hard]);
    assert_eq!(meta.resource_version.as_deref(), Some("7"));
    assert_eq!(meta.continue_token.as_deref(), Some("x"));
}

#[test]
fn metadata_may_come_last() {
    let (items, meta) = read(r#"{"items":[{"a":1}],"metadata":{"resourceVersion":"7"}}"#).unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(meta.resource_version.as_deref(), Some("7"));
}

#[test]
fn a_null_list_is_empty() {
    let (items, meta) = read(r#"{"metadata":{},"items":null}"#).unwrap();
    assert!(items.is_empty());
    assert_eq!(meta, ListMeta::default());
}

#[test]
fn an_invalid_list_is_an_error() {
    for text in [
        "",
        "[]",
        "{",
        "{\"items\":[",
        "{\"items\":[{\"a\":\"",
        "{\"items\":[5]}",
        "404",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
    let whole = r#"{"metadata":{"resourceVersion":"7"},"items":[{"a":"b"},{"c":[1]}]}"#;
    for cut in 0..whole.len() {
        assert!(read(&whole[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn a_page_in_protobuf_is_cut_as_well() {
    let list = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "7", "continue": "x"},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    });
    let body = Bytes::from(opkit_apimachinery::protobuf::encode(&list).unwrap());
    let page = |body: Bytes| Page {
        body,
        encoding: Encoding::Protobuf,
    };
    let mut reader = Reader::new(page(body.clone())).unwrap();
    let mut count = 0;
    while let Some(item) = reader.next().unwrap() {
        assert!(matches!(reader.raw(&item), Raw::Protobuf(_)));
        count += 1;
    }
    assert_eq!(count, 2);
    let meta = reader.into_meta();
    assert_eq!(meta.resource_version.as_deref(), Some("7"));
    assert_eq!(meta.continue_token.as_deref(), Some("x"));
    assert!(Reader::new(page(body.slice(..9))).is_err());
}
