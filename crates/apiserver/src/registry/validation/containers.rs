//! Validation of the containers of a Pod.

use serde_json::json;

use super::field::{Errors, Field};
use super::format;
use super::probes;
use super::resources::{self, Owner};
use super::security_contexts;
use super::{environment, volumes};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const SIDECARS_ONLY: &str = "may not be set for init containers without restartPolicy=Always";
/// Maximum number of rules that decide about the restart of a container.
const RESTART_RULES_MAX: usize = 20;

/// What the containers of a Pod have in common.
pub(super) struct Pod<'a> {
    pub(super) handlers: probes::Pod,
    pub(super) volumes: volumes::Volumes<'a>,
    /// Names of the resource claims of the Pod.
    pub(super) claims: Vec<&'a str>,
    pub(super) restart_policy: &'a str,
    pub(super) host_users: bool,
}

/// Adds the errors in `containers` of a Pod.
pub(super) fn containers(list: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    if list.is_empty() {
        return errors.required(list, "");
    }
    let mut names: Vec<&str> = Vec::new();
    for container in list.items() {
        common(&container, pod, errors);
        let name = container.get("name").text();
        if names.contains(&name) {
            errors.duplicate(container.join("name"), name);
        }
        names.push(name);
        probes::lifecycle(&container.get("lifecycle"), pod.handlers, errors);
        probes::probes(&container, pod.handlers, errors);
        restart_policy(&container, errors);
    }
    let all: Vec<Field<'_>> = list.items().collect();
    host_port_conflicts(&all, errors);
}

/// Adds the errors in `initContainers` of a Pod.
pub(super) fn init_containers(
    list: &Field<'_>,
    regular: &Field<'_>,
    pod: &Pod<'_>,
    errors: &mut Errors,
) {
    let mut names: Vec<&str> = regular.items().map(|c| c.get("name").text()).collect();
    for container in list.items() {
        common(&container, pod, errors);
        let policy = container.get("restartPolicy");
        restart_policy(&container, errors);
        let name = container.get("name").text();
        if names.contains(&name) {
            errors.duplicate(container.join("name"), name);
        } else if !name.is_empty() {
            names.push(name);
        }
        let own = container.renamed(format!("{}[0]", list.path));
        host_port_conflicts(&[own], errors);
        let is_sidecar = policy.text() == "Always";
        if is_sidecar {
            probes::lifecycle(&container.get("lifecycle"), pod.handlers, errors);
            probes::probes(&container, pod.handlers, errors);
            continue;
        }
        for name in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if container.get(name).is_set() {
                errors.forbidden(&container.get(name), SIDECARS_ONLY);
            }
        }
        for resize in container.get("resizePolicy").items() {
            let policy = resize.get("restartPolicy");
            if policy.text() == "RestartContainer" {
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.invalid(&policy, detail);
            }
        }
    }
}

/// Adds the errors in `ephemeralContainers` of a Pod. The fields that ephemeral containers cannot
/// have are checked by the subresource.
pub(super) fn ephemeral_containers(list: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    for container in list.items() {
        common(&container, pod, errors);
    }
}

/// Adds the errors in what regular, init and ephemeral containers have in common.
fn common(container: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let name = container.get("name");
    match name.text() {
        "" => errors.required(&name, ""),
        text => errors.rules(&name, format::dns_label(text)),
    }
    errors.not_empty(&container.get("image"));
    let policies = ["File", "FallbackToLogsOnError"];
    errors.required_of(&container.get("terminationMessagePolicy"), &policies);
    ports(&container.get("ports"), errors);
    environment::environment(container, errors);
    volumes::mounts(container, &pod.volumes, errors);
    volumes::devices(container, &pod.volumes, errors);
    pull_policy(&container.get("imagePullPolicy"), errors);
    let requirements = container.get("resources");
    resources::requirements(Owner::Container, &requirements, &pod.claims, errors);
    resize_policies(&container.get("resizePolicy"), pod.restart_policy, errors);
    let context = container.get("securityContext");
    security_contexts::security_context(&context, pod.host_users, errors);
}

/// Adds the errors in the policy that decides when an image is pulled.
pub(super) fn pull_policy(policy: &Field<'_>, errors: &mut Errors) {
    errors.required_of(policy, &["Always", "IfNotPresent", "Never"]);
}

fn ports(list: &Field<'_>, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for port in list.items() {
        let name = port.get("name");
        if !name.is_empty() {
            let rules = format::port_name(name.text());
            if rules.is_empty() && names.contains(&name.text()) {
                errors.duplicate(&name.path, name.text());
            }
            errors.rules(&name, rules);
            names.push(name.text());
        }
        let number = port.get("containerPort");
        match number.int() {
            0 => errors.required(&number, ""),
            value => format::range(&number, format::port_number(value), errors),
        }
        let host = port.get("hostPort");
        if host.int() != 0 {
            format::range(&host, format::port_number(host.int()), errors);
        }
        errors.required_of(&port.get("protocol"), PROTOCOLS);
    }
}

/// Adds an error for each port of a node that two containers use.
fn host_port_conflicts(containers: &[Field<'_>], errors: &mut Errors) {
    let mut used: Vec<String> = Vec::new();
    for port in containers.iter().flat_map(|c| c.get("ports").items()) {
        let number = port.get("hostPort");
        if number.int() == 0 {
            continue;
        }
        let (protocol, address) = (port.get("protocol").text(), port.get("hostIP").text());
        let text = format!("{protocol}/{address}/{}", number.int());
        if used.contains(&text) {
            errors.duplicate(&number.path, &text);
        }
        used.push(text);
    }
}

fn resize_policies(list: &Field<'_>, restart_policy: &str, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for item in list.items() {
        let name = item.get("resourceName").text();
        if names.contains(&name) {
            errors.duplicate(&item.path, name);
        }
        names.push(name);
        let resource = item.get("resourceName").renamed(list.path.clone());
        errors.required_of(&resource, &["cpu", "memory"]);
        let policy = item.get("restartPolicy").renamed(list.path.clone());
        errors.required_of(&policy, &["NotRequired", "RestartContainer"]);
        if restart_policy == "Never" && policy.text() != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid_text(&policy, detail);
        }
    }
}

/// Adds the errors in the restart policy of a container and in its rules.
fn restart_policy(container: &Field<'_>, errors: &mut Errors) {
    let policy = container.get("restartPolicy");
    let rules = container.get("restartPolicyRules");
    if policy.is_set() {
        errors.supported(&policy, &["Always", "Never", "OnFailure"]);
    } else if !rules.is_empty() {
        let detail = "must specify restartPolicy when restart rules are used";
        errors.required(&policy, detail);
    }
    errors.not_more(&rules, RESTART_RULES_MAX);
    for rule in rules.items() {
        let actions = ["Restart", "RestartAllContainers"];
        errors.supported(&rule.get("action"), &actions);
        let codes = rule.get("exitCodes");
        if codes.is_set() {
            errors.supported(&codes.get("operator"), &["In", "NotIn"]);
            errors.not_more(&codes.get("values"), 255);
        } else {
            errors.required(&codes, "must be specified");
        }
    }
}

/// Adds an error for each container whose image has white space around it.
pub(super) fn padded_images(list: &Field<'_>, errors: &mut Errors) {
    for image in list.items().map(|container| container.get("image")) {
        if image.text().trim() != image.text() {
            let detail = "must not have leading or trailing whitespace";
            errors.invalid_value(&image.path, json!(image.text()), detail);
        }
    }
}
