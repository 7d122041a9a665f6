//! Impersonation: a request with the headers `Impersonate-*` is executed as another user, if its
//! own user may impersonate the other user.
//!
//! Kubernetes 1.36 has several modes of impersonation. The constrained modes need two permissions:
//! to impersonate the user (verb `impersonate:<mode>`), and to execute the request as the user
//! (verb `impersonate-on:<mode>:<verb>`). The old mode needs only the verb `impersonate`. The modes
//! are tried in order; the error of the first mode is returned if all fail.

mod headers;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use opkit_apimachinery::names;
use parking_lot::Mutex;

use crate::authentication::{
    ANONYMOUS, AUTHENTICATED, Identity, NODE_NAME, SYSTEM_MASTERS, UNAUTHENTICATED,
    service_account_groups, split_service_account,
};
use crate::authorization::{Attributes, Authorizer};
use crate::status::{ApiError, ApiResult};
use crate::store::Store;

const GROUP: &str = "authentication.k8s.io";
/// Number of groups or extra values from which a constrained mode first checks for a permission to
/// impersonate all of them.
const MANY: usize = 4;
/// Maximum number of users whose last mode is remembered.
const REMEMBERED: usize = 10_000;

/// A mode of impersonation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    /// A ServiceAccount impersonates the node of its pod.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// The mode that Kubernetes has always had.
    Legacy,
}

/// The modes, in the order in which they are tried.
const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn is_constrained(self) -> bool {
        self != Self::Legacy
    }

    /// Returns the verb that the requestor needs.
    fn verb(self) -> Cow<'static, str> {
        match self {
            Self::Legacy => "impersonate".into(),
            mode => format!("impersonate:{}", mode.name()).into(),
        }
    }

    /// Returns the verb of a constrained mode, which audit events have.
    fn constraint(self) -> Option<String> {
        self.is_constrained().then(|| self.verb().into_owned())
    }

    /// Reports whether the mode can be used to impersonate the user.
    fn applies(self, wanted: &Identity, requestor: &Identity) -> bool {
        let has_only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_of(&wanted.user);
        let is_account = split_service_account(&wanted.user).is_some();
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME).map(Vec::as_slice);
                has_only_name
                    && split_service_account(&requestor.user).is_some()
                    && node.is_some_and(|node| matches!(own, Some([own]) if own == node))
            }
            Self::ArbitraryNode => has_only_name && node.is_some(),
            Self::ServiceAccount => has_only_name && is_account,
            Self::UserInfo => node.is_none() && !is_account,
            Self::Legacy => true,
        }
    }
}

/// The impersonation of a server.
#[derive(Debug, Default)]
pub(crate) struct Impersonation {
    /// The mode that a user has used last. As in Kubernetes, this mode is tried first.
    last: Mutex<HashMap<String, Mode>>,
}

impl Impersonation {
    /// Returns the user whom the headers of a request name, or `None` if there are no such headers.
    /// If the mode of the impersonation is a constrained one, its verb is returned, too.
    pub(crate) async fn impersonate(
        &self,
        authorizer: &Authorizer,
        store: &Store,
        headers: &HeaderMap,
        requestor: &Identity,
        attributes: &Attributes<'_>,
    ) -> ApiResult<Option<(Arc<Identity>, Option<String>)>> {
        let Some(wanted) = headers::wanted_user(headers)? else {
            return Ok(None);
        };
        let check = Check {
            authorizer,
            store,
            requestor,
        };
        let last = self.last.lock().get(&requestor.user).copied();
        let others = MODES.into_iter().filter(|mode| Some(*mode) != last);
        let mut first_error = None;
        for mode in last.into_iter().chain(others) {
            if !mode.applies(&wanted, requestor) {
                continue;
            }
            match check.all(mode, &wanted, attributes).await {
                Ok(identity) => {
                    self.remember(&requestor.user, mode);
                    return Ok(Some((Arc::new(identity), mode.constraint())));
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        let error = first_error.map(|error| *error);
        Err(error.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
    }

    fn remember(&self, user: &str, mode: Mode) {
        let mut last = self.last.lock();
        if last.get(user) == Some(&mode) {
            return;
        }
        if last.len() >= REMEMBERED {
            last.clear();
        }
        last.insert(user.to_owned(), mode);
    }
}

/// The authorization checks for one request.
struct Check<'a> {
    authorizer: &'a Authorizer,
    store: &'a Store,
    requestor: &'a Identity,
}

/// An error behind a pointer: it is often dropped, because another mode succeeds.
type Checked<T> = Result<T, Box<ApiError>>;

impl Check<'_> {
    /// Checks that the requestor may impersonate the wanted user in this mode, and returns the user
    /// with the groups that the user gets.
    async fn all(
        &self,
        mode: Mode,
        wanted: &Identity,
        attributes: &Attributes<'_>,
    ) -> Checked<Identity> {
        if mode.is_constrained() {
            let mut on = attributes.clone();
            on.verb = format!("impersonate-on:{}:{}", mode.name(), attributes.verb).into();
            self.allowed(&on).await?;
        }
        let mut actual = wanted.clone();
        self.user_name(mode, wanted, &mut actual).await?;
        if !wanted.uid.is_empty() {
            let uids = Attributes::of_resource("", GROUP, "uids").named(&wanted.uid);
            self.with_verb(mode, uids).await?;
        }
        self.groups(mode, &wanted.groups).await?;
        self.extra(mode, wanted).await?;
        add_group(&mut actual);
        Ok(actual)
    }

    async fn user_name(&self, mode: Mode, wanted: &Identity, actual: &mut Identity) -> Checked<()> {
        let group = if mode.is_constrained() { GROUP } else { "" };
        let mut attributes = Attributes::of_resource("", group, "users").named(&wanted.user);
        if let Some(node) = node_of(&wanted.user)
            && mode.is_constrained()
        {
            attributes.resource = "nodes".into();
            // The permission to impersonate the own node does not name a node.
            attributes.name = if mode == Mode::AssociatedNode {
                "*"
            } else {
                node
            }
            .into();
            actual.groups = vec!["system:nodes".to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(&wanted.user) {
            attributes.resource = "serviceaccounts".into();
            attributes.namespace = namespace.into();
            attributes.name = name.into();
            if wanted.groups.is_empty() {
                actual.groups = service_account_groups(namespace);
            }
        }
        self.with_verb(mode, attributes).await
    }

    async fn groups(&self, mode: Mode, groups: &[String]) -> Checked<()> {
        let group = if mode.is_constrained() { GROUP } else { "" };
        let attributes = Attributes::of_resource("", group, "groups");
        if mode.is_constrained() {
            let refuse = |name: &str, why: &str| {
                let mut attributes = attributes.clone();
                attributes.verb = mode.verb();
                attributes.name = name.to_owned().into();
                Err(Box::new(self.denied(&attributes, why)))
            };
            if groups.iter().any(String::is_empty) {
                return refuse("", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == SYSTEM_MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return refuse(SYSTEM_MASTERS, why);
            }
            if groups.len() >= MANY {
                let all = attributes.clone().named("*");
                if self.with_verb(mode, all).await.is_ok() {
                    return Ok(());
                }
            }
        }
        for name in groups {
            self.with_verb(mode, attributes.clone().named(name)).await?;
        }
        Ok(())
    }

    async fn extra(&self, mode: Mode, wanted: &Identity) -> Checked<()> {
        let attributes = Attributes::of_resource("", GROUP, "userextras");
        if mode.is_constrained() {
            if let Some(flaw) = headers::extra_flaw(&wanted.extra) {
                let mut attributes = attributes;
                attributes.verb = mode.verb();
                return Err(Box::new(self.denied(&attributes, &flaw)));
            }
            let values: usize = wanted.extra.values().map(Vec::len).sum();
            if values.max(wanted.extra.len()) >= MANY {
                let mut all = attributes.clone().named("*");
                all.subresource = "*".into();
                if self.with_verb(mode, all).await.is_ok() {
                    return Ok(());
                }
            }
        }
        for (key, values) in &wanted.extra {
            for value in values {
                let mut attributes = attributes.clone().named(value);
                attributes.subresource = key.into();
                self.with_verb(mode, attributes).await?;
            }
        }
        Ok(())
    }

    async fn with_verb(&self, mode: Mode, mut attributes: Attributes<'_>) -> Checked<()> {
        attributes.verb = mode.verb();
        self.allowed(&attributes).await
    }

    async fn allowed(&self, attributes: &Attributes<'_>) -> Checked<()> {
        let authorizer = self.authorizer;
        let decision = authorizer
            .authorize(self.store, self.requestor, attributes)
            .await;
        if decision.is_allowed() {
            return Ok(());
        }
        let why = match (decision.error, decision.reason) {
            (None, reason) => reason,
            (Some(error), reason) if reason.is_empty() => error,
            (Some(error), reason) => format!("{error}: {reason}"),
        };
        Err(Box::new(self.denied(attributes, &why)))
    }

    fn denied(&self, attributes: &Attributes<'_>, why: &str) -> ApiError {
        ApiError::denied(&self.requestor.user, attributes, why)
    }
}

/// Adds the group that every authenticated or anonymous user has.
fn add_group(identity: &mut Identity) {
    let group = match identity.user.as_str() {
        ANONYMOUS => UNAUTHENTICATED,
        _ if identity.is_member(UNAUTHENTICATED) => return,
        _ => AUTHENTICATED,
    };
    if !identity.is_member(group) {
        identity.groups.push(group.to_owned());
    }
}

/// Returns the name of the node with this user name, or `None` if the user is not a node.
fn node_of(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    names::check_dns_subdomain(name).is_ok().then_some(name)
}
