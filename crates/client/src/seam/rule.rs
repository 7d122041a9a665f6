//! Which requests are disturbed, and how.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;

use crate::RequestInfo;

/// What happens to a request that a [`Rule`] matches.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use opkit_client::{Effect, Rule, Seam};
/// let seam = Seam::new();
/// // Every write takes a second, and the answer to the second one is lost.
/// let is_write = |info: &opkit_client::RequestInfo, _: &[u8]| info.is_write();
/// seam.add(Rule::new(Effect::Delay(Duration::from_secs(1))).matching(is_write));
/// seam.add(Rule::new(Effect::DropAnswer).matching(is_write).nth(2));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Effect {
    /// It is sent later.
    Delay(Duration),
    /// It is not sent; this is the answer. A `retryAfterSeconds` becomes a header as well.
    Fail(Box<Status>),
    /// It is not sent; the connection is refused.
    Refuse,
    /// It is sent and acted on, but the connection breaks before the answer.
    DropAnswer,
    /// It is sent, and the connection breaks after so many bytes of the answer's body.
    CutAnswer(u64),
}

type Predicate = Arc<dyn Fn(&RequestInfo, &[u8]) -> bool + Send + Sync>;

/// An effect and the requests that have it. A new rule matches every request; each method narrows
/// it.
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
    subresource: Option<Option<String>>,
    namespace: Option<String>,
    name: Option<String>,
    predicate: Option<Predicate>,
    /// How many matching requests pass first, and how many are then disturbed.
    first: u64,
    times: u64,
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
    /// `effect` for every request.
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

    /// Only requests with this verb of RBAC, such as `get` or `deletecollection`.
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only requests for this resource, in the form `deployments.apps`; `pods` in the core group.
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only requests for this subresource.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(Some(subresource.to_owned()));
        self
    }

    /// Only requests for whole objects and collections.
    pub fn no_subresource(mut self) -> Self {
        self.subresource = Some(None);
        self
    }

    /// Only requests in this namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only requests for the object of this name. A create has no name.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only requests for which `predicate` holds, given the request and its body.
    pub fn matching(
        mut self,
        predicate: impl Fn(&RequestInfo, &[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.predicate = Some(Arc::new(predicate));
        self
    }

    /// Only the `n`-th request that matches, counted from 1.
    pub fn nth(mut self, n: u64) -> Self {
        self.first = n;
        self.times = 1;
        self
    }

    /// Only the first `n` requests that match.
    pub fn times(mut self, n: u64) -> Self {
        self.times = n;
        self
    }

    /// Whether this request has the effect; counts it if it matches.
    fn applies(&mut self, info: &RequestInfo, body: &[u8]) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let resource = match info.group.as_str() {
            "" => info.plural.clone(),
            group => format!("{}.{group}", info.plural),
        };
        let subresource = self.subresource.as_ref();
        let matches = is(&self.verb, Some(&info.verb))
            && is(&self.resource, Some(&resource))
            && subresource.is_none_or(|wanted| *wanted == info.subresource)
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

/// What all rules together do to one request.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) delay: Duration,
    pub(super) other: Option<Effect>,
}

pub(super) fn decide(rules: &mut [Rule], info: &RequestInfo, body: &[u8]) -> Effects {
    let mut effects = Effects::default();
    for rule in rules {
        if !rule.applies(info, body) {
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
