//! Authentication. Authorization is not modelled yet: every authenticated user may do everything.

use std::sync::Arc;

use tokio::sync::Notify;

/// An authenticated user.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
}

impl Identity {
    /// Returns the administrator. Callers in this process act as the administrator, and so do
    /// clients with the certificate or the token of the kubeconfig.
    pub(crate) fn admin() -> Self {
        Self {
            user: "kubernetes-admin".to_owned(),
            groups: vec![
                "system:masters".to_owned(),
                "system:authenticated".to_owned(),
            ],
        }
    }
}

/// The way in which the requests of one connection are authenticated.
#[derive(Clone, Debug)]
pub(crate) enum Authenticator {
    /// The user is known from the connection, which is in-process or has a client certificate.
    Known(Arc<Identity>),
    /// Each request needs a bearer token.
    Token {
        token: Arc<str>,
        /// Notified by every request with a valid token.
        admitted: Arc<Notify>,
    },
}

impl Authenticator {
    /// Returns the user of a request with this `Authorization` header, or `None` if the header is
    /// required and not valid.
    pub(crate) fn identify(&self, authorization: &str) -> Option<Arc<Identity>> {
        match self {
            Self::Known(identity) => Some(identity.clone()),
            Self::Token { token, admitted } => {
                let given = authorization.strip_prefix("Bearer ")?;
                if !is_equal(given.as_bytes(), token.as_bytes()) {
                    return None;
                }
                admitted.notify_one();
                Some(Arc::new(Identity::admin()))
            }
        }
    }
}

/// Reports whether `a` equals `b`. The comparison takes the same time wherever they differ, so that
/// a client cannot guess the token byte by byte.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_accepted() {
        let auth = Authenticator::Token {
            token: "secret".into(),
            admitted: Arc::default(),
        };
        assert!(auth.identify("Bearer secret").is_some());
        for wrong in [
            "",
            "secret",
            "Bearer secre",
            "Bearer secrets",
            "Basic secret",
        ] {
            assert!(auth.identify(wrong).is_none(), "{wrong}");
        }
    }
}
