//! The permissions of a project beyond those that follow from its controllers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::code;
use super::project::{self, KubebuilderProject};
use crate::{Result, built_in};

#[cfg(test)]
mod tests;

/// File that controller-gen writes from the markers.
const ROLE: &str = "config/rbac/role.yaml";
/// Greatest width of arguments and lists on one line, as rustfmt has it.
const WIDTH: usize = 60;
/// Greatest width of an item in a list with several items on a line, as rustfmt has it.
const SHORT: usize = 10;
/// Greatest width of a line.
const COLUMNS: usize = 100;

/// Rule of a role in Go's project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
    names: Vec<String>,
    urls: Vec<String>,
}

/// Permissions to add to the operator.
#[derive(Clone, Debug, Default)]
pub(super) struct Permissions {
    /// Calls of `Operator::rule`.
    pub(super) links: Vec<String>,
    /// Rules that have no counterpart.
    pub(super) unported: Vec<String>,
}

/// Resources whose permissions follow from the controllers, as group and plural.
pub(super) type Covered = BTreeSet<(String, String)>;

/// Permission of an operator for resources of one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    group: String,
    verbs: Vec<String>,
    names: Vec<String>,
    is_cluster: bool,
}

/// Returns the permissions of `config/rbac/role.yaml` or, if there is none, of the markers.
pub(super) fn permissions(project: &KubebuilderProject, covered: &Covered) -> Result<Permissions> {
    let mut permissions = Permissions::default();
    let rules = rules(project, &mut permissions.unported)?;
    let mut grants: BTreeMap<Grant, BTreeSet<String>> = BTreeMap::new();
    for rule in rules {
        if !rule.urls.is_empty() {
            let text = format!("there is no rule for the URLs {}", rule.urls.join(", "));
            permissions.unported.push(text);
        }
        let mut verbs = rule.verbs.clone();
        verbs.sort();
        for group in &rule.groups {
            for resource in &rule.resources {
                if is_covered(covered, group, resource, &verbs) {
                    continue;
                }
                let base = resource.split('/').next().unwrap_or(resource);
                let grant = Grant {
                    group: group.clone(),
                    verbs: verbs.clone(),
                    names: rule.names.clone(),
                    is_cluster: built_in::is_cluster(group, base)
                        || has_cluster_crd(project, group, base),
                };
                grants.entry(grant).or_default().insert(resource.clone());
            }
        }
    }
    let links = grants.iter().map(|(grant, resources)| {
        let resources: Vec<String> = resources.iter().cloned().collect();
        link(grant, &resources)
    });
    permissions.links = links.collect();
    Ok(permissions)
}

/// Returns the rules of the role, or of the markers.
fn rules(project: &KubebuilderProject, unported: &mut Vec<String>) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    let Some(text) = project.files.get(ROLE) else {
        for (_, text) in project.go_files() {
            let markers = code::markers(text, "rbac");
            rules.extend(markers.iter().map(Rule::of_marker));
        }
        return Ok(rules);
    };
    for role in project::yaml(ROLE, text)? {
        let namespace = role.pointer("/metadata/namespace").and_then(Value::as_str);
        let own = format!("{}-system", project.name());
        let is_own = project.is_namespaced && namespace == Some(own.as_str());
        if let Some(namespace) = namespace.filter(|_| !is_own) {
            unported.push(format!(
                "the rules of the Role in the namespace {namespace} hold for all watched namespaces here"
            ));
        }
        let list = role.get("rules").and_then(Value::as_array);
        rules.extend(list.into_iter().flatten().map(Rule::of));
    }
    Ok(rules)
}

fn has_cluster_crd(project: &KubebuilderProject, group: &str, plural: &str) -> bool {
    project.crds.iter().any(|crd| {
        let at = |path: &str| crd.value.pointer(path).and_then(Value::as_str);
        crd.group == group
            && at("/spec/names/plural") == Some(plural)
            && at("/spec/scope") == Some("Cluster")
    })
}

/// Reports whether a permission follows from the controllers: for reconciled and owned kinds, and
/// for events.
fn is_covered(covered: &Covered, group: &str, resource: &str, verbs: &[String]) -> bool {
    let is_event = ["", "events.k8s.io"].contains(&group)
        && resource == "events"
        && verbs.iter().all(|verb| verb == "create" || verb == "patch");
    let base = resource
        .strip_suffix("/status")
        .or(resource.strip_suffix("/finalizers"));
    let base = base.unwrap_or(resource);
    is_event || covered.contains(&(group.to_owned(), base.to_owned()))
}

impl Rule {
    fn of(rule: &Value) -> Self {
        let list = |name: &str| {
            let list = rule.get(name).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Self {
            groups: list("apiGroups"),
            resources: list("resources"),
            verbs: list("verbs"),
            names: list("resourceNames"),
            urls: list("nonResourceURLs"),
        }
    }

    fn of_marker(marker: &BTreeMap<String, String>) -> Self {
        let list = |name: &str| {
            let text = marker.get(name).map(String::as_str);
            let parts = text.map(|text| text.split(';')).into_iter().flatten();
            parts.map(|it| it.trim().to_owned()).collect::<Vec<_>>()
        };
        let core = |group: String| match group.as_str() {
            "core" => String::new(),
            _ => group,
        };
        Self {
            groups: list("groups").into_iter().map(core).collect(),
            resources: list("resources"),
            verbs: list("verbs"),
            names: list("resourceNames"),
            urls: list("urls"),
        }
    }
}

/// Returns a call of `Operator::rule` in a chain, as rustfmt formats it.
fn link(grant: &Grant, resources: &[String]) -> String {
    let Grant {
        group,
        verbs,
        names,
        is_cluster,
    } = grant;
    let mut suffixes = Vec::new();
    if !names.is_empty() {
        suffixes.push(format!(".named({})", array(names, 16)));
    }
    if *is_cluster {
        suffixes.push(".cluster_scoped()".to_owned());
    }
    let flat = format!("{group:?}, {}, {}", flat(resources), self::flat(verbs));
    let is_flat = flat.len() <= WIDTH;
    let call = format!("PolicyRule::new({flat})");
    let broken = |indent: usize| {
        let space = " ".repeat(indent);
        let (resources, verbs) = (array(resources, indent + 4), array(verbs, indent + 4));
        format!(
            "PolicyRule::new(\n{space}    {group:?},\n{space}    {resources},\n{space}    {verbs},\n{space})"
        )
    };
    let whole = format!("{call}{}", suffixes.concat());
    match suffixes.len() {
        0 if whole.len() <= WIDTH => format!(".rule({whole})"),
        0 => format!(".rule({})", broken(8)),
        1 if is_flat && whole.len() + 15 <= COLUMNS => format!(".rule({whole})"),
        1 if is_flat && whole.len() + 13 <= COLUMNS => {
            format!(".rule(\n            {whole},\n        )")
        }
        _ if whole.len() <= WIDTH => format!(".rule({whole})"),
        _ if is_flat => {
            let suffixes = suffixes.join("\n                ");
            format!(".rule(\n            {call}\n                {suffixes},\n        )")
        }
        _ => {
            let suffixes = suffixes.join("\n            ");
            format!(
                ".rule(\n            {}\n            {suffixes},\n        )",
                broken(12)
            )
        }
    }
}

fn flat(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", items.join(", "))
}

/// Returns a list of strings at an indentation.
fn array(items: &[String], indent: usize) -> String {
    let flat = flat(items);
    if flat.len() <= WIDTH + 2 && flat.len() - 2 <= WIDTH {
        return flat;
    }
    let items: Vec<String> = items.iter().map(|it| format!("{it:?}")).collect();
    let space = " ".repeat(indent + 4);
    let end = " ".repeat(indent);
    if items.iter().any(|it| it.len() > SHORT) {
        let lines: String = items.iter().map(|it| format!("{space}{it},\n")).collect();
        return format!("[\n{lines}{end}]");
    }
    let mut lines = vec![String::new()];
    for item in items {
        let last = lines.last().map_or(0, String::len);
        if last > 0 && indent + 4 + last + item.len() + 2 > COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            *line += &format!("{item},");
        }
    }
    let lines: String = lines
        .iter()
        .map(|line| format!("{space}{line}\n"))
        .collect();
    format!("[\n{lines}{end}]")
}
