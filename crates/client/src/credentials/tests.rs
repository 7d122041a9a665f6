use std::sync::atomic::{AtomicUsize, Ordering};

use kube::config::{AuthProviderConfig, ExecConfig, ExecInteractiveMode};

use super::*;
use crate::transport::boxed;

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Sends a request with the credentials, and returns the `Authorization` header that arrives.
async fn sent(user: &AuthInfo, own: Option<&str>) -> Option<String> {
    let credentials = Credentials::new(user).unwrap();
    let next = tower::service_fn(|request: Request<Body>| async move {
        let header = request.headers().get(AUTHORIZATION);
        let text = header.map(|it| it.to_str().unwrap().to_owned());
        let mut response = http::Response::new(boxed(Body::empty()));
        response.extensions_mut().insert(text);
        Ok::<_, tower::BoxError>(response)
    });
    let mut request = Request::new(Body::empty());
    if let Some(own) = own {
        let own = HeaderValue::from_str(own).unwrap();
        request.headers_mut().insert(AUTHORIZATION, own);
    }
    let mut response = credentials.handle(next, request).await.unwrap();
    response.extensions_mut().remove().unwrap()
}

#[tokio::test]
async fn each_kind_of_credentials_is_sent() {
    let none = AuthInfo::default();
    assert_eq!(sent(&none, None).await, None);
    let token = AuthInfo {
        token: Some("secret".to_owned().into()),
        ..AuthInfo::default()
    };
    assert_eq!(sent(&token, None).await, some("Bearer secret"));
    assert_eq!(sent(&token, Some("Own x")).await, some("Own x"));
    let password = AuthInfo {
        username: some("me"),
        password: Some("secret".to_owned().into()),
        ..AuthInfo::default()
    };
    assert_eq!(sent(&password, None).await, some("Basic bWU6c2VjcmV0"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from-file\n").unwrap();
    let both = AuthInfo {
        token_file: some(file.path().to_str().unwrap()),
        ..token.clone()
    };
    assert_eq!(sent(&both, None).await, some("Bearer from-file"));
    // A token is used instead of a plugin.
    let exec = AuthInfo {
        exec: Some(ExecConfig {
            api_version: some("client.authentication.k8s.io/v1"),
            command: some("/nowhere/plugin"),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        }),
        ..token
    };
    assert_eq!(sent(&exec, None).await, some("Bearer secret"));
    let without_token = AuthInfo {
        token: None,
        ..exec.clone()
    };
    let client = crate::ClientOptions::default();
    let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    config.auth_info = without_token;
    let client = client.client(config).unwrap();
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let error = client.request_text(request).await.unwrap_err();
    let error = crate::one_line(&error);
    let expected = "cannot start the credential plugin /nowhere/plugin: ";
    assert!(error.contains(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_response_401_renews_the_credentials() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "one").unwrap();
    let user = AuthInfo {
        token_file: some(file.path().to_str().unwrap()),
        ..AuthInfo::default()
    };
    let credentials = Credentials::new(&user).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let next = tower::service_fn(move |request: Request<Body>| {
        counter.fetch_add(1, Ordering::Relaxed);
        let is_new = request.headers()[AUTHORIZATION] == "Bearer two";
        let code = if is_new { 200 } else { 401 };
        let response = http::Response::builder().status(code);
        async move { Ok::<_, tower::BoxError>(response.body(boxed(Body::empty())).unwrap()) }
    });
    let code = async || {
        let request = Request::new(Body::empty());
        credentials
            .handle(next.clone(), request)
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    std::fs::write(file.path(), "two").unwrap();
    // The response is the caller's, and the next request succeeds.
    assert_eq!(code().await, 401);
    assert_eq!(code().await, 200);
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[cfg(not(feature = "oidc"))]
#[tokio::test]
async fn an_id_token_is_sent_as_it_is() {
    let mut provider = AuthProviderConfig {
        name: "oidc".to_owned(),
        ..AuthProviderConfig::default()
    };
    let user = |provider: &AuthProviderConfig| AuthInfo {
        auth_provider: Some(provider.clone()),
        ..AuthInfo::default()
    };
    let error = Credentials::new(&user(&provider))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("without opkit's feature `oidc`"), "{error}");
    provider
        .config
        .insert("id-token".to_owned(), "a.b.c".to_owned());
    assert_eq!(sent(&user(&provider), None).await, some("Bearer a.b.c"));
}

#[test]
fn what_is_not_supported_is_refused_with_advice() {
    let check = |name: &str, expected: &str| {
        let provider = AuthProviderConfig {
            name: name.to_owned(),
            ..AuthProviderConfig::default()
        };
        let user = AuthInfo {
            auth_provider: Some(provider),
            ..AuthInfo::default()
        };
        let error = Credentials::new(&user).err().unwrap().to_string();
        assert!(error.ends_with(expected), "{error}");
    };
    check("gcp", "use the credential plugin gke-gcloud-auth-plugin");
    check("azure", "use the credential plugin kubelogin");
    check("other", "use a credential plugin");
    let user = AuthInfo {
        token: Some("a\nb".to_owned().into()),
        ..AuthInfo::default()
    };
    let error = Credentials::new(&user).err().unwrap().to_string();
    assert_eq!(
        error,
        "the token is not valid: it has characters that a header may not have"
    );
}
