//! Validation of probes and lifecycle handlers of containers.

use super::field::{Errors, Field};
use super::format;

const ONE_HANDLER: &str = "may not specify more than 1 handler type";
/// Properties of the Pod on which the rules for handlers depend.
#[derive(Clone, Copy)]
pub(super) struct Pod {
    /// `terminationGracePeriodSeconds` of the Pod.
    pub(super) grace: Option<i64>,
}

/// Adds the errors in the probes of a container.
pub(super) fn probes(container: &Field<'_>, pod: Pod, errors: &mut Errors) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, pod, errors);
        for name in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            errors.not_negative(&probe.get(name));
        }
        let grace = probe.get("terminationGracePeriodSeconds");
        if grace.is_set() && grace.int() <= 0 {
            errors.invalid(&grace, "must be greater than 0");
        }
        if name == "readinessProbe" {
            if grace.is_set() {
                errors.invalid(&grace, "must not be set for readinessProbes");
            }
        } else if probe.get("successThreshold").int() != 1 {
            errors.invalid_int(&probe.get("successThreshold"), "must be 1");
        }
    }
}

/// Adds the errors in the lifecycle handlers of a container.
pub(super) fn lifecycle(lifecycle: &Field<'_>, pod: Pod, errors: &mut Errors) {
    for name in ["postStart", "preStop"] {
        let action = lifecycle.get(name);
        if action.is_set() {
            handler(&action, pod, errors);
        }
    }
}

/// Adds the errors in what a probe or lifecycle handler does.
fn handler(handler: &Field<'_>, pod: Pod, errors: &mut Errors) {
    let names = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let actions = names.iter().map(|name| (*name, handler.get(name)));
    let mut actions = actions.filter(|(_, action)| action.is_set());
    match actions.next() {
        None => errors.required(handler, "must specify a handler type"),
        Some(("exec", action)) if action.get("command").is_empty() => {
            errors.required(&action.get("command"), "");
        }
        Some(("httpGet", action)) => http_get(&action, errors),
        Some(("tcpSocket" | "grpc", action)) => format::port(&action.get("port"), errors),
        Some(("sleep", action)) => {
            let seconds = action.get("seconds").int();
            if let Some(grace) = pod.grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
                let detail = format!(
                    "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                );
                errors.invalid_value(&action.path, seconds.into(), &detail);
            }
        }
        Some(_) => {}
    }
    for (_, action) in actions {
        errors.forbidden(&action, ONE_HANDLER);
    }
}

fn http_get(action: &Field<'_>, errors: &mut Errors) {
    errors.not_empty(&action.get("path"));
    format::port(&action.get("port"), errors);
    errors.supported(&action.get("scheme"), &["HTTP", "HTTPS"]);
    let headers = action.get("httpHeaders");
    for header in headers.items() {
        let name = header.get("name").renamed(headers.path.clone());
        errors.rules(&name, format::header_name(name.text()));
    }
}
