//! Discovery: the groups, versions and resources that this server serves.
//!
//! The responses at `/api`, `/apis` and the paths below are built from the catalog of served kinds.
//! The legacy form needs one request for each group version. The aggregated form, which a client
//! requests in its `Accept` header, needs two requests in total.

use std::collections::BTreeMap;
use std::sync::Arc;

use opkit_apimachinery::identity::compare_versions;
use serde_json::{Value, json};

use crate::kinds::{Catalog, Kind, Subresource};

#[cfg(test)]
mod tests;

/// Name and kinds of one version of a group.
type Version = (String, Vec<Arc<Kind>>);

/// Returns content type and body of the response to a GET of a discovery path. `path` is the path
/// split at its slashes. Returns `None` if the path is not a discovery path, or if nothing is
/// served at the path.
pub(crate) fn respond(path: &[&str], accept: &str, catalog: &Catalog) -> Option<(String, Value)> {
    let json = |body| Some(("application/json".to_owned(), body));
    match *path {
        ["api"] | ["apis"] => {
            let core = path == ["api"];
            match aggregated_version(accept) {
                Some(version) => Some((
                    format!(
                        "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                    ),
                    aggregated(version, core, catalog),
                )),
                None if core => json(api_versions(catalog)),
                None => json(group_list(catalog)),
            }
        }
        ["api", version] => json(resource_list("", version, catalog)?),
        ["apis", group] => {
            let (_, versions) = groups(catalog)
                .into_iter()
                .find(|(name, _)| name == group)?;
            let mut body = api_group(group, &versions);
            put(&mut body, "kind", json!("APIGroup"));
            put(&mut body, "apiVersion", json!("v1"));
            json(body)
        }
        ["apis", group, version] => json(resource_list(group, version, catalog)?),
        _ => None,
    }
}

/// Returns the version of the aggregated form that the `Accept` header prefers, or `None` if the
/// header prefers the legacy form. The media types in the header are tried in order, and unknown
/// media types are skipped.
fn aggregated_version(accept: &str) -> Option<&'static str> {
    let alternatives = accept.split(',').map(|alternative| {
        let mut parts = alternative.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: BTreeMap<&str, &str> =
            parts.filter_map(|part| part.split_once('=')).collect();
        (media, parameters)
    });
    for (media, parameters) in alternatives {
        if !matches!(media, "application/json" | "application/*" | "*/*") {
            continue;
        }
        let parameter = |name| parameters.get(name).copied().unwrap_or_default();
        match (parameter("as"), parameter("g"), parameter("v")) {
            ("", ..) => return None,
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => return Some("v2"),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => return Some("v2beta1"),
            _ => {}
        }
    }
    None
}

/// Returns all groups without the core group: built-in groups in the order of a real server, then
/// groups of CRDs by name. The preferred version of each group comes first.
fn groups(catalog: &Catalog) -> Vec<(String, Vec<Version>)> {
    let mut by_group: BTreeMap<String, BTreeMap<String, Vec<Arc<Kind>>>> = BTreeMap::new();
    for kind in catalog.all() {
        let versions = by_group.entry(kind.group.clone()).or_default();
        versions.entry(kind.version.clone()).or_default().push(kind);
    }
    by_group.remove("");
    let mut ordered = Vec::new();
    for group in Catalog::builtin_groups() {
        ordered.extend(by_group.remove_entry(group));
    }
    ordered.extend(by_group);
    ordered
        .into_iter()
        .map(|(group, versions)| {
            let mut versions: Vec<Version> = versions.into_iter().collect();
            versions.sort_by(|(a, _), (b, _)| compare_versions(b, a));
            (group, versions)
        })
        .collect()
}

/// Returns the kinds of one group version, sorted by plural name.
fn kinds_of(group: &str, version: &str, catalog: &Catalog) -> Vec<Arc<Kind>> {
    let kinds = catalog.all().into_iter();
    kinds
        .filter(|kind| kind.group == group && kind.version == version)
        .collect()
}

fn api_versions(catalog: &Catalog) -> Value {
    let core = catalog
        .all()
        .into_iter()
        .filter(|kind| kind.group.is_empty());
    let mut versions: Vec<String> = core.map(|kind| kind.version.clone()).collect();
    versions.dedup();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    })
}

fn group_list(catalog: &Catalog) -> Value {
    let groups: Vec<Value> = groups(catalog)
        .iter()
        .map(|(group, versions)| api_group(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn api_group(group: &str, versions: &[Version]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first().cloned();
    json!({"name": group, "versions": versions, "preferredVersion": preferred})
}

fn resource_list(group: &str, version: &str, catalog: &Catalog) -> Option<Value> {
    let kinds = kinds_of(group, version, catalog);
    let first = kinds.first()?;
    let mut resources = Vec::new();
    for kind in &kinds {
        let mut resource = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": kind.verbs,
        });
        add_names(&mut resource, kind);
        resources.push(resource);
        for subresource in &kind.subresources {
            let (group, version, name) = response(kind, subresource);
            let mut resource = json!({
                "name": format!("{}/{}", kind.plural, subresource.name),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": name,
                "verbs": subresource.verbs,
            });
            if (&group, &version) != (&kind.group, &kind.version) {
                put(&mut resource, "group", json!(group));
                put(&mut resource, "version", json!(version));
            }
            resources.push(resource);
        }
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": first.api_version(),
        "resources": resources,
    }))
}

fn aggregated(version: &str, core: bool, catalog: &Catalog) -> Value {
    let items: Vec<Value> = if core {
        let kinds = kinds_of("", "v1", catalog);
        vec![json!({"metadata": {}, "versions": [aggregated_version_of("v1", &kinds)]})]
    } else {
        let groups = groups(catalog).into_iter();
        groups
            .map(|(group, versions)| {
                let versions: Vec<Value> = versions
                    .iter()
                    .map(|(name, kinds)| aggregated_version_of(name, kinds))
                    .collect();
                json!({"metadata": {"name": group}, "versions": versions})
            })
            .collect()
    };
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_version_of(version: &str, kinds: &[Arc<Kind>]) -> Value {
    let resources: Vec<Value> = kinds.iter().map(|kind| aggregated_resource(kind)).collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn aggregated_resource(kind: &Kind) -> Value {
    let own = (kind.group.clone(), kind.version.clone(), kind.kind.clone());
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response_kind(kind, own),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    add_names(&mut resource, kind);
    if !kind.subresources.is_empty() {
        let subresources = kind.subresources.iter().map(|subresource| {
            json!({
                "subresource": subresource.name,
                "responseKind": response_kind(kind, response(kind, subresource)),
                "verbs": subresource.verbs,
            })
        });
        put(&mut resource, "subresources", subresources.collect());
    }
    resource
}

/// Returns the field `responseKind` of a resource or subresource. As on a real server, group and
/// version are empty if the resource is built-in and the response has the group and version of the
/// resource.
fn response_kind(kind: &Kind, (group, version, name): (String, String, String)) -> Value {
    let is_builtin = !kind.is_custom();
    if is_builtin && group == kind.group && version == kind.version {
        json!({"group": "", "version": "", "kind": name})
    } else {
        json!({"group": group, "version": version, "kind": name})
    }
}

/// Returns group, version and kind of the object that a subresource returns.
fn response(kind: &Kind, subresource: &Subresource) -> (String, String, String) {
    let own = || (kind.group.clone(), kind.version.clone(), kind.kind.clone());
    subresource.response.clone().unwrap_or_else(own)
}

fn add_names(resource: &mut Value, kind: &Kind) {
    for (field, names) in [
        ("shortNames", &kind.short_names),
        ("categories", &kind.categories),
    ] {
        if !names.is_empty() {
            put(resource, field, json!(names));
        }
    }
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}
