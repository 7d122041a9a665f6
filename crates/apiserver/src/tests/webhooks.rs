//! A webhook authorizer and a webhook authenticator.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Api, message};
use crate::{
    AuthenticationOptions, AuthenticationWebhook, AuthorizationMode, AuthorizationWebhook, Options,
    Server, StartError,
};

/// The decision of a test's webhook: the status of the review, or `None` for the HTTP code 400.
type Decide = fn(&Value) -> Option<Value>;

/// A webhook over HTTP, which runs until it is dropped.
struct Hook {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Hook {
    async fn start(decide: Decide) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                respond(stream, decide).await;
            }
        });
        Self {
            address,
            calls,
            _tasks: tasks,
        }
    }

    /// Returns the configuration file of the webhook.
    fn config(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: hook\n\
             clusters: [{{name: hook, cluster: {{server: 'http://{}/review'}}}}]\n\
             users: [{{name: api, user: {{token: secret}}}}]\n\
             contexts: [{{name: hook, context: {{cluster: hook, user: api}}}}]\n",
            self.address
        )
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

/// Responds to one request, and closes the connection.
async fn respond(mut stream: TcpStream, decide: Decide) {
    let mut bytes = Vec::new();
    let review: Value = loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the request ends early");
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if let Ok(review) = serde_json::from_str(body) {
            assert!(head.starts_with("POST /review HTTP/1.1"), "{head}");
            assert!(
                head.to_lowercase().contains("authorization: bearer secret"),
                "{head}"
            );
            break review;
        }
    };
    let (status, body) = match decide(&review) {
        Some(status) => ("200 OK", json!({"status": status}).to_string()),
        None => ("400 Bad Request", String::new()),
    };
    let length = body.len();
    let response =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(response.as_bytes()).await.unwrap();
}

fn authorized_by(hook: &Hook, before: &[AuthorizationMode]) -> Api {
    let mut authorization = before.to_vec();
    let webhook = AuthorizationWebhook::new(hook.config());
    authorization.push(AuthorizationMode::Webhook(webhook));
    Api::with(Options {
        authorization,
        ..Options::default()
    })
}

#[tokio::test]
async fn a_webhook_authorizes() {
    let hook = Hook::start(|review| {
        let spec = &review["spec"];
        assert_eq!(review["kind"], "SubjectAccessReview");
        assert_eq!(spec["user"], "alice");
        assert_eq!(spec["groups"], json!(["system:authenticated"]));
        Some(match spec["resourceAttributes"]["resource"].as_str() {
            Some("pods") => json!({"allowed": true}),
            Some("secrets") => json!({"allowed": false, "denied": true, "reason": "a secret"}),
            _ => json!({"allowed": false, "reason": "not today"}),
        })
    })
    .await;
    let api = authorized_by(&hook, &[]);
    assert_eq!(api.get_as_alice("/api/v1/pods").await.0, 200);
    assert_eq!(api.get_as_alice("/api/v1/pods").await.0, 200);
    assert_eq!(hook.calls(), 1, "a decision is remembered");
    let denied = api.get_as_alice("/api/v1/secrets").await;
    assert_eq!(denied.0, 403);
    assert!(message(&denied).ends_with("at the cluster scope: a secret"));
    let denied = api.get_as_alice("/healthz").await;
    assert!(
        message(&denied).ends_with("cannot get path \"/healthz\": not today"),
        "{denied:?}"
    );
    let first = authorized_by(&hook, &[AuthorizationMode::Rbac]);
    let calls = hook.calls();
    assert_eq!(first.get_as_alice("/healthz").await.0, 200);
    assert_eq!(hook.calls(), calls, "RBAC is asked first");
}

#[tokio::test]
async fn a_webhook_that_fails_does_not_allow() {
    let hook = Hook::start(|_| None).await;
    let api = authorized_by(&hook, &[]);
    let failed = api.get_as_alice("/api/v1/pods").await;
    assert_eq!(failed.0, 500, "{failed:?}");
    let open = authorized_by(&hook, &[AuthorizationMode::AlwaysAllow]);
    assert_eq!(open.get_as_alice("/api/v1/pods").await.0, 200);
}

#[tokio::test]
async fn a_webhook_authenticates() {
    let hook = Hook::start(|review| {
        assert_eq!(review["kind"], "TokenReview");
        Some(match review["spec"]["token"].as_str() {
            Some("good") => json!({"authenticated": true, "user": {
                "username": "bob", "uid": "7", "groups": ["dev"], "extra": {"a": ["b"]},
            }}),
            _ => json!({"authenticated": false}),
        })
    })
    .await;
    let authentication = AuthenticationOptions {
        webhook: Some(AuthenticationWebhook::new(hook.config())),
        ..AuthenticationOptions::default()
    };
    let api = Api::with(Options {
        authentication,
        ..Options::default()
    });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let send = |token: &'static str| {
        let remote = api.server.remote_service();
        let api = &api;
        async move {
            let headers = [("authorization", token)];
            api.send_as(remote, (Method::POST, path), &headers, &json!({}))
                .await
        }
    };
    let bob = json!({
        "username": "bob", "uid": "7", "groups": ["dev", "system:authenticated"],
        "extra": {"a": ["b"]},
    });
    assert_eq!(send("Bearer good").await.1["status"]["userInfo"], bob);
    assert_eq!(send("Bearer good").await.0, 201);
    assert_eq!(hook.calls(), 1, "a token is remembered");
    assert_eq!(send("Bearer bad").await.0, 401);
}

#[tokio::test]
async fn a_configuration_must_name_a_server() {
    for config in ["", "current-context: x", "clusters: 7"] {
        let webhook = AuthorizationWebhook::new(config);
        let started = Server::start(Options {
            authorization: vec![AuthorizationMode::Webhook(webhook)],
            ..Options::default()
        });
        assert!(
            matches!(started, Err(StartError::Option { .. })),
            "{config}"
        );
    }
}

/// A webhook over HTTPS: another server, which reviews requests by its own roles and tokens.
#[tokio::test]
async fn another_server_is_a_webhook() {
    let other = Api::start();
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    other.grant_to_alice("reader", rules).await;
    let token = other.server.token_for("alice", &[]).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = other.server.listen(address).await.unwrap();
    // The kubeconfig has the authority, and the certificate and the token of the administrator.
    let config = |path: &str| {
        let server = format!("https://{}", endpoint.address());
        let config = endpoint.kubeconfig();
        config.replace(&server, &format!("{server}{path}"))
    };
    let webhook =
        AuthorizationWebhook::new(config("/apis/authorization.k8s.io/v1/subjectaccessreviews"));
    let authentication = AuthenticationOptions {
        webhook: Some(AuthenticationWebhook::new(config(
            "/apis/authentication.k8s.io/v1/tokenreviews",
        ))),
        ..AuthenticationOptions::default()
    };
    let api = Api::with(Options {
        authorization: vec![AuthorizationMode::Webhook(webhook)],
        authentication,
        ..Options::default()
    });
    let header = format!("Bearer {token}");
    for (path, code) in [("/api/v1/pods", 200), ("/api/v1/secrets", 403)] {
        let headers = [("authorization", header.as_str())];
        let remote = api.server.remote_service();
        let sent = api
            .send_as(remote, (Method::GET, path), &headers, &Value::Null)
            .await;
        assert_eq!(sent.0, code, "{path}: {}", sent.1);
    }
    other.server.shutdown().await;
}
