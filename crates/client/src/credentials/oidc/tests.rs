use std::sync::Arc;

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex as SyncMutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::*;

/// Returns an ID token that expires in this number of seconds.
fn token(name: &str, expires_in: i64) -> String {
    let expiry = Timestamp::now().as_second() + expires_in;
    let payload = format!(r#"{{"sub": "{name}", "exp": {expiry}.5}}"#);
    format!("header.{}.signature", URL_SAFE_NO_PAD.encode(payload))
}

/// A stand-in issuer. It responds to a refresh with the next of `responses`, and records the forms
/// that it accepts.
struct Issuer {
    url: String,
    forms: Arc<SyncMutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Issuer {
    async fn start(tls: Option<TlsAcceptor>, in_form: bool, responses: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let port = listener.local_addr().unwrap().port();
        let url = format!("{scheme}://localhost:{port}");
        let forms = Arc::new(SyncMutex::new(Vec::new()));
        let (base, log) = (url.clone(), forms.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, base, log) = (tls.clone(), base.clone(), log.clone());
                let responses = responses.clone();
                connections.spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        answer(
                            request,
                            base.clone(),
                            in_form,
                            log.clone(),
                            responses.clone(),
                        )
                    });
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = match tls {
                        Some(tls) => {
                            let stream = TokioIo::new(tls.accept(stream).await.unwrap());
                            builder.serve_connection(stream, service).await
                        }
                        None => {
                            builder
                                .serve_connection(TokioIo::new(stream), service)
                                .await
                        }
                    };
                });
            }
        });
        Self {
            url,
            forms,
            _tasks: tasks,
        }
    }

    fn settings(&self, more: &[(&str, &str)]) -> HashMap<String, String> {
        let all = [
            ("idp-issuer-url", self.url.as_str()),
            ("client-id", "kube ctl"),
            ("client-secret", "s&cret"),
        ];
        let all = all.iter().chain(more);
        all.map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }
}

async fn answer(
    request: Request<Incoming>,
    base: String,
    in_form: bool,
    log: Arc<SyncMutex<Vec<String>>>,
    responses: Vec<Value>,
) -> Result<http::Response<Body>, std::convert::Infallible> {
    let respond = |code: u16, body: Value| {
        let body = Body::from(body.to_string().into_bytes());
        Ok(http::Response::builder().status(code).body(body).unwrap())
    };
    if request.uri().path() == "/.well-known/openid-configuration" {
        let metadata = json!({"token_endpoint": format!("{base}/token")});
        return respond(200, metadata);
    }
    let basic = request.headers().get(header::AUTHORIZATION).cloned();
    let form = request.into_body().collect().await.unwrap().to_bytes();
    let form = String::from_utf8(form.to_vec()).unwrap();
    let is_client = match in_form {
        true => basic.is_none() && form.ends_with("&client_id=kube%20ctl&client_secret=s%26cret"),
        false => basic
            .is_some_and(|it| it == format!("Basic {}", STANDARD.encode("kube%20ctl:s%26cret"))),
    };
    if !is_client {
        return respond(401, json!({"error": "invalid_client"}));
    }
    let mut log = log.lock();
    log.push(form);
    match responses.get(log.len() - 1) {
        Some(response) => respond(200, response.clone()),
        None => {
            let error = "invalid_grant";
            let body = json!({"error": error, "error_description": "the session has ended"});
            respond(400, body)
        }
    }
}

async fn header(oidc: &Oidc) -> Result<String, String> {
    let header = oidc.header().await.map_err(|error| error.to_string())?;
    Ok(header.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_expired_token_is_refreshed_with_the_last_refresh_token() {
    let (short, long) = (token("short", 5), token("long", 3600));
    for in_form in [false, true] {
        let responses = vec![
            json!({"id_token": short, "refresh_token": "two"}),
            json!({"id_token": long}),
        ];
        let issuer = Issuer::start(None, in_form, responses).await;
        let old = token("old", 5);
        let settings = issuer.settings(&[("id-token", &old), ("refresh-token", "o=ne")]);
        let oidc = Oidc::new(&settings).unwrap();
        // The first new token expires too soon.
        assert_eq!(header(&oidc).await.unwrap(), format!("Bearer {short}"));
        for _ in 0..2 {
            assert_eq!(header(&oidc).await.unwrap(), format!("Bearer {long}"));
        }
        let forms = issuer.forms.lock().clone();
        assert_eq!(forms.len(), 2);
        let start = "grant_type=refresh_token&refresh_token=";
        assert!(forms[0].starts_with(&format!("{start}o%3Dne")), "{forms:?}");
        assert!(forms[1].starts_with(&format!("{start}two")), "{forms:?}");
    }
}

#[tokio::test]
async fn a_valid_token_is_used_without_the_issuer() {
    let valid = token("valid", 60);
    let settings = [
        ("idp-issuer-url", "http://127.0.0.1:1"),
        ("client-id", "me"),
        ("id-token", &valid),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let oidc = Oidc::new(&settings.into()).unwrap();
    assert_eq!(header(&oidc).await.unwrap(), format!("Bearer {valid}"));
}

#[tokio::test]
async fn the_issuer_is_verified_with_its_certificate_authority() {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = signed.signing_key.serialize_der().try_into().unwrap();
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    let new = token("new", 60);
    let responses = vec![json!({"id_token": new})];
    let issuer = Issuer::start(Some(Arc::new(tls).into()), false, responses).await;
    let authority = STANDARD.encode(signed.cert.pem());
    let settings = issuer.settings(&[
        ("refresh-token", "one"),
        ("idp-certificate-authority-data", &authority),
    ]);
    let oidc = Oidc::new(&settings).unwrap();
    assert_eq!(header(&oidc).await.unwrap(), format!("Bearer {new}"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(file.path(), other.cert.pem()).unwrap();
    let path = file.path().to_str().unwrap();
    let settings = [
        ("refresh-token", "one"),
        ("idp-certificate-authority", path),
    ];
    let oidc = Oidc::new(&issuer.settings(&settings)).unwrap();
    let error = header(&oidc).await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let no_token = json!({"access_token": "x"});
    let issuer = Issuer::start(None, false, vec![no_token]).await;
    let oidc = Oidc::new(&issuer.settings(&[("refresh-token", "one")])).unwrap();
    let start = format!(
        "cannot use OpenID Connect: the issuer {} refreshes no token: ",
        issuer.url
    );
    for reason in [
        "its response has no id_token; was the scope openid requested?",
        "the session has ended",
    ] {
        assert_eq!(header(&oidc).await.unwrap_err(), format!("{start}{reason}"));
    }
    let old = token("old", -5);
    let oidc = Oidc::new(&issuer.settings(&[("id-token", &old)])).unwrap();
    let error = header(&oidc).await.unwrap_err();
    assert!(
        error.ends_with("there is no refresh token: log in again"),
        "{error}"
    );
    let oidc = Oidc::new(&issuer.settings(&[("id-token", "x")])).unwrap();
    let error = header(&oidc).await.unwrap_err();
    assert!(error.ends_with("the ID token is not a JWT"), "{error}");
    let error = Oidc::new(&HashMap::new()).err().unwrap().to_string();
    assert!(error.ends_with("does not set idp-issuer-url"), "{error}");
}
