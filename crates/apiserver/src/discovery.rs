//! Discovery: the groups, versions and resources that this server serves.
//!
//! The responses at `/api`, `/apis` and the paths below are built from the catalog of served kinds.
//! The legacy form needs one request for each group version. The aggregated form, which a client
//! requests in its `Accept` header, needs two requests in total. The group versions of aggregated
//! API servers are part of both.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use opkit_apimachinery::identity::compare_versions;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::aggregator::Route;
use crate::kinds::{Catalog, Kind, Subresource, Verb};
use crate::object;

#[cfg(test)]
mod tests;

/// A group, with its preferred version first.
struct Group {
    name: String,
    versions: Vec<Version>,
}

struct Version {
    name: String,
    group_priority: i64,
    priority: i64,
    served_by: ServedBy,
}

enum ServedBy {
    /// This server.
    Local(Vec<Arc<Kind>>),
    /// An aggregated API server.
    Remote(Arc<Route>),
}

/// Returns content type and body of the response to a GET of a discovery path. `path` is the path
/// split at its slashes. Returns `None` if the path is not a discovery path, or if nothing is
/// served at the path.
pub(crate) fn respond(
    path: &[&str],
    accept: &str,
    catalog: &Catalog,
    routes: &[Arc<Route>],
) -> Option<(String, Value)> {
    let json = |body| Some(("application/json".to_owned(), body));
    match *path {
        ["api"] | ["apis"] => {
            let core = path == ["api"];
            match aggregated_version(accept) {
                Some(version) => Some((
                    format!(
                        "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                    ),
                    aggregated(version, core, catalog, routes),
                )),
                None if core => json(api_versions(catalog)),
                None => json(group_list(catalog, routes)),
            }
        }
        ["api", version] => json(resource_list("", version, catalog)?),
        ["apis", group] => {
            let mut groups = groups(catalog, routes).into_iter();
            let mut body = api_group(&groups.find(|known| known.name == *group)?);
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

/// Returns all groups without the core group, by priority and name. The preferred version of each
/// group comes first.
fn groups(catalog: &Catalog, routes: &[Arc<Route>]) -> Vec<Group> {
    let mut by_version: BTreeMap<(String, String), Vec<Arc<Kind>>> = BTreeMap::new();
    for kind in catalog.all() {
        let key = (kind.group.clone(), kind.version.clone());
        by_version.entry(key).or_default().push(kind);
    }
    let mut groups: BTreeMap<String, BTreeMap<String, Version>> = BTreeMap::new();
    for ((group, name), kinds) in by_version {
        let (group_priority, priority) = Catalog::priorities(&group, &name);
        let version = Version {
            name: name.clone(),
            group_priority,
            priority,
            served_by: ServedBy::Local(kinds),
        };
        groups.entry(group).or_default().insert(name, version);
    }
    for route in routes {
        let version = Version {
            name: route.version.clone(),
            group_priority: route.group_priority,
            priority: route.version_priority,
            served_by: ServedBy::Remote(route.clone()),
        };
        let versions = groups.entry(route.group.clone()).or_default();
        versions.insert(route.version.clone(), version);
    }
    groups.remove("");
    let groups = groups.into_iter().map(|(name, versions)| {
        let mut versions: Vec<Version> = versions.into_values().collect();
        versions.sort_by(|a, b| {
            let by_priority = b.priority.cmp(&a.priority);
            by_priority.then_with(|| compare_versions(&b.name, &a.name))
        });
        Group { name, versions }
    });
    let mut groups: Vec<Group> = groups.collect();
    groups.sort_by_cached_key(|group| {
        let priorities = group.versions.iter().map(|version| version.group_priority);
        (Reverse(priorities.max()), group.name.clone())
    });
    groups
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

fn group_list(catalog: &Catalog, routes: &[Arc<Route>]) -> Value {
    let groups = groups(catalog, routes);
    let groups: Vec<Value> = groups.iter().map(api_group).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn api_group(group: &Group) -> Value {
    let name = &group.name;
    let versions = group.versions.iter().map(|version| {
        let version = &version.name;
        json!({"groupVersion": format!("{name}/{version}"), "version": version})
    });
    let versions: Vec<Value> = versions.collect();
    let preferred = versions.first().cloned();
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
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
        if kind.verbs.contains(&Verb::Watch) {
            put(
                &mut resource,
                "storageVersionHash",
                json!(storage_hash(kind)),
            );
        }
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
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": first.api_version(),
        "resources": resources,
    });
    if !group.is_empty() {
        // As on a real server, the list of the core group has no version of its own.
        put(&mut list, "apiVersion", json!("v1"));
    }
    Some(list)
}

/// Returns the hash of the group, version and kind in which Kubernetes stores the objects of a
/// kind.
fn storage_hash(kind: &Kind) -> String {
    let (group, version) = match kind.group.as_str() {
        "events.k8s.io" => ("", "v1"),
        "apiextensions.k8s.io" => ("apiextensions.k8s.io", "v1beta1"),
        group => (group, kind.version.as_str()),
    };
    let name = match kind.versions() {
        // A custom resource has the same hash in all versions.
        Some(versions) => format!("{}/{}", versions.storage, kind.kind),
        None => format!("{group}/{version}/{}", kind.kind),
    };
    let digest = digest(&SHA256, name.as_bytes());
    let start = digest.as_ref().get(..8).unwrap_or_default();
    STANDARD.encode(start)
}

fn aggregated(version: &str, core: bool, catalog: &Catalog, routes: &[Arc<Route>]) -> Value {
    let items: Vec<Value> = if core {
        let kinds = kinds_of("", "v1", catalog);
        vec![json!({"metadata": {}, "versions": [aggregated_version_of("v1", &kinds)]})]
    } else {
        let groups = groups(catalog, routes).into_iter();
        groups
            .map(|group| {
                let versions = group.versions.iter();
                let versions: Vec<Value> = versions
                    .map(|version| match &version.served_by {
                        ServedBy::Local(kinds) => aggregated_version_of(&version.name, kinds),
                        ServedBy::Remote(route) => remote_version(route),
                    })
                    .collect();
                json!({"metadata": {"name": group.name}, "versions": versions})
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

/// Returns a group version of an aggregated API server. The group version is stale if its resources
/// are not known.
fn remote_version(route: &Route) -> Value {
    let mut version = json!({"version": route.version, "freshness": "Stale"});
    if let Some(resources) = &route.documents.resources {
        object::set_field(&mut version, "resources", json!(resources));
        object::set_field(&mut version, "freshness", json!("Current"));
    }
    version
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
