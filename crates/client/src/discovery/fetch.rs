//! The requests to the discovery endpoints of the server.

use futures::StreamExt;
use http::{Method, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, APIVersions};
use kube::client::{APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery};
use opkit_apimachinery::identity::GroupVersion;
use serde_json::Value;

use super::{ApiResource, Discovered, DiscoveryError, GroupFailure};
use crate::{RequestError, RestClient, one_line};

/// Accepted formats in order of preference. Servers without aggregated discovery respond in the
/// last format.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Maximum number of concurrent requests to a server without aggregated discovery.
const CONCURRENT_REQUESTS_MAX: usize = 8;

/// Reads all resources of the server, the core group first.
pub(super) async fn fetch_all(rest: &RestClient) -> Result<Discovered, DiscoveryError> {
    let mut found = Discovered::default();
    for root in ["/api", "/apis"] {
        let request = rest.request(Method::GET, root);
        let response: Result<Value, RequestError> =
            request.header(header::ACCEPT, ACCEPT).typed().await;
        let response = match response {
            // A server may have no core group.
            Err(error) if error.is_not_found() && root == "/api" => continue,
            response => response.map_err(|cause| DiscoveryError::Request(Box::new(cause)))?,
        };
        let kind = response.get("kind").and_then(Value::as_str);
        if kind == Some("APIGroupDiscoveryList") {
            match serde_json::from_value::<APIGroupDiscoveryList>(response) {
                Ok(list) => list
                    .items
                    .into_iter()
                    .for_each(|it| add_group(it, &mut found)),
                Err(cause) => return Err(decode_error(rest, root, cause)),
            }
        } else {
            let versions =
                group_versions(response).map_err(|cause| decode_error(rest, root, cause))?;
            fetch_versions(rest, versions, &mut found).await;
        }
    }
    Ok(found)
}

fn decode_error(rest: &RestClient, root: &str, cause: serde_json::Error) -> DiscoveryError {
    let call = rest.request(Method::GET, root).into_call();
    DiscoveryError::Request(Box::new(RequestError::Decode { call, cause }))
}

fn add_group(group: APIGroupDiscovery, found: &mut Discovered) {
    let name = group.metadata.and_then(|it| it.name).unwrap_or_default();
    for version in group.versions {
        let number = version.version.unwrap_or_default();
        let group_version = GroupVersion::new(name.as_str(), number.as_str()).to_string();
        if version.freshness.as_deref() == Some("Stale") {
            found.failures.push(GroupFailure {
                group_version: group_version.clone(),
                error: "its server cannot be reached; the known resources may be outdated"
                    .to_owned(),
            });
        }
        found.group_versions.push(group_version);
        let resources = version.resources.into_iter();
        found
            .resources
            .extend(resources.filter_map(|it| resource(it, &name, &number)));
    }
}

/// Converts a resource. Returns `None` for a resource without a kind, which only groups
/// subresources.
fn resource(it: APIResourceDiscovery, group: &str, version: &str) -> Option<ApiResource> {
    let kind = it.response_kind?;
    let plural = it.resource?;
    let subresources = it.subresources.into_iter();
    Some(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.kind.filter(|kind| !kind.is_empty())?,
        plural,
        singular: it.singular_resource.unwrap_or_default(),
        short_names: it.short_names,
        categories: it.categories,
        namespaced: it.scope.as_deref() == Some("Namespaced"),
        verbs: it.verbs,
        subresources: subresources.filter_map(|it| it.subresource).collect(),
    })
}

/// Returns the groups and versions in the response to `/apis` or `/api`. The preferred version of
/// each group comes first.
fn group_versions(response: Value) -> Result<Vec<GroupVersion>, serde_json::Error> {
    if response.get("kind").and_then(Value::as_str) == Some("APIVersions") {
        let versions: APIVersions = serde_json::from_value(response)?;
        let versions = versions.versions.into_iter();
        return Ok(versions.map(|it| GroupVersion::new("", it)).collect());
    }
    let groups: APIGroupList = serde_json::from_value(response)?;
    let mut found = Vec::new();
    for group in groups.groups {
        let preferred = group.preferred_version.map(|it| it.version);
        let mut versions: Vec<String> = group.versions.into_iter().map(|it| it.version).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        let versions = versions.into_iter();
        found.extend(versions.map(|it| GroupVersion::new(group.name.as_str(), it)));
    }
    Ok(found)
}

async fn fetch_versions(rest: &RestClient, versions: Vec<GroupVersion>, found: &mut Discovered) {
    let requests = versions.into_iter().map(|it| async move {
        let list = match it.path() {
            Ok(path) => {
                let request = rest.request(Method::GET, &path);
                let request = request.header(header::ACCEPT, "application/json");
                let list = request.typed::<APIResourceList>().await;
                list.map_err(|error| one_line(&error))
            }
            Err(error) => Err(error.to_string()),
        };
        (it, list)
    });
    let mut responses = futures::stream::iter(requests).buffered(CONCURRENT_REQUESTS_MAX);
    while let Some((it, list)) = responses.next().await {
        let group_version = it.to_string();
        found.group_versions.push(group_version.clone());
        match list {
            Ok(list) => found
                .resources
                .extend(resources(list, &it.group, &it.version)),
            Err(error) => found.failures.push(GroupFailure {
                group_version,
                error,
            }),
        }
    }
}

/// Converts the resources of one version. Each subresource, which is a separate item in `list`, is
/// added to its resource.
fn resources(list: APIResourceList, group: &str, version: &str) -> Vec<ApiResource> {
    let mut found: Vec<ApiResource> = Vec::new();
    let mut subresources = Vec::new();
    for it in list.resources {
        match it.name.split_once('/') {
            Some((plural, subresource)) => {
                subresources.push((plural.to_owned(), subresource.to_owned()))
            }
            None => found.push(ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: it.kind,
                plural: it.name,
                singular: it.singular_name,
                short_names: it.short_names.unwrap_or_default(),
                categories: it.categories.unwrap_or_default(),
                namespaced: it.namespaced,
                verbs: it.verbs,
                subresources: Vec::new(),
            }),
        }
    }
    for (plural, subresource) in subresources {
        if let Some(resource) = found.iter_mut().find(|it| it.plural == plural) {
            resource.subresources.push(subresource);
        }
    }
    found
}
