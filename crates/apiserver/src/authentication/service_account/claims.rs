//! The claims of a ServiceAccount token, and the check that they still hold.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::authentication::{AuthenticationError, Identity, TokenContext};
use crate::object;
use crate::store::Key;

/// Time by which the clocks of two machines may differ, as in Kubernetes.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Keys of the extra values of a ServiceAccount.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// Key of the extra value with the node of the ServiceAccount's pod.
pub(crate) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The claims of a token, with the names of the fields in the token.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Claims {
    /// Audiences: the servers for which the token is valid.
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) aud: Vec<String>,
    /// Expiry, in seconds since 1970.
    #[serde(
        default,
        deserialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) exp: Option<i64>,
    /// Time at which the token was issued, in seconds since 1970.
    #[serde(
        default,
        deserialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) iat: Option<i64>,
    /// Issuer.
    #[serde(default)]
    pub(crate) iss: String,
    /// Identifier of the token.
    #[serde(default)]
    pub(crate) jti: String,
    #[serde(default, rename = "kubernetes.io")]
    pub(crate) kubernetes: KubernetesClaims,
    /// Time from which the token is valid, in seconds since 1970.
    #[serde(
        default,
        deserialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) nbf: Option<i64>,
    /// Subject: the user name of the ServiceAccount.
    #[serde(default)]
    pub(crate) sub: String,
}

/// The claims about objects.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct KubernetesClaims {
    #[serde(default)]
    pub(crate) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    #[serde(default)]
    pub(crate) serviceaccount: Reference,
    /// Time from which the use of the token is reported, in seconds since 1970.
    #[serde(
        default,
        deserialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) warnafter: Option<i64>,
}

/// A reference to an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Reference {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) uid: String,
}

impl Reference {
    pub(crate) fn to(object: &Value) -> Self {
        Self {
            name: object::name(object).to_owned(),
            uid: object::uid(object).to_owned(),
        }
    }
}

fn one_or_many<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audiences {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audiences::deserialize(input)? {
        Audiences::One(one) => vec![one],
        Audiences::Many(many) => many,
    })
}

/// Reads a number of seconds, which can have a fraction.
fn seconds<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i64>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(input)?;
    Ok(number.and_then(|number| {
        let whole = number.as_i64();
        whole.or_else(|| number.as_f64().map(|number| number as i64))
    }))
}

impl Claims {
    /// Checks that the token is valid at this time, and that the objects to which the token is
    /// bound exist. Returns the ServiceAccount as a user.
    pub(super) fn check(
        &self,
        context: &TokenContext<'_>,
    ) -> Result<Identity, AuthenticationError> {
        self.check_times(context.now)?;
        let claims = &self.kubernetes;
        let account = &claims.serviceaccount;
        let namespace = claims.namespace.as_str();
        let bound = BoundObjects {
            context,
            deleted_before: context.now.saturating_sub(LEEWAY).unwrap_or(context.now),
        };
        let key = Key::new(namespace, account.name.as_str());
        let found = context.store.get("serviceaccounts", &key);
        let found =
            found.ok_or_else(|| fail(format!("serviceaccounts {:?} not found", account.name)))?;
        let uid = object::uid(&found);
        if uid != account.uid {
            let claim = &account.uid;
            return Err(fail(format!(
                "service account UID ({uid}) does not match claim ({claim})"
            )));
        }
        if bound.is_deleted(&found) {
            let name = &account.name;
            return Err(fail(format!(
                "service account {namespace}/{name} has been deleted"
            )));
        }
        if let Some(secret) = &claims.secret {
            bound.check("secrets", "secret", namespace, secret)?;
        }
        if let Some(pod) = &claims.pod {
            bound.check("pods", "pod", namespace, pod)?;
        } else if let Some(node) = &claims.node {
            bound.check("nodes", "node", "", node)?;
        }
        Ok(self.identity())
    }

    fn check_times(&self, now: Timestamp) -> Result<(), AuthenticationError> {
        let second = |time: Option<i64>| time.and_then(|time| Timestamp::from_second(time).ok());
        let early = now.saturating_sub(LEEWAY).unwrap_or(now);
        let late = now.saturating_add(LEEWAY).unwrap_or(now);
        let refuse = |what: &str| Err(fail(format!("service account token {what}")));
        if second(self.nbf).is_some_and(|start| late < start) {
            return refuse("is not valid yet");
        }
        if second(self.exp).is_some_and(|end| early > end) {
            return refuse("has expired");
        }
        if second(self.iat).is_some_and(|issued| late < issued) {
            return refuse("is issued in the future");
        }
        Ok(())
    }

    fn identity(&self) -> Identity {
        let claims = &self.kubernetes;
        let mut identity =
            Identity::service_account(&claims.namespace, &claims.serviceaccount.name);
        identity.uid.clone_from(&claims.serviceaccount.uid);
        let mut extra = BTreeMap::new();
        let mut add = |key: &str, value: &str| {
            if !value.is_empty() {
                extra.insert(key.to_owned(), vec![value.to_owned()]);
            }
        };
        if let Some(pod) = &claims.pod {
            add(POD_NAME, &pod.name);
            add(POD_UID, &pod.uid);
        }
        if let Some(node) = &claims.node {
            add(NODE_NAME, &node.name);
            add(NODE_UID, &node.uid);
        }
        if !self.jti.is_empty() {
            add(CREDENTIAL_ID, &format!("JTI={}", self.jti));
        }
        identity.extra = extra;
        identity
    }
}

/// The check of the objects to which a token is bound.
struct BoundObjects<'a> {
    context: &'a TokenContext<'a>,
    /// An object that is being deleted since before this time counts as deleted.
    deleted_before: Timestamp,
}

impl BoundObjects<'_> {
    fn is_deleted(&self, object: &Value) -> bool {
        let deleted = object::meta(object, "deletionTimestamp");
        let deleted: Option<Timestamp> = deleted.parse().ok();
        deleted.is_some_and(|deleted| deleted < self.deleted_before)
    }

    fn check(
        &self,
        resource: &str,
        noun: &str,
        namespace: &str,
        reference: &Reference,
    ) -> Result<(), AuthenticationError> {
        let key = Key::new(namespace, reference.name.as_str());
        let found = self.context.store.get(resource, &key);
        let found =
            found.filter(|object| object::uid(object) != reference.uid || !self.is_deleted(object));
        let invalidated = "service account token has been invalidated";
        let found = found.ok_or_else(|| fail(invalidated.to_owned()))?;
        let uid = object::uid(&found);
        if uid == reference.uid {
            return Ok(());
        }
        let claim = &reference.uid;
        Err(fail(format!(
            "{noun} UID ({uid}) does not match service account {noun} ref claim ({claim})"
        )))
    }
}

fn fail(why: String) -> AuthenticationError {
    AuthenticationError(why)
}
