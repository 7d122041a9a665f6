//! Log lines for requests that are refused because of their user, and a record of denied requests.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::authentication::{AuthenticationError, Identity};
use crate::authorization::{Attributes, Decision};
use crate::status::ApiError;

/// The target of the log lines.
const TARGET: &str = "opkit_apiserver::denials";

/// Maximum number of different denied requests that are recorded.
const RECORDED_MAX: usize = 1_000;

/// Denied requests so far, without the names of objects: the user, and Kubernetes' sentence about
/// the request. Each pair is recorded once.
#[derive(Debug, Default)]
pub(crate) struct DeniedRequests {
    recorded: Mutex<BTreeSet<(String, String)>>,
}

impl DeniedRequests {
    /// Returns the sentences about the denied requests of a user.
    pub(crate) fn of(&self, user: &str) -> Vec<String> {
        let recorded = self.recorded.lock();
        let of_user = recorded.iter().filter(|(denied, _)| denied == user);
        of_user.map(|(_, sentence)| sentence.clone()).collect()
    }

    /// Logs and records a request that the authorizers do not allow.
    pub(crate) fn add(&self, user: &Identity, attributes: &Attributes<'_>, decision: &Decision) {
        log_denied(user, attributes, decision);
        let mut recorded = self.recorded.lock();
        if recorded.len() < RECORDED_MAX {
            recorded.insert((user.user.clone(), attributes.denial(&user.user)));
        }
    }
}

/// Logs a request without valid credentials.
pub(crate) fn log_unauthenticated(attributes: &Attributes<'_>, error: &AuthenticationError) {
    tracing::info!(
        target: TARGET,
        verb = %attributes.verb,
        resource = %attributes.combined_resource(),
        group = %attributes.group,
        namespace = %attributes.namespace,
        path = %attributes.path,
        reason = %error,
        "a request is not authenticated"
    );
}

/// Logs a request that the authorizers do not allow.
fn log_denied(user: &Identity, attributes: &Attributes<'_>, decision: &Decision) {
    tracing::info!(
        target: TARGET,
        user = %user.user,
        groups = ?user.groups,
        verb = %attributes.verb,
        resource = %attributes.combined_resource(),
        group = %attributes.group,
        namespace = %attributes.namespace,
        name = %attributes.name,
        path = %attributes.path,
        reason = %decision.reason,
        error = decision.error.as_deref().unwrap_or_default(),
        "a request is denied"
    );
}

/// Logs a request whose user may not impersonate the user in the headers.
pub(crate) fn log_impersonation(user: &Identity, attributes: &Attributes<'_>, error: &ApiError) {
    tracing::info!(
        target: TARGET,
        user = %user.user,
        groups = ?user.groups,
        verb = %attributes.verb,
        resource = %attributes.combined_resource(),
        group = %attributes.group,
        namespace = %attributes.namespace,
        name = %attributes.name,
        path = %attributes.path,
        reason = %error.message(),
        "a request is denied: its user may not impersonate another user"
    );
}
