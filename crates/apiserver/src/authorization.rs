//! Authorization: decides whether a user may execute a request, as Kubernetes does.
//!
//! The authorizers of a server are asked in order. The first that allows or denies the request
//! decides. If none has an opinion, the request is denied. Members of the group `system:masters`
//! may do everything.

mod attributes;
mod rbac;
mod webhook;

use std::str::FromStr;
use std::sync::Arc;

use crate::authentication::{Identity, SYSTEM_MASTERS};
use crate::error::StartError;
use crate::store::Store;
use webhook::WebhookAuthorizer;

pub(crate) use attributes::Attributes;
pub(crate) use rbac::{Policy, Rule, describe_missing, rules_for, uncovered};
pub use webhook::AuthorizationWebhook;

/// The group of kubelets.
const NODES: &str = "system:nodes";

/// An authorizer of a server (`--authorization-mode`).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AuthorizationMode {
    /// Allows every request.
    AlwaysAllow,
    /// Denies every request.
    AlwaysDeny,
    /// Allows what Roles and ClusterRoles allow.
    Rbac,
    /// Allows the requests of kubelets in Kubernetes. This control plane has no kubelets, so this
    /// authorizer has no opinion.
    Node,
    /// Asks an HTTP server with a SubjectAccessReview.
    Webhook(AuthorizationWebhook),
}

impl FromStr for AuthorizationMode {
    type Err = String;

    /// Returns the authorizer with the name that Kubernetes gives it. `Webhook` is not among them,
    /// because it needs a configuration.
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "AlwaysAllow" => Ok(Self::AlwaysAllow),
            "AlwaysDeny" => Ok(Self::AlwaysDeny),
            "RBAC" => Ok(Self::Rbac),
            "Node" => Ok(Self::Node),
            name => Err(format!("there is no authorization mode {name:?}")),
        }
    }
}

/// The opinion of an authorizer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Allow,
    Deny,
    NoOpinion,
}

/// The opinion of an authorizer, with the reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
    /// The error because of which the authorizer could not decide.
    pub(crate) error: Option<String>,
}

impl Decision {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            reason: reason.into(),
            error: None,
        }
    }

    pub(crate) fn allow(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Allow, reason)
    }

    pub(crate) fn deny(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Deny, reason)
    }

    pub(crate) fn no_opinion(reason: impl Into<String>) -> Self {
        Self::new(Verdict::NoOpinion, reason)
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// The authorizers of a server.
#[derive(Debug)]
pub(crate) struct Authorizer {
    modes: Vec<Mode>,
    policy: rbac::PolicyCache,
}

/// An authorizer with its state.
#[derive(Debug)]
enum Mode {
    AlwaysAllow,
    AlwaysDeny,
    Rbac,
    Node,
    Webhook(Box<WebhookAuthorizer>),
}

impl Authorizer {
    pub(crate) fn new(modes: &[AuthorizationMode]) -> Result<Self, StartError> {
        let modes = modes.iter().map(|mode| {
            Ok(match mode {
                AuthorizationMode::AlwaysAllow => Mode::AlwaysAllow,
                AuthorizationMode::AlwaysDeny => Mode::AlwaysDeny,
                AuthorizationMode::Rbac => Mode::Rbac,
                AuthorizationMode::Node => Mode::Node,
                AuthorizationMode::Webhook(options) => {
                    Mode::Webhook(Box::new(WebhookAuthorizer::new(options)?))
                }
            })
        });
        Ok(Self {
            modes: modes.collect::<Result<_, StartError>>()?,
            policy: rbac::PolicyCache::default(),
        })
    }

    /// Returns the RBAC policy that the objects in the store form.
    pub(crate) fn policy(&self, store: &Store) -> Arc<Policy> {
        self.policy.get(store)
    }

    /// Decides whether a user may execute a request.
    pub(crate) async fn authorize(
        &self,
        store: &Store,
        user: &Identity,
        attributes: &Attributes<'_>,
    ) -> Decision {
        if user.is_member(SYSTEM_MASTERS) {
            return Decision::allow("");
        }
        let (mut reasons, mut errors) = (Vec::new(), Vec::new());
        for mode in &self.modes {
            let decision = match mode {
                Mode::AlwaysAllow => Decision::allow(""),
                Mode::AlwaysDeny => Decision::no_opinion("Everything is forbidden."),
                Mode::Rbac => rbac::authorize(&self.policy(store), user, attributes),
                Mode::Node => Decision::no_opinion(""),
                Mode::Webhook(webhook) => webhook.authorize(user, attributes).await,
            };
            match decision.verdict {
                Verdict::Allow | Verdict::Deny => return decision,
                Verdict::NoOpinion => {}
            }
            reasons.extend(Some(decision.reason).filter(|reason| !reason.is_empty()));
            errors.extend(decision.error);
        }
        let mut decision = Decision::no_opinion(reasons.join("\n"));
        decision.error = (!errors.is_empty()).then(|| errors.join(", "));
        decision
    }

    /// Returns the rules that apply to a user in a namespace, and an error message if some rules
    /// could not be found. The last value reports whether the list is incomplete, because an
    /// authorizer cannot list its rules.
    pub(crate) fn rules_for(
        &self,
        store: &Store,
        user: &Identity,
        namespace: &str,
    ) -> (Vec<Rule>, Vec<String>, bool) {
        let (mut rules, mut errors, mut incomplete) = (Vec::new(), Vec::new(), false);
        for mode in &self.modes {
            match mode {
                Mode::AlwaysAllow => rules.extend(Rule::of_full_authority()),
                Mode::Rbac => {
                    let (found, error) = rules_for(&self.policy(store), user, namespace);
                    rules.extend(found);
                    errors.extend(error);
                }
                // The rules of kubelets are not a list in Kubernetes either.
                Mode::Node if user.is_member(NODES) => {
                    let error = "node authorizer does not support user rule resolution";
                    errors.push(error.to_owned());
                    incomplete = true;
                }
                Mode::Webhook(_) => {
                    let error = "webhook authorizer does not support user rule resolution";
                    errors.push(error.to_owned());
                    incomplete = true;
                }
                Mode::AlwaysDeny | Mode::Node => {}
            }
        }
        (rules, errors, incomplete)
    }
}
