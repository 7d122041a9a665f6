mod damage;
mod order;
mod responses;
mod round_trip;

use opkit_random::Random;
use serde_json::json;

use super::table::Table;
use super::*;

/// Returns recorded request bodies with their JSON.
fn bodies() -> Vec<(Vec<u8>, Value)> {
    recorded(include_str!("../../testdata/protobuf.txt"))
}

fn recorded(text: &str) -> Vec<(Vec<u8>, Value)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (hex, json) = line.split_once('\t').unwrap();
            let digits = hex
                .as_bytes()
                .chunks(2)
                .map(|pair| std::str::from_utf8(pair).unwrap());
            let bytes = digits
                .map(|digits| u8::from_str_radix(digits, 16).unwrap())
                .collect();
            (bytes, serde_json::from_str(json).unwrap())
        })
        .collect()
}

/// Encodes a length-delimited field; its number must be below 16.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(content);
    out
}

fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &type_meta), field(2, raw)].concat()
}

fn check_error(body: &[u8], expected: &str) {
    assert_eq!(decode(body).unwrap_err().to_string(), expected);
}

#[test]
fn bodies_of_kubectl_and_client_go() {
    let bodies = bodies();
    assert_eq!(bodies.len(), 15);
    for (bytes, expected) in bodies {
        assert_eq!(decode(&bytes).unwrap(), expected);
    }
}

#[test]
fn zeros_stay_where_go_has_a_pointer() {
    // replicas (a pointer) and minReadySeconds (not a pointer), both zero.
    let spec = field(2, &[1 << 3, 0, 5 << 3, 0]);
    let object = decode(&enveloped("apps/v1", "Deployment", &spec)).unwrap();
    assert_eq!(object["spec"], json!({"replicas": 0}));
}

#[test]
fn delete_options_belong_to_every_group() {
    for api_version in ["v1", "apps/v1", "example.com/v1"] {
        let object = decode(&enveloped(api_version, "DeleteOptions", &[1 << 3, 0])).unwrap();
        let expected =
            json!({"apiVersion": api_version, "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        assert_eq!(object, expected);
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let mut raw = field(15, b"?");
    raw.extend([
        14 << 3,
        1,
        13 << 3 | 1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        12 << 3 | 5,
        0,
        0,
        0,
        0,
    ]);
    raw.extend(field(1, &field(1, b"a")));
    let object = decode(&enveloped("v1", "Namespace", &raw)).unwrap();
    assert_eq!(object["metadata"], json!({"name": "a"}));
}

#[test]
fn json_passes_through_the_envelope() {
    let mut body = enveloped("v1", "Anything", br#"{"a": 1}"#);
    body.extend(field(4, b"application/json"));
    assert_eq!(decode(&body).unwrap(), json!({"a": 1}));

    body.extend(field(3, b"gzip"));
    check_error(&body, "cannot read an object encoded as \"gzip\"");
}

#[test]
fn an_envelope_may_hold_another() {
    let inner = enveloped("v1", "Namespace", &field(1, &field(1, b"a")));
    let body = enveloped(
        "apps/v1",
        "ControllerRevision",
        &field(2, &field(1, &inner)),
    );
    let expected = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    assert_eq!(decode(&body).unwrap()["data"], expected);
}

#[test]
fn errors_name_message_and_field() {
    check_error(
        b"{}",
        "the body does not begin with the bytes \"k8s\\0\" of Kubernetes' protobuf",
    );
    check_error(
        &enveloped("v2", "Pod", b""),
        "no kind \"Pod\" is registered for version \"v2\"",
    );
    check_error(
        &enveloped("v1", "Namespace", &field(1, &[1 << 3, 7])),
        "meta.v1.ObjectMeta.name is a varint and not a string",
    );
    check_error(
        &enveloped("v1", "Namespace", &field(1, &field(1, b"\xff"))),
        "meta.v1.ObjectMeta.name is not UTF-8",
    );
    check_error(
        &enveloped("v1", "Namespace", &field(1, &[10, 5, b'a'])),
        "meta.v1.ObjectMeta field 1 has a length of 5, but 1 bytes are left",
    );
    check_error(
        &enveloped("apps/v1", "Deployment", &field(2, &field(1, b""))),
        "apps.v1.DeploymentSpec.replicas is length-delimited, which the field cannot hold",
    );
    check_error(
        &enveloped("apps/v1", "ControllerRevision", &field(2, &field(1, b"{"))),
        "apps.v1.ControllerRevision.data is not JSON: EOF while parsing an object at line 1 column 1",
    );
}

#[test]
fn depth_has_a_limit() {
    // Each schema is the `not` (field 28) of the one around it.
    let mut schema = Vec::new();
    for _ in 0..200 {
        let mut outer = vec![0xe2, 0x01];
        let mut length = schema.len();
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(schema);
        schema = outer;
    }
    let table = Table::shared().unwrap();
    let kind = table
        .kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        .unwrap();
    assert_eq!(kind.name, "apiextensions.v1.CustomResourceDefinition");
    let message = table.named("apiextensions.v1.JSONSchemaProps").unwrap();
    let deserializer = Deserializer::new(MessageType { table, message }, &schema);
    assert_eq!(
        Value::deserialize(deserializer).unwrap_err().to_string(),
        "apiextensions.v1.JSONSchemaProps is nested deeper than 128 messages"
    );
}

#[test]
fn empty_structs_stay_where_go_has_no_pointer() {
    let raw = [field(1, b""), field(2, b""), field(3, b"")].concat();
    let object = decode(&enveloped("apps/v1", "Deployment", &raw)).unwrap();
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {}, "status": {},
    });
    assert_eq!(object, expected);

    // firstTimestamp, lastTimestamp and eventTime of an Event are not pointers.
    let raw = [field(6, b""), field(7, b""), field(10, b"")].concat();
    let object = decode(&enveloped("v1", "Event", &raw)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "Event",
        "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
    });
    assert_eq!(object, expected);

    // A creationTimestamp is marked with omitzero.
    let object = decode(&enveloped("v1", "Namespace", &field(1, &field(8, b"")))).unwrap();
    assert_eq!(object["metadata"], json!({}));
}
