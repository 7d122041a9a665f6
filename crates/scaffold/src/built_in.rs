//! Kinds of Kubernetes, which a project uses through k8s-openapi.

use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Group, version, kind, module of k8s-openapi, and scope of each kind that can be watched.
const KINDS: &str = include_str!("built_in/kinds.txt");

/// Kind of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuiltIn {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    /// Path of the type in k8s-openapi.
    pub(crate) path: &'static str,
    pub(crate) is_cluster: bool,
}

fn all() -> impl Iterator<Item = BuiltIn> {
    KINDS.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some(BuiltIn {
            group: words.next()?,
            version: words.next()?,
            kind: words.next()?,
            path: words.next()?,
            is_cluster: words.next() == Some("cluster"),
        })
    })
}

/// Reports whether a resource of Kubernetes is in no namespace.
pub(crate) fn is_cluster(group: &str, resource: &str) -> bool {
    let group = match group {
        "" => "core",
        group => group,
    };
    let is_resource = |it: &BuiltIn| crate::plural::regular(it.kind) == resource;
    all().any(|it| it.is_cluster && it.group == group && is_resource(&it))
}

/// Returns the kind of Kubernetes with this name, group and version. A group may be written as in
/// kubebuilder (`core`, `apps`, `networking`) or in full. If no version is given, the newest stable
/// one is returned.
///
/// # Errors
/// If several groups have the kind, and none is given.
pub(crate) fn find(
    kind: &str,
    group: Option<&str>,
    version: Option<&str>,
) -> Result<Option<BuiltIn>> {
    let is_group = |it: &BuiltIn| match group {
        None => true,
        Some("") => it.group == "core",
        Some(group) => it.group == group || it.group.split('.').next() == Some(group),
    };
    let found = all().filter(|it| it.kind == kind && is_group(it));
    let found = found.filter(|it| version.is_none_or(|version| it.version == version));
    let found: Vec<_> = found.collect();
    let mut groups: Vec<_> = found.iter().map(|it| it.group).collect();
    groups.dedup();
    if groups.len() > 1 {
        let reason = format!(
            "this kind is in the groups {}: add --group",
            groups.join(" and ")
        );
        return Err(Error::argument("--kind", kind, reason));
    }
    Ok(found
        .into_iter()
        .max_by_key(|it| crate::names::priority(it.version)))
}
