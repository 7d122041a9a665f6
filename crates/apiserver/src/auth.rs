//! Who calls. Everybody who is somebody may do everything: authorization is not modelled yet.

use std::sync::Arc;

use tokio::sync::Notify;

/// A caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
}

impl Identity {
    /// The administrator: the in-process caller, and whoever has the admin certificate or token.
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

/// How the callers of one connection show who they are.
#[derive(Clone, Debug)]
pub(crate) enum Authenticator {
    /// They are already known: in-process, or by a client certificate.
    Known(Arc<Identity>),
    /// By a bearer token in each request.
    Token {
        token: Arc<str>,
        /// Notified by every request with the token.
        admitted: Arc<Notify>,
    },
}

impl Authenticator {
    /// The caller that an `Authorization` header shows, if any.
    pub(crate) fn identify(&self, authorization: &str) -> Option<Arc<Identity>> {
        match self {
            Self::Known(identity) => Some(identity.clone()),
            Self::Token { token, admitted } => {
                let given = authorization.strip_prefix("Bearer ")?;
                if !same(given.as_bytes(), token.as_bytes()) {
                    return None;
                }
                admitted.notify_one();
                Some(Arc::new(Identity::admin()))
            }
        }
    }
}

/// Compares in a time that does not tell where the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
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
    fn only_the_token_opens() {
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
