//! A second API server, which asks the authentication and authorization webhooks of an operator.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::{HeaderValue, Request, header};
use kube::client::Body;
use opkit_apiserver::{
    AuthenticationWebhook, AuthorizationMode, AuthorizationWebhook, Options, Server,
};
use opkit_client::ClientOptions;
use opkit_controller::Result;
use opkit_operator::Operator;
use serde_json::json;
use tower::Service;

use super::{ControlPlane, webhooks};
use crate::backend::Backend;
use crate::binaries::{AuthWebhooks, Binaries};
use crate::error::TestError;

/// API server that asks the authentication and authorization webhooks of an operator; see
/// [`ControlPlane::start_auth_server`].
pub struct AuthServer {
    server: Second,
}

enum Second {
    Embedded(Server),
    Binaries(Box<Binaries>),
}

impl fmt::Debug for AuthServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthServer").finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Runs an operator on this control plane, and starts a second API server that asks the
    /// operator's authentication and authorization webhooks over HTTPS: about each bearer token
    /// that it does not know, and about each request that RBAC does not allow. Call
    /// [`AuthServer::shutdown`] before the test ends.
    ///
    /// # Errors
    /// If the operator or the server does not start; [`TestError::Skipped`] on a cluster, which a
    /// test cannot configure.
    pub async fn start_auth_server(&self, operator: Operator) -> Result<AuthServer> {
        if matches!(self.inner.backend, Backend::Cluster) {
            let reason = "a test cannot configure the API server of a cluster".to_owned();
            return Err(TestError::Skipped { reason }.into());
        }
        self.install(&operator).await?;
        let (authority, certificate) =
            webhooks::certificate().map_err(|cause| TestError::Client { cause })?;
        let mut options = self.run_options();
        options.webhook_bind_address = Some((Ipv4Addr::LOCALHOST, 0).into());
        options.webhook_certificates = Some(certificate);
        options.webhook_shutdown_delay = Duration::ZERO;
        let (mut is_ready, addresses) = (options.ready.subscribe(), options.servers.subscribe());
        self.run(operator, options).await?;
        // An error means that the operator has stopped, and its failure is recorded.
        let _ = is_ready.wait_for(|ready| *ready).await;
        self.check_operators()?;
        let address = addresses.borrow().webhook;
        let address = address.ok_or_else(|| TestError::Client {
            cause: "the operator has no webhook".to_owned(),
        })?;
        let webhooks = AuthWebhooks {
            authentication: config(address, "/authenticate", &authority),
            authorization: config(address, "/authorize", &authority),
        };
        let server = match &self.inner.backend {
            Backend::Binaries(plane) => {
                let second = plane.second(&webhooks).await;
                let second = second.map_err(|error| TestError::Binaries(error.into()))?;
                Second::Binaries(Box::new(second))
            }
            _ => Second::Embedded(embedded(webhooks)?),
        };
        Ok(AuthServer { server })
    }
}

impl AuthServer {
    /// Returns a client that sends a bearer token.
    ///
    /// # Errors
    /// If the client cannot be created.
    pub async fn client(&self, token: &str) -> Result<kube::Client, TestError> {
        match &self.server {
            Second::Embedded(server) => {
                let value = HeaderValue::from_str(&format!("Bearer {token}"));
                let value = value.map_err(|error| TestError::Client {
                    cause: error.to_string(),
                })?;
                let service = server.remote_service();
                let with_token = tower::service_fn(move |mut request: Request<Body>| {
                    let headers = request.headers_mut();
                    headers.insert(header::AUTHORIZATION, value.clone());
                    service.clone().call(request)
                });
                Ok(ClientOptions::default().in_process(with_token, "default"))
            }
            Second::Binaries(plane) => {
                let client = plane.client_with_token("default", token).await;
                client.map_err(|cause| TestError::Client { cause })
            }
        }
    }

    /// Stops the server.
    pub async fn shutdown(self) {
        match self.server {
            Second::Embedded(server) => server.shutdown().await,
            Second::Binaries(plane) => plane.end(false).await,
        }
    }
}

fn embedded(webhooks: AuthWebhooks) -> Result<Server, TestError> {
    let mut options = Options::default();
    let authentication = AuthenticationWebhook::new(webhooks.authentication);
    options.authentication.webhook = Some(authentication);
    let authorization = AuthorizationWebhook::new(webhooks.authorization);
    options
        .authorization
        .push(AuthorizationMode::Webhook(authorization));
    Server::start(options).map_err(TestError::Start)
}

/// Returns the configuration of a webhook, in the format of a kubeconfig. JSON is valid YAML.
fn config(address: SocketAddr, path: &str, authority: &str) -> String {
    let authority = k8s_openapi::ByteString(authority.as_bytes().to_owned());
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "webhook",
        "clusters": [{"name": "webhook", "cluster": {
            "server": format!("https://{address}{path}"),
            "certificate-authority-data": authority,
        }}],
        "users": [{"name": "apiserver", "user": {}}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "apiserver"}}],
    })
    .to_string()
}
