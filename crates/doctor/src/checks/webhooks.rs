//! Webhooks: whether the API server can reach them, and what they block.

mod reach;

use opkit_apimachinery::selector::LabelSelector;
use serde_json::Value;

use crate::value::{items, kind, labels, name, text, texts};
use crate::{Facts, Finding};

/// Time limit of a webhook that is too long, in seconds: a request with two such webhooks does not
/// end within the time limit of kubectl and controllers.
const TIMEOUT_MAX: i64 = 15;

pub(super) const CONFIGURATIONS: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    // Without the operator, the missing Deployment says enough about what is not there.
    let mut findings = match facts.deployment() {
        Some(_) => missing(facts),
        None => Vec::new(),
    };
    for configuration in configurations(facts) {
        let mut own = of_configuration(facts, configuration);
        // Several entries with the same problem are one finding.
        own.dedup();
        let about = |finding: Finding| finding.about(configuration);
        findings.extend(own.into_iter().map(about));
    }
    let crds = facts.manifests.all("CustomResourceDefinition");
    let crds = crds.filter_map(|crd| facts.live(crd));
    for crd in crds.filter(|crd| text(crd, "/spec/conversion/strategy") == "Webhook") {
        findings.extend(reach::conversion(facts, crd).map(|finding| finding.about(crd)));
    }
    findings
}

/// Returns the webhook configurations of the operator in the cluster: those whose webhooks are
/// behind a Service of its namespace.
pub(super) fn configurations(facts: &Facts) -> impl Iterator<Item = &Value> {
    let objects = facts.objects.iter();
    objects.filter(|object| {
        let mut webhooks = items(object, "/webhooks").iter();
        CONFIGURATIONS.contains(&kind(object))
            && webhooks.any(|webhook| {
                text(webhook, "/clientConfig/service/namespace") == facts.manifests.namespace
            })
            && is_of(facts, object)
    })
}

/// Reports whether a configuration is one of this operator, and not of another one in the same
/// namespace.
fn is_of(facts: &Facts, object: &Value) -> bool {
    let label = labels(object).and_then(|it| it.get("app.kubernetes.io/name"));
    let is_named = label.and_then(Value::as_str) == Some(&facts.manifests.operator);
    let mut expected = facts.manifests.objects.iter();
    is_named || expected.any(|it| kind(it) == kind(object) && name(it) == name(object))
}

/// Finds configurations and webhooks of the build that are not in the cluster.
fn missing(facts: &Facts) -> Vec<Finding> {
    let expected = facts.manifests.objects.iter();
    let expected = expected.filter(|it| CONFIGURATIONS.contains(&kind(it)));
    let mut findings = Vec::new();
    for configuration in expected.filter(|it| facts.is_read(kind(it))) {
        let name = name(configuration);
        let verb = match kind(configuration) {
            "MutatingWebhookConfiguration" => "defaulted",
            _ => "validated",
        };
        let live = facts.live(configuration);
        let all = live.map_or(&[][..], |live| items(live, "/webhooks"));
        let has = |wanted: &Value| {
            let mut webhooks = all.iter();
            webhooks.any(|it| text(it, "/name") == text(wanted, "/name"))
        };
        let webhooks = items(configuration, "/webhooks").iter();
        let lacking: Vec<_> = webhooks.filter(|it| !has(it)).collect();
        let message = match (live, lacking.first()) {
            (_, None) => continue,
            (None, _) => format!("{name} does not exist: objects are not {verb}"),
            (Some(_), Some(first)) => format!(
                "{name} has no webhook {}: objects are not {verb}",
                text(first, "/name")
            ),
        };
        let finding = Finding::fail("webhook", message).command("opkit deploy");
        findings.push(finding.about(configuration));
    }
    findings
}

fn of_configuration(facts: &Facts, configuration: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for webhook in items(configuration, "/webhooks") {
        findings.extend(reach::admission(facts, configuration, webhook));
        findings.extend(deadlock(facts, configuration, webhook));
        findings.extend(timeout(configuration, webhook));
    }
    findings
}

pub(super) fn is_required(webhook: &Value) -> bool {
    text(webhook, "/failurePolicy") != "Ignore"
}

/// Finds a webhook that the API server calls for the objects of the operator itself, or of
/// Kubernetes: without the operator, these cannot be created.
fn deadlock(facts: &Facts, configuration: &Value, webhook: &Value) -> Option<Finding> {
    let rules = items(webhook, "/rules");
    let has = |rule: &Value, list: &str, wanted: &[&str]| {
        let all = texts(rule, list);
        all.iter().any(|it| wanted.contains(it))
    };
    let is_matched = rules.iter().any(|rule| {
        has(
            rule,
            "/resources",
            &["*", "*/*", "pods", "replicasets", "leases", "secrets"],
        ) && has(
            rule,
            "/apiGroups",
            &["*", "", "apps", "coordination.k8s.io"],
        ) && has(rule, "/operations", &["*", "CREATE", "UPDATE"])
    });
    if !is_required(webhook) || !is_matched || !items(webhook, "/matchConditions").is_empty() {
        return None;
    }
    let namespaces = [facts.manifests.namespace.as_str(), "kube-system"];
    let mut namespaces = namespaces.into_iter();
    let caught = namespaces.find(|name| selects(facts, webhook, name))?;
    let resources = rules
        .first()
        .map(|rule| texts(rule, "/resources").join(", "));
    let message = format!(
        "{} intercepts {} in the namespace {caught} with failurePolicy Fail: while no replica is ready, none can be created",
        name(configuration),
        resources.unwrap_or_default()
    );
    let command = format!(
        "kubectl edit {} {}   # namespaceSelector: kubernetes.io/metadata.name NotIn [{}, kube-system]",
        kind(configuration).to_lowercase(),
        name(configuration),
        facts.manifests.namespace
    );
    Some(Finding::fail("webhook", message).command(command))
}

/// Reports whether the selectors of a webhook select objects of the operator in a namespace.
fn selects(facts: &Facts, webhook: &Value, namespace: &str) -> bool {
    let selector = |field: &str| {
        let empty = serde_json::json!({});
        let selector = LabelSelector::from_object(webhook.get(field).unwrap_or(&empty));
        selector.unwrap_or_else(|_| LabelSelector::nothing())
    };
    let Some(found) = facts.find("Namespace", None, namespace) else {
        return false;
    };
    let pod = facts
        .expected_deployment()
        .and_then(|it| it.pointer("/spec/template/metadata/labels")?.as_object());
    // The objects of Kubernetes have no labels of the operator.
    let pod = pod.filter(|_| namespace == facts.manifests.namespace);
    selector("namespaceSelector").matches(labels(found)) && selector("objectSelector").matches(pod)
}

fn timeout(configuration: &Value, webhook: &Value) -> Option<Finding> {
    let timeout = webhook.get("timeoutSeconds")?.as_i64()?;
    (timeout > TIMEOUT_MAX).then(|| {
        let message = format!(
            "{} may take {timeout} s for {}: every write waits that long while the operator does not respond",
            name(configuration),
            text(webhook, "/name")
        );
        let name = name(configuration);
        let kind = kind(configuration).to_lowercase();
        let command = format!("kubectl edit {kind} {name}   # timeoutSeconds: 10");
        Finding::warning("webhook", message).command(command)
    })
}
