//! Validation of the specs of Pods, also in the templates of workloads.

use opkit_apimachinery::quantity::Quantity;
use opkit_apimachinery::structural::FieldError;
use serde_json::json;

use super::containers::{self, Pod};
use super::field::{Errors, Field};
use super::resources::{self, Owner};
use super::{addresses, format, probes, scheduling, security_contexts, selectors, volumes};

/// Limits of a DNS configuration: servers, domains to search, and characters of these domains.
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_CHARACTERS_MAX: usize = 2_048;
const WINDOWS: &str = "cannot be set for a windows pod";

/// The object with the Pod spec.
#[derive(Clone, Copy, Default)]
pub(super) struct Context<'a> {
    /// Metadata of the Pod. A template has none.
    pub(super) metadata: Option<&'a Field<'a>>,
    /// The claim templates of a StatefulSet, from which it creates volumes.
    pub(super) claims: Option<&'a Field<'a>>,
}

/// Adds the errors in a Pod spec.
pub(super) fn pod_spec(spec: &Field<'_>, context: Context<'_>, errors: &mut Errors) {
    if !spec.is_set() {
        // A missing spec gets its defaults in Kubernetes, so that only the containers are missing.
        return errors.required(&spec.get("containers"), "");
    }
    let grace = spec.get("terminationGracePeriodSeconds");
    if !grace.is_set() {
        errors.required(&grace, "");
    }
    let host_users = spec.get("hostUsers");
    let templates = context.claims.into_iter().flat_map(Field::items);
    let templates: Vec<Field<'_>> = templates.collect();
    let replaced = templates.iter().map(|t| t.at(&["metadata", "name"]).text());
    let replaced: Vec<&str> = replaced.collect();
    let name = context.metadata.map(|m| m.get("name").text());
    let about = volumes::Context {
        name: name.unwrap_or_default(),
        is_pod: context.metadata.is_some(),
        replaced: &replaced,
    };
    let mut valid = volumes::volumes(&spec.get("volumes"), about, errors);
    valid.add_claims(templates.iter().cloned());
    let list = spec.get("resourceClaims");
    let names = list.items().map(|claim| claim.get("name").text());
    let pod = Pod {
        handlers: probes::Pod {
            grace: grace.value.as_i64(),
        },
        volumes: valid,
        claims: names.filter(|name| !name.is_empty()).collect(),
        restart_policy: spec.get("restartPolicy").text(),
        host_users: !host_users.is_set() || host_users.is_true(),
    };
    resource_claims(&list, errors);
    let regular = spec.get("containers");
    containers::containers(&regular, &pod, errors);
    containers::init_containers(&spec.get("initContainers"), &regular, &pod, errors);
    containers::ephemeral_containers(&spec.get("ephemeralContainers"), &pod, errors);
    pod_resources(spec, &pod, errors);
    host_ports(spec, about.is_pod, errors);
    let policies = ["Always", "OnFailure", "Never"];
    errors.required_of(&spec.get("restartPolicy"), &policies);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.required_of(&spec.get("dnsPolicy"), &policies);
    selectors::labels(&spec.get("nodeSelector"), errors);
    security_contexts::pod_security_context(spec, errors);
    scheduling::affinity(&spec.get("affinity"), errors);
    dns(spec, errors);
    gates(spec, errors);
    let constraints = spec.get("topologySpreadConstraints");
    scheduling::topology_spread_constraints(&constraints, errors);
    host_users_conflicts(spec, errors);
    host_name(spec, errors);
    names_and_deadline(spec, errors);
    scheduling::tolerations(&spec.get("tolerations"), errors);
    for alias in spec.get("hostAliases").items() {
        addresses::ip(&alias.get("ip"), errors);
        for name in alias.get("hostnames").items() {
            errors.rules(&name, format::dns_subdomain(name.text()));
        }
    }
    let class = spec.get("priorityClassName");
    if !class.is_empty() {
        errors.rules(&class, format::dns_subdomain(class.text()));
    }
    let class = spec.get("runtimeClassName");
    if class.is_set() {
        errors.rules(&class, format::dns_subdomain(class.text()));
    }
    preemption_policy(&spec.get("preemptionPolicy"), errors);
    let overhead = spec.get("overhead");
    let limits = overhead.renamed(overhead.join("limits"));
    resources::amounts(Owner::Container, &limits, None, errors);
    system(spec, errors);
    file_volumes(spec, errors);
}

/// Adds the errors in the policy for the eviction of Pods of lower priority.
pub(super) fn preemption_policy(policy: &Field<'_>, errors: &mut Errors) {
    if policy.is_set() {
        errors.required_of(policy, &["PreemptLowerPriority", "Never"]);
    }
}

fn resource_claims(list: &Field<'_>, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for claim in list.items() {
        let name = claim.get("name");
        if name.is_empty() {
            errors.required(&name, "");
        } else if names.contains(&name.text()) {
            errors.duplicate(&name.path, name.text());
        } else {
            errors.rules(&name, format::dns_label(name.text()));
            names.push(name.text());
        }
        let fields = ["resourceClaimName", "resourceClaimTemplateName"];
        let present = fields.map(|field| claim.get(field));
        let printed = format!(
            "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
            json!(name.text()),
            claim.get("resourceClaimName").value,
            claim.get("resourceClaimTemplateName").value,
        );
        if present.iter().all(Field::is_set) {
            let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may \
                          be specified";
            errors.invalid_printed(&claim.path, &printed, detail);
        }
        if !present.iter().any(Field::is_set) {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            errors.invalid_printed(&claim.path, &printed, detail);
        }
        for name in present.iter().filter(|name| name.is_set()) {
            errors.rules(name, format::dns_subdomain(name.text()));
        }
    }
}

/// Adds the errors in the resources of the whole Pod.
fn pod_resources(spec: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let whole = spec.get("resources");
    if !whole.is_set() {
        return;
    }
    if spec.at(&["os", "name"]).text() == "windows" {
        return errors.forbidden(&whole, "may not be set for a windows pod");
    }
    if whole.get("claims").is_set() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.forbidden(&whole.get("claims"), detail);
    }
    resources::requirements(Owner::Pod, &whole, &pod.claims, errors);
    for (name, request) in whole.get("requests").entries() {
        let regular = spec.get("containers");
        let requests = regular
            .items()
            .map(|c| c.at(&["resources", "requests", name]));
        let sum = requests.fold(Quantity::default(), |sum, request| {
            sum.checked_add(resources::quantity(&request))
                .unwrap_or(sum)
        });
        let amount = resources::quantity(&request);
        if sum > amount {
            let detail =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.invalid_value(&request.path, json!(amount.to_string()), &detail);
        }
    }
    for (index, container) in spec.get("containers").items().enumerate() {
        for (name, limit) in container.at(&["resources", "limits"]).entries() {
            let whole_limit = whole.at(&["limits", name]);
            let (amount, most) = (
                resources::quantity(&limit),
                resources::quantity(&whole_limit),
            );
            if whole_limit.is_set() && amount > most {
                let path = format!("{}.containers[{index}][{name}].limits", whole.path);
                let detail = format!("must be less than or equal to pod limits of {most}");
                errors.invalid_value(path, json!(amount.to_string()), &detail);
            }
        }
    }
}

/// Adds an error for each port of a Pod in the network of its node that has another number there.
fn host_ports(spec: &Field<'_>, is_pod: bool, errors: &mut Errors) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for port in spec
        .get("containers")
        .items()
        .flat_map(|c| c.get("ports").items())
    {
        let (host, own) = (port.get("hostPort"), port.get("containerPort"));
        if (is_pod || host.int() != 0) && host.int() != own.int() {
            let detail = "must match `containerPort` when `hostNetwork` is true";
            errors.invalid_int(&host, detail);
        }
    }
}

fn dns(spec: &Field<'_>, errors: &mut Errors) {
    let config = spec.get("dnsConfig");
    let (servers, searches) = (config.get("nameservers"), config.get("searches"));
    if spec.get("dnsPolicy").text() == "None" {
        if !config.is_set() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return errors.required(&config, detail);
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&servers, detail);
        }
    }
    if servers.len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.invalid(&servers, &detail);
    }
    for server in servers.items() {
        addresses::ip(&server, errors);
    }
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.invalid(&searches, &detail);
    }
    let lengths = searches.items().map(|search| search.text().len() + 1);
    if lengths.sum::<usize>() > SEARCH_CHARACTERS_MAX + 1 {
        let detail = format!(
            "must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in \
             the search list"
        );
        errors.invalid(&searches, &detail);
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text();
        let text = text.strip_suffix('.').unwrap_or(text);
        for rule in format::search_domain(text) {
            errors.invalid_value(&search.path, json!(text), &rule);
        }
    }
    for option in config.get("options").items() {
        if option.get("name").is_empty() {
            errors.required(&option, "must not be empty");
        }
    }
}

/// Adds the errors in readiness gates and scheduling gates.
fn gates(spec: &Field<'_>, errors: &mut Errors) {
    for gate in spec.get("readinessGates").items() {
        let condition = gate.get("conditionType");
        errors.rules(&condition, format::qualified_name(condition.text()));
    }
    let mut seen: Vec<&str> = Vec::new();
    for gate in spec.get("schedulingGates").items() {
        let name = gate.get("name").renamed(gate.path.clone());
        errors.rules(&name, format::qualified_name(name.text()));
        if seen.contains(&name.text()) {
            errors.duplicate(&name.path, name.text());
        }
        seen.push(name.text());
    }
}

/// Adds an error for each field that a Pod with its own user namespace cannot have.
fn host_users_conflicts(spec: &Field<'_>, errors: &mut Errors) {
    let host_users = spec.get("hostUsers");
    if !host_users.is_set() || host_users.is_true() {
        return;
    }
    for (field, name) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.get(field).is_true() {
            let path = spec.join(name);
            let detail = "when `hostUsers` is false";
            errors.0.push(FieldError::forbidden(path, detail));
        }
    }
}

fn host_name(spec: &Field<'_>, errors: &mut Errors) {
    let name = spec.get("hostnameOverride");
    if !name.is_set() {
        return;
    }
    if spec.get("setHostnameAsFQDN").is_true() {
        let detail = "may not be specified when setHostnameAsFQDN is true";
        errors.forbidden(&name, detail);
    }
    if spec.get("hostNetwork").is_true() {
        errors.forbidden(&name, "may not be specified when hostNetwork is true");
    }
    errors.not_longer(&name, 64);
    errors.rules(&name, format::dns_subdomain(name.text()));
}

fn names_and_deadline(spec: &Field<'_>, errors: &mut Errors) {
    for field in ["serviceAccountName", "nodeName"] {
        let name = spec.get(field);
        if !name.is_empty() {
            errors.rules(&name, format::dns_subdomain(name.text()));
        }
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.is_set() {
        let rules = format::in_range(deadline.int(), 1, i64::from(i32::MAX));
        format::range(&deadline, rules, errors);
    }
    for field in ["hostname", "subdomain"] {
        // A StatefulSet sets these fields of its Pods itself, and passes a spec without them.
        let name = spec.get(field);
        if !name.is_empty() {
            errors.rules(&name, format::dns_label(name.text()));
        }
    }
}

/// Adds the errors in fields that depend on the operating system of the Pod.
fn system(spec: &Field<'_>, errors: &mut Errors) {
    let system = spec.get("os");
    let name = system.get("name");
    if !system.is_set() {
        return;
    }
    let all = ["initContainers", "containers", "ephemeralContainers"];
    let all = all.iter().flat_map(|list| spec.get(list).items());
    let contexts = all.map(|container| container.get("securityContext"));
    match name.text() {
        "" => errors.required(&name, ""),
        "linux" => {
            let own = std::iter::once(spec.get("securityContext"));
            for context in own.chain(contexts) {
                let options = context.get("windowsOptions");
                if options.is_set() {
                    let detail = "windows options cannot be set for a linux pod";
                    errors.forbidden(&options, detail);
                }
            }
        }
        "windows" => windows(spec, contexts, errors),
        _ => errors.not_supported(&name.renamed(system.path), &["linux", "windows"]),
    }
}

fn windows<'a>(spec: &Field<'_>, contexts: impl Iterator<Item = Field<'a>>, errors: &mut Errors) {
    let context = spec.get("securityContext");
    let of_pod = [
        context.get("appArmorProfile"),
        context.get("seLinuxOptions"),
        spec.get("hostUsers"),
        spec.get("hostPID"),
        spec.get("hostIPC"),
        context.get("seccompProfile"),
        context.get("fsGroup"),
        context.get("fsGroupChangePolicy"),
        context.get("sysctls"),
        spec.get("shareProcessNamespace"),
        context.get("runAsUser"),
        context.get("runAsGroup"),
        context.get("supplementalGroups"),
        context.get("supplementalGroupsPolicy"),
        context.get("seLinuxChangePolicy"),
    ];
    for field in of_pod.iter().filter(|field| field.is_set()) {
        errors.forbidden(field, WINDOWS);
    }
    for context in contexts {
        for name in [
            "appArmorProfile",
            "seLinuxOptions",
            "seccompProfile",
            "capabilities",
            "readOnlyRootFilesystem",
            "privileged",
            "allowPrivilegeEscalation",
            "procMount",
            "runAsUser",
            "runAsGroup",
        ] {
            if context.get(name).is_set() {
                errors.forbidden(&context.get(name), WINDOWS);
            }
        }
    }
}

/// Adds an error for each variable from a file whose volume does not exist or is of another type.
fn file_volumes(spec: &Field<'_>, errors: &mut Errors) {
    let all = ["initContainers", "containers", "ephemeralContainers"];
    for variable in all
        .iter()
        .flat_map(|list| spec.get(list).items())
        .flat_map(|container| container.get("env").items())
    {
        let reference = variable.at(&["valueFrom", "fileKeyRef"]);
        if !reference.is_set() {
            continue;
        }
        let name = reference.get("volumeName");
        let mut volumes = spec.get("volumes").items();
        match volumes.find(|volume| volume.get("name").text() == name.text()) {
            None => errors.not_found(&name.path, name.text()),
            Some(volume) if !volume.get("emptyDir").is_set() => {
                errors.invalid_text(&name, "referenced volume must be of type emptyDir");
            }
            Some(_) => {}
        }
    }
}
