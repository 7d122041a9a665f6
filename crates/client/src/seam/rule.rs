//! Rules for the injection of faults.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;

use crate::RequestInfo;

/// The effect of a [`Rule`] on a matching request.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use opkit_client::{Effect, Rule, Seam};
/// let seam = Seam::new();
/// // Every write is delayed by one second, and the response to the second write is lost.
/// let is_write = |info: &opkit_client::RequestInfo, _: &[u8]| info.is_write();
/// seam.add(Rule::new(Effect::Delay(Duration::from_secs(1))).matching(is_write));
/// seam.add(Rule::new(Effect::DropResponse).matching(is_write).nth(2));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Effect {
    /// Delays the request.
    Delay(Duration),
    /// Responds with this status without sending the request. A `retryAfterSeconds` in the status
    /// also sets the `Retry-After` header.
    Fail(Box<Status>),
    /// Fails as if the connection was refused, without sending the request.
    Refuse,
    /// Sends the request, and fails as if the connection broke before the response.
    DropResponse,
    /// Sends the request, and fails as if the connection broke after this number of bytes of the
    /// response's body.
    CutResponse(u64),
}

type Predicate = Arc<dyn Fn(&RequestInfo, &[u8]) -> bool + Send + Sync>;

/// An effect, and the conditions that a request must meet for the effect to apply. A new rule
/// matches every request; each method adds a condition.
///
/// # Examples
/// ```
/// use opkit_client::{Effect, Rule};
/// let rule = Rule::new(Effect::Refuse)
///     .verb("patch")
///     .resource("deployments.apps")
///     .subresource("status")
///     .namespace("shops")
///     .name("web")
///     .nth(3);
/// ```
#[derive(Clone)]
pub struct Rule {
    effect: Effect,
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    predicate: Option<Predicate>,
    /// Position of the first affected request among the matching requests; 1 is the first.
    first: u64,
    /// Number of matching requests that are affected, starting with `first`.
    times: u64,
    /// Number of matching requests so far.
    matched: u64,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("effect", &self.effect)
            .field("verb", &self.verb)
            .field("resource", &self.resource)
            .field("matched", &self.matched)
            .finish_non_exhaustive()
    }
}

impl Rule {
    /// Creates a rule that applies `effect` to every request.
    pub fn new(effect: Effect) -> Self {
        Self {
            effect,
            verb: None,
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            predicate: None,
            first: 1,
            times: u64::MAX,
            matched: 0,
        }
    }

    /// Restricts the rule to an RBAC verb, such as `get` or `deletecollection`.
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Restricts the rule to a resource, such as `deployments.apps`, or `pods` in the core group.
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Restricts the rule to a subresource.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Restricts the rule to a namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Restricts the rule to objects with this name. Does not match creates, because the path of a
    /// create contains no name.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Restricts the rule to requests for which `predicate` returns `true`, given the request and
    /// its body.
    pub fn matching(
        mut self,
        predicate: impl Fn(&RequestInfo, &[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.predicate = Some(Arc::new(predicate));
        self
    }

    /// Restricts the rule to the `n`-th matching request, counted from 1.
    pub fn nth(mut self, n: u64) -> Self {
        self.first = n;
        self.times = 1;
        self
    }

    /// Restricts the rule to the first `n` matching requests.
    pub fn times(mut self, n: u64) -> Self {
        self.times = n;
        self
    }

    /// Counts the request if it matches. Returns whether the effect applies to the request.
    fn count_request(&mut self, info: &RequestInfo, body: &[u8]) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let resource = match info.group.as_str() {
            "" => info.plural.clone(),
            group => format!("{}.{group}", info.plural),
        };
        let matches = is(&self.verb, Some(&info.verb))
            && is(&self.resource, Some(&resource))
            && is(&self.subresource, info.subresource.as_deref())
            && is(&self.namespace, info.namespace.as_deref())
            && is(&self.name, info.name.as_deref())
            && self.predicate.as_ref().is_none_or(|it| it(info, body));
        if !matches {
            return false;
        }
        self.matched = self.matched.saturating_add(1);
        self.matched >= self.first && self.matched.saturating_sub(self.first) < self.times
    }
}

/// The combined effects of all rules on one request.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) delay: Duration,
    pub(super) other: Option<Effect>,
}

pub(super) fn decide(rules: &mut [Rule], info: &RequestInfo, body: &[u8]) -> Effects {
    let mut effects = Effects::default();
    for rule in rules {
        if !rule.count_request(info, body) {
            continue;
        }
        match &rule.effect {
            Effect::Delay(delay) => effects.delay = effects.delay.saturating_add(*delay),
            other if effects.other.is_none() => effects.other = Some(other.clone()),
            _ => {}
        }
    }
    effects
}

#[cfg(test)]
mod tests;
