//! Log lines for requests that are refused because of their user.

use crate::authentication::{AuthenticationError, Identity};
use crate::authorization::{Attributes, Decision};
use crate::status::ApiError;

/// The target of the log lines.
const TARGET: &str = "opkit_apiserver::denials";

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
pub(crate) fn log_denied(user: &Identity, attributes: &Attributes<'_>, decision: &Decision) {
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
