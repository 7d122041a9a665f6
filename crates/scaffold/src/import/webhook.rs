//! The functions of webhooks: they compile, and have the Go code as comments.

use std::collections::{BTreeMap, BTreeSet};

use super::code::Body;
use super::controller::{Text, signature};
use super::target::{PlannedWebhook, Target};
use crate::names;
use crate::render::{article, chain};

/// Arguments of a marker that have no counterpart because they follow from the code.
const DERIVED: [&str; 9] = [
    "path",
    "mutating",
    "groups",
    "resources",
    "versions",
    "name",
    "admissionReviewVersions",
    "matchPolicy",
    "webhookVersions",
];

/// Returns the functions of the webhook of a kind.
pub(super) fn text(target: &Target<'_>, webhook: &PlannedWebhook) -> Text {
    let mut text = Text::default();
    let (kind, words) = (&target.kind, names::words(&target.kind));
    let (a, var) = (article(&words), names::variable(kind));
    let object = match target.is_dynamic() {
        true => "opkit::kube::core::DynamicObject",
        false => kind,
    };
    let go = &webhook.go;
    let is_validating =
        |it: &&BTreeMap<String, String>| it.get("mutating").is_some_and(|it| it == "false");
    let mut validating = go.markers.iter().filter(is_validating);
    let has_delete = webhook.validation && validating.any(|it| verbs(it).contains("delete"));
    let mut links = Vec::new();
    if webhook.defaulting {
        links.push(".defaulting(set_defaults)".to_owned());
    }
    if webhook.validation {
        links.push(".validating(check)".to_owned());
    }
    if has_delete {
        links.push(".validating_delete(check_delete)".to_owned());
    }
    settings(target, webhook, &mut links, &mut text);
    let root = match target.is_dynamic() {
        true => "Webhook::dynamic(kind())",
        false => "Webhook::new()",
    };
    text.code += &format!(
        "\n/// Returns the webhook, which the API server calls before it stores {a} {words}.\npub fn webhook() -> Webhook<{object}> {{\n    {}\n}}\n",
        chain(root, &links, 4)
    );
    if webhook.defaulting {
        text.code += "\n/// Sets what a default of the schema cannot express.\n";
        let parameters = [format!("_{var}: &mut {object}")];
        text.code += &signature("fn set_defaults", &parameters, "");
        comments(target, "set_defaults", &go.default, &mut text);
        text.code += "}\n";
    }
    if webhook.validation {
        text.code += &format!(
            "\n/// Reports whether {a} {words} may be stored. `_old` is the object before an update.\n"
        );
        let parameters = [
            format!("_{var}: &{object}"),
            format!("_old: Option<&{object}>"),
        ];
        text.code += &signature("pub fn check", &parameters, "Admission");
        comments(target, "check", &go.validate_create, &mut text);
        comments(target, "check", &go.validate_update, &mut text);
        if !has_delete && go.validate_delete.iter().any(Body::has_code) {
            text.code +=
                "    // The verbs of the marker have no delete, so this is not called in Go:\n";
            comments(target, "check", &go.validate_delete, &mut text);
        }
        text.code += "    Admission::allowed()\n}\n";
    }
    if has_delete {
        text.code += &format!("\n/// Reports whether {a} {words} may be deleted.\n");
        let parameters = [format!("_{var}: &{object}")];
        text.code += &signature("pub fn check_delete", &parameters, "Admission");
        comments(target, "check_delete", &go.validate_delete, &mut text);
        text.code += "    Admission::allowed()\n}\n";
    }
    let functions = go.functions.iter();
    let file = target.file();
    text.unported
        .extend(functions.map(|it| format!("{file}: what the webhook calls: {it}")));
    text
}

/// Adds the Go code of a function.
fn comments(target: &Target<'_>, function: &str, bodies: &[Body], text: &mut Text) {
    for body in bodies {
        // Two comments are apart.
        let last = text.code.lines().last().unwrap_or_default();
        if last.trim_start().starts_with("//") && !last.ends_with("in Go:") {
            text.code.push('\n');
        }
        text.code += &body.comment("    ");
        if body.has_code() {
            let what = format!(
                "{}: {function}, from {} at {}",
                target.file(),
                body.name,
                body.place
            );
            text.unported.push(what);
        }
    }
}

fn verbs(marker: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let verbs = marker.get("verbs").map(String::as_str).unwrap_or_default();
    verbs.split(';').map(str::trim).collect()
}

/// Adds the settings of the markers that have a counterpart, and reports the others.
fn settings(
    target: &Target<'_>,
    webhook: &PlannedWebhook,
    links: &mut Vec<String>,
    text: &mut Text,
) {
    let mut unported = BTreeSet::new();
    // A webhook here has one setting for both of its sorts.
    let markers = &webhook.go.markers;
    let of_all = |name: &str, value: &str| {
        let is_equal = |it: &String| it.eq_ignore_ascii_case(value);
        markers.iter().all(|it| it.get(name).is_some_and(is_equal))
    };
    for marker in markers {
        let settings = marker.iter();
        for (name, value) in settings.filter(|(name, _)| !DERIVED.contains(&name.as_str())) {
            let link = match (name.as_str(), value.to_lowercase().as_str()) {
                ("failurePolicy", "fail")
                | ("sideEffects", "none")
                | ("reinvocationPolicy", "never") => continue,
                ("failurePolicy", "ignore") if of_all(name, value) => {
                    ".failure_policy(opkit::webhook::FailurePolicy::Ignore)".to_owned()
                }
                ("reinvocationPolicy", "ifneeded") => {
                    ".reinvocation_policy(opkit::webhook::ReinvocationPolicy::IfNeeded)".to_owned()
                }
                ("timeoutSeconds", seconds)
                    if of_all(name, value) && seconds.parse::<u32>().is_ok() =>
                {
                    format!(".timeout(Duration::from_secs({seconds}))")
                }
                ("verbs", _) => {
                    let mut verbs = verbs(marker);
                    verbs.remove("delete");
                    if verbs != BTreeSet::from(["create", "update"]) {
                        unported.insert(format!("{name}={value}"));
                    }
                    continue;
                }
                _ => {
                    let sort = match marker.get("mutating").map(String::as_str) {
                        Some("true") => "mutating",
                        _ => "validating",
                    };
                    unported.insert(format!("{name}={value} of the {sort} webhook"));
                    continue;
                }
            };
            if !links.contains(&link) {
                links.push(link);
            }
        }
    }
    let paths = webhook.paths.iter();
    unported.extend(paths.map(|path| format!("the path {path}: it is kubebuilder's here")));
    let file = target.file();
    let lines = unported.into_iter();
    let lines = lines.map(|it| format!("{file}: the webhook does not have {it}"));
    text.unported.extend(lines);
}
