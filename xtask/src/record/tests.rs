use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use differential::Script;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::proxy::{self, Exchange};
use super::{about, kubeconfig, script};
use crate::curl::Curl;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn exchange(method: &str, path: &str, content_type: &str, body: &[u8]) -> Exchange {
    Exchange {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers(&[("content-type", content_type)]),
        body: body.to_vec(),
        outcome: "200 OK".to_owned(),
        response: Value::Null,
    }
}

fn read_back(exchanges: &[Exchange]) -> Script {
    let text = script::write("Made by `a: \"b\"`.", "default", exchanges.iter());
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn exchanges_become_a_script() {
    let maps = "/api/v1/namespaces/default/configmaps";
    let long = json!({
        "metadata": {"name": "a", "namespace": "default", "annotations": {
            "last": "{\"metadata\":{\"namespace\":\"default\"}}",
        }},
        "data": {"a": "${HOME}: - #\n\ttab \u{1} é 😀 yes", "default": "default", "n": "1e3"},
    });
    let script = read_back(&[
        exchange(
            "POST",
            maps,
            "application/json",
            long.to_string().as_bytes(),
        ),
        exchange("POST", maps, "application/json", b"{\"a\":1}"),
        exchange("PATCH", "/x", "application/apply-patch+yaml", b"a: ${b}\n"),
        exchange("PUT", "/x", "application/json", b"null"),
        exchange("PUT", "/x", "application/octet-stream", b"\xff"),
    ]);
    assert_eq!(script.about, "Made by `a: \"b\"`.");
    let names: Vec<&str> = script.steps.iter().map(|step| step.name.as_str()).collect();
    let expected = [
        "post configmaps",
        "post configmaps, 2",
        "patch x",
        "put x",
        "put x, 2",
    ];
    assert_eq!(names, expected);
    let first = &script.steps[0];
    assert_eq!(first.path, "/api/v1/namespaces/${namespace}/configmaps");
    assert!(first.headers.is_empty());
    let expected = json!({
        "metadata": {"name": "a", "namespace": "${namespace}", "annotations": {
            "last": "{\"metadata\":{\"namespace\":\"${namespace}\"}}",
        }},
        "data": {
            "a": "${dollar}{HOME}: - #\n\ttab \u{1} é 😀 yes", "default": "default", "n": "1e3",
        },
    });
    assert_eq!(first.body, Some(expected));
    assert_eq!(script.vars["dollar"], "$");
    let patch = &script.steps[2];
    assert_eq!(
        patch.headers["content-type"],
        "application/apply-patch+yaml"
    );
    assert_eq!(patch.body, Some(json!("a: ${dollar}{b}\n")));
    assert_eq!(script.steps[3].body, Some(json!("null")));
    assert_eq!(script.steps[4].body, None);
    assert!(read_back(&[]).steps.is_empty());
}

#[test]
fn protobuf_becomes_json() {
    let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01a";
    let kind = "application/vnd.kubernetes.protobuf";
    let script = read_back(&[
        exchange("POST", "/api/v1/namespaces", kind, body),
        exchange("POST", "/api/v1/namespaces", kind, b"k8s\0\xff"),
    ]);
    let expected = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    assert_eq!(script.steps[0].body, Some(expected));
    assert!(script.steps[0].headers.is_empty());
    assert_eq!(script.steps[1].body, None);
}

#[test]
fn versions_and_uids_of_responses_are_captured() {
    let uid = "0a1b2c3d-1111-2222-3333-444455556666";
    let patch = json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}]);
    let replace = json!({"metadata": {"resourceVersion": "8", "uid": uid}, "data": {"a": "7"}});
    let json = "application/json";
    let mut exchanges = [
        exchange("GET", "/x", "", b""),
        exchange("PATCH", "/x", json, patch.to_string().as_bytes()),
        exchange("PUT", "/x", json, replace.to_string().as_bytes()),
        exchange("GET", "/x?resourceVersion=9&watch=true", "", b""),
    ];
    exchanges[0].response = json!({"metadata": {"resourceVersion": "7", "uid": uid}});
    exchanges[1].response = json!({"metadata": {"resourceVersion": "8", "uid": uid}});
    let script = read_back(&exchanges);
    let captured = |step: usize| {
        let capture = script.steps[step].capture.iter();
        capture.map(|(a, b)| format!("{a} {b}")).collect::<Vec<_>>()
    };
    let first = ["uid1 /metadata/uid", "version1 /metadata/resourceVersion"];
    assert_eq!(captured(0), first);
    assert_eq!(captured(1), ["version2 /metadata/resourceVersion"]);
    let value = script.steps[1].body.as_ref().unwrap().pointer("/0/value");
    assert_eq!(value, Some(&json!("${version1}")));
    let metadata = json!({"resourceVersion": "${version2}", "uid": "${uid1}"});
    let expected = json!({"metadata": metadata, "data": {"a": "7"}});
    assert_eq!(script.steps[2].body, Some(expected));
    // A version that no response had stays.
    assert!(script.steps[3].path.contains("resourceVersion=9&"));
}

#[test]
fn paths_use_the_namespace_of_the_suite() {
    let check = |path: &str, expected: &str| {
        let script = read_back(&[exchange("GET", path, "", b"")]);
        assert_eq!(script.steps[0].path, expected);
    };
    check(
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/${namespace}",
    );
    check(
        "/api/v1/namespaces/default-2/pods",
        "/api/v1/namespaces/default-2/pods",
    );
    check("/api/v1/pods?limit=500", "/api/v1/pods?limit=500");
    check(
        "/api/v1/pods?timeoutSeconds=480&watch=true&resourceVersion=7",
        "/api/v1/pods?watch=true&resourceVersion=7&timeoutSeconds=1",
    );
}

#[test]
fn headers_that_affect_the_response_are_kept() {
    let check = |given: &[(&str, &str)], has_body: bool, expected: &[(&str, &str)]| {
        let kept = script::headers(&headers(given), has_body);
        let kept: Vec<(&str, &str)> = kept.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(kept, expected);
    };
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    check(&[("accept", table)], false, &[("accept", table)]);
    check(&[("accept", "application/json, */*")], false, &[]);
    let protobuf = "application/vnd.kubernetes.protobuf,application/json";
    check(&[("accept", protobuf)], false, &[]);
    let merge = ("content-type", "application/merge-patch+json");
    check(&[merge], true, &[merge]);
    check(&[merge], false, &[]);
    check(&[("content-type", "application/json")], true, &[]);
    let dropped = [
        ("authorization", "Bearer secret"),
        ("user-agent", "kubectl"),
        ("kubectl-session", "x"),
        ("impersonate-user", "jane"),
    ];
    check(&dropped, false, &[("impersonate-user", "jane")]);
}

#[test]
fn discovery_is_distinguished_from_resources() {
    for path in [
        "/api?timeout=32s",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1?timeout=32s",
        "/openapi/v3/apis/apps/v1?hash=A",
        "/version",
    ] {
        assert!(script::is_discovery(path), "{path}");
    }
    for path in ["/api/v1/namespaces", "/apis/apps/v1/deployments", "/readyz"] {
        assert!(!script::is_discovery(path), "{path}");
    }
}

#[test]
fn a_request_is_read_with_a_length_and_in_chunks() {
    let read = |text: &str| proxy::read(&mut text.as_bytes());
    let request = read("POST /a?b=c HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}rest");
    let request = request.unwrap().unwrap();
    assert_eq!(request.uri(), "/a?b=c");
    assert_eq!(request.body(), b"{}");
    let chunked =
        "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n";
    assert_eq!(read(chunked).unwrap().unwrap().body(), b"abc");
    assert!(read("").unwrap().is_none());
    assert!(read("GET").is_err());
    assert!(read("GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab").is_err());
    assert!(read("GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n").is_err());
    assert!(read(&chunked.replace("1;x", "0x")).is_err());
}

#[test]
fn a_request_goes_to_the_server_and_back() {
    if std::process::Command::new("curl")
        .arg("-V")
        .output()
        .is_err()
    {
        println!("SKIPPED a_request_goes_to_the_server_and_back: no curl");
        return;
    }
    let real = TcpListener::bind("127.0.0.1:0").unwrap();
    let curl = Curl::new(&format!("http://{}", real.local_addr().unwrap()), "secret");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = std::thread::spawn(move || {
        let (mut stream, _) = real.accept().unwrap();
        let request = proxy::read(&mut BufReader::new(&stream)).unwrap().unwrap();
        let response = "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(response.as_bytes()).unwrap();
        request
    });
    let work = || {
        let mut stream = TcpStream::connect(address)?;
        let head =
            "POST /x HTTP/1.1\r\nHost: h\r\nAuthorization: mine\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(head.as_bytes())?;
        Ok(std::io::read_to_string(stream)?)
    };
    let (response, exchanges) =
        proxy::during(&listener, &curl, Duration::from_secs(5), work).unwrap();
    let seen = seen.join().unwrap();
    assert_eq!(seen.headers()["authorization"], "Bearer secret");
    assert_eq!(seen.body(), b"{}");
    assert!(response.starts_with("HTTP/1.1 201 Created\r\ncontent-type: a/b\r\n"));
    assert!(response.ends_with("\r\n\r\nok"));
    assert_eq!(exchanges.len(), 1);
    assert_eq!(exchanges[0].outcome, "201 Created");
    assert_eq!(exchanges[0].path, "/x");
}

#[test]
fn the_command_is_recorded_without_its_directory() {
    let command = ["/opt/x/kubectl", "get", "cm"].map(str::to_owned);
    assert_eq!(about(&command), "kubectl get cm");
    let config = kubeconfig("http://127.0.0.1:1", "ns");
    assert!(config.contains("\"namespace\":\"ns\""));
}
