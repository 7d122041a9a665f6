//! Log lines of refused requests.

use std::io;
use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use super::Api;

/// Log lines in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Returns the lines so far, and forgets them.
    fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock());
        String::from_utf8(bytes).unwrap()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn refused_requests_are_logged() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let api = Api::start();
    let path = "/api/v1/namespaces/default/pods";
    assert_eq!(api.get_as_alice(path).await.0, 403);
    let line = lines.take();
    for part in [
        "opkit_apiserver::denials: a request is denied",
        "user=alice",
        "verb=list",
        "resource=pods",
        "namespace=default",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, json!({"metadata": {"name": "robot"}}))
        .await;
    let token = api
        .server
        .service_account_token("default", "robot", None)
        .unwrap();
    api.delete(&format!("{accounts}/robot"), Value::Null).await;
    let expected = "serviceaccounts \"robot\" not found";
    for (token, reason) in [("wrong", "invalid bearer token"), (&token, expected)] {
        let header = format!("Bearer {token}");
        let headers = [("authorization", header.as_str())];
        let remote = api.server.remote_service();
        let sent = api
            .send_as(remote, (Method::GET, path), &headers, &Value::Null)
            .await;
        assert_eq!(sent.0, 401);
        let line = lines.take();
        assert!(line.contains("a request is not authenticated"), "{line}");
        assert!(
            line.contains(reason) && line.contains("resource=pods"),
            "{line}"
        );
        assert!(!line.contains(token), "the token is not logged");
    }
    let alice = api.server.service_as("alice", &[]);
    let headers = [("impersonate-user", "bob")];
    api.send_as(alice, (Method::GET, path), &headers, &Value::Null)
        .await;
    let line = lines.take();
    assert!(line.contains("may not impersonate another user"), "{line}");
}
