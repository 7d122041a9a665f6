//! Comparison of the permissions that two roles grant.

use serde::Serialize;
use serde_json::Value;

/// Effect of a change on the permissions that a role grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Permissions {
    /// The role grants more than before.
    Wider,
    /// The role grants less than before.
    Narrower,
    /// The role grants permissions that it did not grant, and lacks some that it granted.
    WiderAndNarrower,
}

/// One permission: a verb on a resource, an object or a path. `*` stands for all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Permission {
    group: String,
    resource: String,
    /// Name of the object; empty for all objects.
    name: String,
    /// Path that is not a resource; empty for a resource.
    path: String,
    verb: String,
}

impl Permission {
    /// Reports whether this permission includes another one.
    fn includes(&self, other: &Self) -> bool {
        let is = |own: &str, other: &str| own == "*" || own == other;
        let subresource = |own: &str, other: &str| {
            let own = own.strip_prefix("*/");
            let other = other.split_once('/');
            own.is_some_and(|own| other.is_some_and(|(_, other)| own == other))
        };
        let is_path = |own: &str, other: &str| match own.strip_suffix('*') {
            Some(prefix) => !other.is_empty() && other.starts_with(prefix),
            None => own == other,
        };
        is(&self.verb, &other.verb)
            && is(&self.group, &other.group)
            && (is(&self.resource, &other.resource) || subresource(&self.resource, &other.resource))
            && (self.name.is_empty() || self.name == other.name)
            && is_path(&self.path, &other.path)
    }
}

/// Returns how the permissions of a role change, or `None` if they stay the same.
pub(crate) fn compare(before: &Value, after: &Value) -> Option<Permissions> {
    let (before, after) = (permissions(before), permissions(after));
    let exceeds = |these: &[Permission], others: &[Permission]| {
        let is_included = |one| others.iter().any(|other: &Permission| other.includes(one));
        !these.iter().all(is_included)
    };
    match (exceeds(&after, &before), exceeds(&before, &after)) {
        (true, true) => Some(Permissions::WiderAndNarrower),
        (true, false) => Some(Permissions::Wider),
        (false, true) => Some(Permissions::Narrower),
        (false, false) => None,
    }
}

fn permissions(role: &Value) -> Vec<Permission> {
    let mut all = Vec::new();
    let rules = role.get("rules").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        let list = |field: &str| -> Vec<String> {
            let items = rule.get(field).and_then(Value::as_array);
            let items = items.into_iter().flatten().filter_map(Value::as_str);
            items.map(str::to_owned).collect()
        };
        let mut names = list("resourceNames");
        if names.is_empty() {
            names.push(String::new());
        }
        let (groups, resources, paths) = (
            list("apiGroups"),
            list("resources"),
            list("nonResourceURLs"),
        );
        for verb in list("verbs") {
            for path in &paths {
                all.push(Permission {
                    group: String::new(),
                    resource: String::new(),
                    name: String::new(),
                    path: path.clone(),
                    verb: verb.clone(),
                });
            }
            for (group, resource) in pairs(&groups, &resources) {
                for name in &names {
                    all.push(Permission {
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        path: String::new(),
                        verb: verb.clone(),
                    });
                }
            }
        }
    }
    all
}

fn pairs<'a>(
    groups: &'a [String],
    resources: &'a [String],
) -> impl Iterator<Item = (&'a String, &'a String)> {
    let pair = move |group| resources.iter().map(move |resource| (group, resource));
    groups.iter().flat_map(pair)
}

#[cfg(test)]
mod tests;
