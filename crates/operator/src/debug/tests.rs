use std::convert::Infallible;

use serde_json::json;
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

#[tokio::test]
async fn explain_returns_reconciles_or_an_error_for_an_unknown_kind() {
    let subject = subject();
    let check = async |query: Option<&str>, code: u16, expected: &str| {
        let (status, body) = explain::explain(&subject, query).await;
        assert_eq!(status.as_u16(), code, "{body}");
        assert!(body.contains(expected), "{body}");
    };
    for kind in [
        "robot",
        "Robot",
        "robots",
        "rb",
        "RB",
        "robots.robot.opkit.dev",
    ] {
        let query = format!("kind={kind}&name=one&namespace=default");
        check(Some(&query), 200, r#""objects":[]"#).await;
    }
    for kind in ["shop", "sh"] {
        let query = format!("kind={kind}&name=one");
        let expected = format!("robot-operator reconciles no {kind}");
        check(Some(&query), 404, &expected).await;
    }
    check(Some("kind=shop"), 400, "kind and name must be given").await;
    check(None, 400, "kind and name must be given").await;
}

/// Returns a client of a server that has robots and shops, both with short names.
fn cluster() -> kube::Client {
    let service = tower::service_fn(|request: http::Request<kube::client::Body>| {
        let resource = |plural: &str, kind: &str, short: &str| {
            json!({
                "resource": plural, "singularResource": kind.to_lowercase(), "scope": "Namespaced",
                "responseKind": {"group": "robot.opkit.dev", "version": "v1", "kind": kind},
                "shortNames": [short], "verbs": ["list"],
            })
        };
        let resources = [
            resource("robots", "Robot", "rb"),
            resource("shops", "Shop", "sh"),
        ];
        let items = match request.uri().path() {
            "/apis" => json!([{
                "metadata": {"name": "robot.opkit.dev"},
                "versions": [{"version": "v1", "resources": resources}],
            }]),
            _ => json!([]),
        };
        let body = json!({"kind": "APIGroupDiscoveryList", "items": items}).to_string();
        let form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let answer = Response::builder().header("content-type", form);
        async move {
            Ok::<_, Infallible>(
                answer
                    .body(kube::client::Body::from(body.into_bytes()))
                    .unwrap(),
            )
        }
    });
    kube::Client::new(service, "default")
}

fn subject() -> Subject {
    Subject {
        operator: "robot-operator".into(),
        controllers: vec![("robot".into(), kind())],
        log: ReconcileLog::default(),
        metrics: MetricsRegistry::default(),
        names: RestMapper::new(cluster()),
        client: RestClient::new(cluster()),
        owners: ShardOwners::default(),
        ready: watch::channel(true).1,
    }
}

#[tokio::test]
async fn serves_reconciles_and_writes_its_address_to_the_file() {
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
async fn only_loopback_addresses_are_accepted() {
    let options = DebugOptions {
        address: "0.0.0.0:0".parse().unwrap(),
        address_file: None,
    };
    let error = DebugServer::listen(&options, subject()).await;
    assert!(matches!(error, Err(OperatorError::DebugNotLoopback { .. })));
}

#[tokio::test]
async fn requests_for_other_hosts_are_refused() {
    let check = async |hosts: &[&str], uri: &str, expected: StatusCode| {
        let mut request = http::Request::get(uri);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        let (request, ()) = request.body(()).unwrap().into_parts();
        let response = respond(&subject(), &request).await;
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
        check(&[host], path, StatusCode::OK).await;
    }
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "",
        "a b",
    ] {
        check(&[host], path, StatusCode::FORBIDDEN).await;
    }
    check(&[], path, StatusCode::FORBIDDEN).await;
    check(&["localhost", "evil.example"], path, StatusCode::FORBIDDEN).await;
    check(
        &["localhost"],
        "http://evil.example/debug/reconciles",
        StatusCode::FORBIDDEN,
    )
    .await;
    check(
        &["localhost"],
        "http://localhost/debug/reconciles",
        StatusCode::OK,
    )
    .await;
}
