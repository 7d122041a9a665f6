use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::*;

fn kind() -> Kind {
    Kind {
        group: "robot.opkit.dev".into(),
        version: "v1".into(),
        kind: "Robot".into(),
        plural: "robots".into(),
        namespaced: true,
    }
}

#[test]
fn explains_what_it_reconciles_and_says_what_it_does_not() {
    let check = |query: Option<&str>, code: u16, expected: &str| {
        let (status, body) = explain(&subject(), query);
        assert_eq!(status.as_u16(), code, "{body}");
        assert!(body.contains(expected), "{body}");
    };
    for kind in ["robot", "Robot", "robots"] {
        let query = format!("kind={kind}&name=one&namespace=default");
        check(Some(&query), 200, r#""objects":[]"#);
    }
    check(
        Some("kind=shop&name=one"),
        404,
        "robot-operator reconciles no shop",
    );
    check(Some("kind=shop"), 400, "kind and name must be given");
    check(None, 400, "kind and name must be given");
}

fn subject() -> Subject {
    Subject {
        operator: "robot-operator".into(),
        controllers: vec![("robot".into(), kind())],
        log: ReconcileLog::default(),
        ready: watch::channel(true).1,
    }
}

#[tokio::test]
async fn serves_the_reconciles_and_tells_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("address");
    let options = DebugOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        address_file: Some(file.clone()),
    };
    let server = Arc::new(DebugServer::listen(&options, subject()).await.unwrap());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(server.serve(stop.clone()));

    let address = std::fs::read_to_string(&file).unwrap();
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!("GET /debug/reconciles HTTP/1.1\r\nhost: {address}\r\n");
    let request = format!("{head}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(r#""controllers":["robot"]"#), "{answer}");
    assert!(answer.contains(r#""running":true"#), "{answer}");
    assert!(answer.contains(r#""reconciles":[]"#), "{answer}");

    stop.cancel();
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn other_addresses_than_loopback_are_refused() {
    let options = DebugOptions {
        address: "0.0.0.0:0".parse().unwrap(),
        address_file: None,
    };
    let error = DebugServer::listen(&options, subject()).await;
    assert!(matches!(error, Err(OperatorError::DebugNotLoopback { .. })));
}

#[test]
fn only_requests_for_this_machine_are_answered() {
    let check = |hosts: &[&str], uri: &str, expected: StatusCode| {
        let mut request = http::Request::get(uri);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        let (request, ()) = request.body(()).unwrap().into_parts();
        let response = respond(&subject(), &request);
        assert_eq!(response.status(), expected, "{hosts:?} {uri}");
        assert_eq!(
            response.body().contains("robot"),
            expected == StatusCode::OK
        );
    };
    let path = "/debug/reconciles";
    for host in [
        "127.0.0.1:1",
        "127.0.0.1",
        "localhost:80",
        "LOCALHOST",
        "[::1]:80",
        "127.8.0.1",
    ] {
        check(&[host], path, StatusCode::OK);
    }
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "",
        "a b",
    ] {
        check(&[host], path, StatusCode::FORBIDDEN);
    }
    check(&[], path, StatusCode::FORBIDDEN);
    check(&["localhost", "evil.example"], path, StatusCode::FORBIDDEN);
    check(
        &["localhost"],
        "http://evil.example/debug/reconciles",
        StatusCode::FORBIDDEN,
    );
    check(
        &["localhost"],
        "http://localhost/debug/reconciles",
        StatusCode::OK,
    );
}
