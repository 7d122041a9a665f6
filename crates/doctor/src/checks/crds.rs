//! The operator's CRDs: whether they are served, are those of the build, and in which versions
//! objects are stored.

use opkit_crds::{Change, compare};
use serde_json::Value;

use crate::value::{condition, has_condition, items, name, short, text, texts};
use crate::{Facts, Finding};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    if !facts.is_read("CustomResourceDefinition") {
        return Vec::new();
    }
    let expected = facts.manifests.all("CustomResourceDefinition");
    expected.flat_map(|crd| of_crd(facts, crd)).collect()
}

fn of_crd(facts: &Facts, expected: &Value) -> Vec<Finding> {
    let name = name(expected);
    let Some(live) = facts.live(expected) else {
        let message = format!("the CRD {name} is not installed");
        let finding = Finding::fail("crd", message).command("opkit install");
        return vec![finding.about(expected)];
    };
    let mut findings: Vec<_> = served(live).into_iter().collect();
    findings.extend(stored(live, expected));
    findings.extend(skew(facts, live, expected));
    let about = |finding: Finding| finding.about(live);
    findings.into_iter().map(about).collect()
}

/// Returns why a CRD is not served.
fn served(live: &Value) -> Option<Finding> {
    let name = name(live);
    let describe = format!("kubectl describe crd {name}");
    let message = |type_: &str| {
        let condition = condition(live, type_).unwrap_or(&Value::Null);
        short(text(condition, "/message"))
    };
    if !text(live, "/metadata/deletionTimestamp").is_empty() {
        let message = format!("the CRD {name} is terminating: {}", message("Terminating"));
        let plural = text(live, "/spec/names/plural");
        let command = format!("kubectl get {plural}.{} -A", text(live, "/spec/group"));
        return Some(Finding::fail("crd", message).command(command));
    }
    if has_condition(live, "NamesAccepted", "False") {
        let message = format!(
            "the names of the CRD {name} are not accepted: {}",
            message("NamesAccepted")
        );
        return Some(Finding::fail("crd", message).command(describe));
    }
    if !has_condition(live, "Established", "True") {
        let message = format!("the CRD {name} is not established, so its kind is not served");
        return Some(Finding::fail("crd", message).command(describe));
    }
    None
}

/// Finds versions in which objects may still be stored.
fn stored(live: &Value, expected: &Value) -> Vec<Finding> {
    let name = name(live);
    let versions = items(live, "/spec/versions");
    let storage = versions
        .iter()
        .find(|it| it.get("storage") == Some(&Value::Bool(true)))
        .map_or("", |it| text(it, "/name"));
    let kept: Vec<_> = items(expected, "/spec/versions")
        .iter()
        .map(|it| text(it, "/name"))
        .collect();
    let old = texts(live, "/status/storedVersions");
    let old = old.into_iter().filter(|version| *version != storage);
    let finding = |version: &str| {
        let is_served = versions
            .iter()
            .any(|it| text(it, "/name") == version && it.get("served") == Some(&Value::Bool(true)));
        let finding = if !kept.contains(&version) {
            let message = format!(
                "{name}: objects may be stored as {version}, which this build drops, so the API server refuses its CRD"
            );
            Finding::fail("crd", message)
        } else {
            let served = if is_served {
                ""
            } else {
                ", which is no longer served"
            };
            let message = format!(
                "{name}: objects may be stored as {version}{served}, so no release can drop that version"
            );
            Finding::warning("crd", message)
        };
        finding.command(format!("opkit migrate storage {name}"))
    };
    old.map(finding).collect()
}

/// Compares the versions and schemas in the cluster with those of the build.
fn skew(facts: &Facts, live: &Value, expected: &Value) -> Option<Finding> {
    let name = name(live);
    let changes = |old: &Value, new: &Value| -> Vec<Change> {
        let upgrades = compare(std::slice::from_ref(old), std::slice::from_ref(new));
        let changes = upgrades.unwrap_or_default().into_iter();
        changes.flat_map(|upgrade| upgrade.changes).collect()
    };
    let (lacking, surplus) = (missing(live, expected), missing(expected, live));
    let changes = changes(live, expected);
    let added = paths(&changes, "field");
    let removed = paths(&changes, "existingFieldRemoval");
    let lacking: Vec<_> = lacking.into_iter().chain(added).collect();
    let surplus: Vec<_> = surplus.into_iter().chain(removed).collect();
    if !lacking.is_empty() {
        let what = listed(&lacking);
        let message = format!("the CRD {name} is older than this build: it has no {what}");
        // The API server drops what the operator writes to a field that the CRD lacks.
        let finding = match facts.runs_this_build() {
            true => Finding::fail(
                "version",
                format!("{message}, and the operator that runs is of this build"),
            ),
            false => Finding::warning("version", message),
        };
        return Some(finding.command("opkit install   # first: opkit crd check --against cluster"));
    }
    if !surplus.is_empty() {
        let what = listed(&surplus);
        let message =
            format!("the CRD {name} is newer than this build, which does not know {what}");
        return Some(
            Finding::warning("version", message).command("opkit crd check --against cluster"),
        );
    }
    // A change between two versions of the same CRD is in both CRDs.
    let mut changes = changes.iter();
    let change = changes.find(|it| it.version.as_ref().is_none_or(|it| !it.contains(" -> ")))?;
    let place = format!(
        "{} {}",
        change.version.as_deref().unwrap_or_default(),
        change.field
    );
    let message = format!(
        "the CRD {name} differs from that of this build: {}: {}",
        place.trim(),
        short(&change.message)
    );
    Some(Finding::warning("version", message).command("opkit crd check --against cluster"))
}

/// Returns the versions of one CRD that another one lacks, or does not serve.
fn missing(crd: &Value, other: &Value) -> Vec<String> {
    let served = |crd: &Value| -> Vec<String> {
        let versions = items(crd, "/spec/versions").iter();
        let served = versions.filter(|it| it.get("served") != Some(&Value::Bool(false)));
        served.map(|it| text(it, "/name").to_owned()).collect()
    };
    let has = served(crd);
    let versions = served(other).into_iter();
    let missing = versions.filter(|version| !has.contains(version));
    missing
        .map(|version| format!("served version {version}"))
        .collect()
}

/// Returns the fields with a change of this rule, without the fields inside of them.
fn paths(changes: &[Change], rule: &str) -> Vec<String> {
    let changes = changes.iter().filter(|change| change.rule == rule);
    let mut paths: Vec<&str> = changes.map(|change| change.field.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut roots: Vec<&str> = Vec::new();
    for path in paths {
        let is_inside = |root: &&str| {
            let rest = path.strip_prefix(*root);
            rest.is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        if !roots.iter().any(is_inside) {
            roots.push(path);
        }
    }
    roots.into_iter().map(str::to_owned).collect()
}

/// Returns the first names, and the number of the others.
fn listed(names: &[String]) -> String {
    const MAX: usize = 4;
    let first: Vec<_> = names.iter().take(MAX).map(String::as_str).collect();
    match names.len().saturating_sub(MAX) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
