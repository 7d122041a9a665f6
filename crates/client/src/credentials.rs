//! The credentials of a client: the `Authorization` header of each request, and the client
//! certificate of each connection. Both follow client-go (`client-go/transport` and
//! `plugin/pkg/client/auth`): files that rotate are read again, and plugins run again when their
//! credentials expire or the server refuses them.
//!
//! The first of these that the user has is used: token file, token, password, credential plugin,
//! auth provider. A plugin is not asked if there is a client certificate.

mod exec;
mod identity;
#[cfg(feature = "oidc")]
mod oidc;
mod token_file;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, StatusCode};
use kube::client::Body;
use kube::config::AuthInfo;
use secrecy::{ExposeSecret, SecretString};
use tower::ServiceExt;

use self::exec::Plugin;
pub(crate) use self::identity::Identity;
use self::token_file::TokenFile;
use crate::transport::{Middleware, Next, Outcome};

/// The reason why there are no credentials for a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error("cannot read the {item} {}", path.display())]
    Read {
        /// The content of the file, such as `token`.
        item: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        cause: std::io::Error,
    },
    /// A text is not what it must be, for example not PEM.
    #[error("the {item} is not valid: {reason}")]
    Invalid {
        /// The text, such as `token`.
        item: &'static str,
        /// Why it is not valid.
        reason: String,
    },
    /// The credential plugin in the kubeconfig is not configured correctly.
    #[error("cannot use the credential plugin {command}: {reason}")]
    PluginConfig {
        /// Command of the plugin.
        command: String,
        /// What is wrong.
        reason: String,
    },
    /// The program of the credential plugin does not exist or cannot be started.
    #[error("cannot start the credential plugin {command}{}", hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
    PluginStart {
        /// Command of the plugin.
        command: String,
        /// The hint in the kubeconfig how to install the plugin.
        hint: Option<String>,
        /// The I/O error.
        #[source]
        cause: std::io::Error,
    },
    /// The credential plugin ran, and returned no credentials.
    #[error("the credential plugin {command} failed: {reason}")]
    Plugin {
        /// Command of the plugin.
        command: String,
        /// What is wrong, such as the exit status.
        reason: String,
    },
    /// There is no ID token of OpenID Connect.
    #[error("cannot use OpenID Connect: {reason}")]
    Oidc {
        /// What is wrong, such as the response of the issuer.
        reason: String,
    },
    /// The auth provider in the kubeconfig is not supported.
    #[error("the auth provider {name} is not supported: {instead}")]
    Provider {
        /// Name of the provider.
        name: String,
        /// What to do.
        instead: &'static str,
    },
}

/// The credentials of one client. Clones are the same credentials.
#[derive(Clone)]
pub(crate) struct Credentials {
    source: Source,
    identity: Arc<Identity>,
}

/// Where the `Authorization` header comes from.
#[derive(Clone)]
enum Source {
    /// There is no header.
    None,
    /// A token or password that does not change.
    Fixed(HeaderValue),
    TokenFile(Arc<TokenFile>),
    Plugin(Arc<Plugin>),
    #[cfg(feature = "oidc")]
    Oidc(Arc<oidc::Oidc>),
}

impl Credentials {
    /// Checks the credentials of a user, and reads their files. Runs no plugin.
    pub(crate) fn new(user: &AuthInfo) -> Result<Self, CredentialsError> {
        let identity = Identity::new(user)?;
        let token = secret(user.token.as_ref());
        let token_file = user.token_file.as_deref().filter(|path| !path.is_empty());
        let password = secret(user.password.as_ref());
        let source = if let Some(path) = token_file {
            Source::TokenFile(Arc::new(TokenFile::new(path.into(), token)?))
        } else if let Some(token) = token {
            Source::Fixed(bearer(token)?)
        } else if user.username.is_some() || password.is_some() {
            let name = user.username.as_deref().unwrap_or_default();
            Source::Fixed(basic(name, password.unwrap_or_default())?)
        } else if let Some(exec) = &user.exec {
            let plugin = Plugin::new(exec, identity.clone())?;
            match (&user.auth_provider, identity.is_present()) {
                (Some(_), _) => {
                    return Err(plugin.unusable("there is an auth-provider as well"));
                }
                // The certificate is meant, as for client-go.
                (None, true) => Source::None,
                (None, false) => Source::Plugin(Arc::new(plugin)),
            }
        } else {
            Source::of_provider(user)?
        };
        Ok(Self { source, identity })
    }

    /// Returns the client certificate.
    pub(crate) fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Returns whether requests need no `Authorization` header.
    pub(crate) fn is_without_header(&self) -> bool {
        matches!(self.source, Source::None)
    }

    /// Returns the header for a request that is sent now.
    async fn header(&self) -> Result<Option<HeaderValue>, CredentialsError> {
        match &self.source {
            Source::None => Ok(None),
            Source::Fixed(header) => Ok(Some(header.clone())),
            Source::TokenFile(file) => Ok(Some(file.header())),
            Source::Plugin(plugin) => plugin.header().await,
            #[cfg(feature = "oidc")]
            Source::Oidc(oidc) => oidc.header().await.map(Some),
        }
    }

    /// Prepares the next request after the server has refused `header`.
    async fn refused(&self, header: Option<&HeaderValue>) {
        match &self.source {
            Source::None | Source::Fixed(_) => {}
            Source::TokenFile(file) => file.refused(header),
            Source::Plugin(plugin) => plugin.refused(header).await,
            // As in client-go, only the expiry counts.
            #[cfg(feature = "oidc")]
            Source::Oidc(_) => {}
        }
    }
}

impl Source {
    /// Returns the source for an `auth-provider`. client-go has removed all providers but OIDC.
    fn of_provider(user: &AuthInfo) -> Result<Self, CredentialsError> {
        let Some(provider) = &user.auth_provider else {
            return Ok(Self::None);
        };
        let instead = match provider.name.as_str() {
            "gcp" => "use the credential plugin gke-gcloud-auth-plugin",
            "azure" => "use the credential plugin kubelogin",
            "oidc" => return Self::of_oidc(&provider.config),
            _ => "use a credential plugin",
        };
        Err(CredentialsError::Provider {
            name: provider.name.clone(),
            instead,
        })
    }
}

#[cfg(feature = "oidc")]
impl Source {
    fn of_oidc(settings: &HashMap<String, String>) -> Result<Self, CredentialsError> {
        Ok(Self::Oidc(Arc::new(oidc::Oidc::new(settings)?)))
    }
}

#[cfg(not(feature = "oidc"))]
impl Source {
    /// Uses the ID token in the kubeconfig. Refreshing it needs the feature `oidc`, which most
    /// operators do not pay for.
    fn of_oidc(settings: &HashMap<String, String>) -> Result<Self, CredentialsError> {
        match settings.get("id-token").filter(|token| !token.is_empty()) {
            Some(token) => Ok(Self::Fixed(bearer(token)?)),
            None => Err(CredentialsError::Oidc {
                reason: "there is no ID token, and this program is built without opkit's feature `oidc`, which requests one".to_owned(),
            }),
        }
    }
}

/// Adds the header to each request that does not have one. As in client-go, a response 401 is
/// returned, and the next request has new credentials.
impl Middleware for Credentials {
    fn handle(&self, next: impl Next, mut request: Request<Body>) -> BoxFuture<'static, Outcome> {
        if request.headers().contains_key(AUTHORIZATION) {
            return next.oneshot(request).boxed();
        }
        let credentials = self.clone();
        async move {
            let header = credentials.header().await?;
            if let Some(header) = &header {
                request.headers_mut().insert(AUTHORIZATION, header.clone());
            }
            let response = next.oneshot(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                credentials.refused(header.as_ref()).await;
            }
            Ok(response)
        }
        .boxed()
    }
}

fn secret(text: Option<&SecretString>) -> Option<&str> {
    text.map(ExposeSecret::expose_secret)
        .filter(|text| !text.is_empty())
}

fn bearer(token: &str) -> Result<HeaderValue, CredentialsError> {
    header("token", &format!("Bearer {token}"))
}

fn basic(user: &str, password: &str) -> Result<HeaderValue, CredentialsError> {
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    header("password", &format!("Basic {text}"))
}

fn header(item: &'static str, text: &str) -> Result<HeaderValue, CredentialsError> {
    let mut header = HeaderValue::from_str(text).map_err(|_| CredentialsError::Invalid {
        item,
        reason: "it has characters that a header may not have".to_owned(),
    })?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests;
