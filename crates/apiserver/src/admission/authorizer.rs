//! The CEL variable `authorizer` of match conditions and policies.

use std::sync::Arc;

use futures::FutureExt;
use opkit_cel::{Authorizer, Check, CheckTarget, Decision, ResourceCheck};

use super::Attributes;
use super::request::Presented;
use crate::authentication::{Identity, service_account_groups, service_account_user};
use crate::authorization;
use crate::registry::Registry;

/// Asks the authorizers of the server for permissions of the user of a request.
#[derive(Debug)]
pub(crate) struct RequestAuthorizer<'a> {
    registry: &'a Registry,
    user: Arc<Identity>,
}

impl<'a> RequestAuthorizer<'a> {
    pub(crate) fn new(registry: &'a Registry, attributes: &Attributes<'_>) -> Self {
        Self {
            registry,
            user: attributes.user(),
        }
    }
}

impl Authorizer for RequestAuthorizer<'_> {
    fn authorize(&self, check: &Check<'_>) -> Decision {
        let user = match check.service_account {
            Some((namespace, name)) => Arc::new(Identity::authenticated(
                service_account_user(namespace, name),
                service_account_groups(namespace),
            )),
            None => self.user.clone(),
        };
        let attributes = match check.target {
            CheckTarget::Path(path) => authorization::Attributes {
                verb: check.verb.into(),
                path: path.into(),
                ..authorization::Attributes::default()
            },
            CheckTarget::Resource(resource) => authorization::Attributes {
                version: "*".into(),
                subresource: resource.subresource.as_str().into(),
                field_selector: resource.field_selector.clone(),
                label_selector: resource.label_selector.clone(),
                ..authorization::Attributes::of_resource(
                    check.verb,
                    &resource.group,
                    &resource.resource,
                )
                .in_namespace(&resource.namespace)
                .named(&resource.name)
            },
            _ => return Decision::no_opinion(""),
        };
        let authorizer = &self.registry.authorizer;
        let decision = authorizer
            .authorize(&self.registry.store, &user, &attributes)
            .now_or_never();
        match decision {
            Some(decision) => {
                let mut outcome = Decision::no_opinion(decision.reason.clone());
                outcome.is_allowed = decision.is_allowed();
                outcome.error.clone_from(&decision.error);
                outcome
            }
            // An expression is evaluated at once, and cannot wait for a response.
            None => Decision::failed("a webhook authorizer cannot be called by an expression"),
        }
    }
}

/// Returns the value of `authorizer.requestResource`: the resource of the request.
pub(crate) fn request_resource(presented: &Presented<'_>) -> ResourceCheck {
    let attributes = presented.attributes;
    let mut resource = ResourceCheck::default();
    resource.group.clone_from(&presented.kind.group);
    resource.resource.clone_from(&presented.kind.plural);
    resource
        .subresource
        .clone_from(&attributes.target.subresource);
    attributes.namespace().clone_into(&mut resource.namespace);
    attributes.name.clone_into(&mut resource.name);
    resource
}
