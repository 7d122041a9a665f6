//! The documents with which an aggregated API server describes itself: its discovery document, and
//! its index of OpenAPI documents.

use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use serde_json::{Map, Value, json};

use super::{Route, availability, proxy};
use crate::authentication::Identity;
use crate::object;
use crate::registry::Registry;

/// Time limit for each request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a document, in bytes.
const LENGTH_MAX: usize = 16 * 1024 * 1024;
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
const JSON: &str = "application/json";

/// The documents of one group version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Documents {
    /// The resources in the form of aggregated discovery. `None` if the API server has not
    /// described them yet.
    pub(crate) resources: Option<Vec<Value>>,
    /// The URL of the OpenAPI v3 document. `None` if the API server has none.
    pub(crate) openapi_url: Option<String>,
}

/// Downloads the documents of a group version. A document that cannot be downloaded is left out.
pub(super) async fn download(registry: &Registry, route: &Route) -> Documents {
    let fetch = async |path: &str, accept, user: &Identity| {
        let fetched = tokio::time::timeout(TIMEOUT, fetch(registry, route, path, accept, user));
        match fetched.await {
            Ok(Ok(document)) => Some(document),
            Ok(Err(error)) => {
                tracing::debug!(api_service = route.name(), path, error, "no document");
                None
            }
            Err(_) => None,
        }
    };
    let user = availability::aggregator_user();
    let aggregated = fetch("/apis", AGGREGATED, &user).await;
    let mut resources = aggregated.and_then(|document| in_aggregated(&document, route));
    if resources.is_none() {
        let list = fetch(&route.path(), JSON, &user).await;
        resources = list.map(|list| from_resource_list(&list, route));
    }
    let user = Identity {
        user: "system:aggregator".to_owned(),
        ..Identity::default()
    };
    let index = fetch("/openapi/v3", JSON, &user).await;
    let key = route.path().trim_start_matches('/').to_owned();
    let openapi_url = index.and_then(|index| {
        let url = object::text(&index, &["paths", &key, "serverRelativeURL"]);
        (!url.is_empty()).then(|| url.to_owned())
    });
    Documents {
        resources,
        openapi_url,
    }
}

async fn fetch(
    registry: &Registry,
    route: &Route,
    path: &str,
    accept: &'static str,
    user: &Identity,
) -> Result<Value, String> {
    let response = proxy::get(registry, route, path, accept, user).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), LENGTH_MAX);
    let body = body.collect().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("the response is {status}"));
    }
    serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())
}

/// Returns the resources of the route's group version in a document of aggregated discovery.
/// Returns `None` if the document is not of this form or does not have the group version.
fn in_aggregated(document: &Value, route: &Route) -> Option<Vec<Value>> {
    let mut groups = object::items(document, &["items"]).iter();
    let group = groups.find(|group| object::name(group) == route.group)?;
    let mut versions = object::items(group, &["versions"]).iter();
    let version = versions.find(|version| object::text(version, &["version"]) == route.version)?;
    Some(object::items(version, &["resources"]).to_vec())
}

/// Returns the resources of an `APIResourceList` in the form of aggregated discovery.
fn from_resource_list(list: &Value, route: &Route) -> Vec<Value> {
    let mut resources: Vec<Map<String, Value>> = Vec::new();
    for resource in object::items(list, &["resources"]) {
        let text = |field: &str| object::text(resource, &[field]);
        let or_own = |field: &str, own: &str| match text(field) {
            "" => own.to_owned(),
            given => given.to_owned(),
        };
        let response_kind = json!({
            "group": or_own("group", &route.group),
            "version": or_own("version", &route.version),
            "kind": text("kind"),
        });
        let mut described = Map::new();
        let name = text("name");
        let Some((parent, subresource)) = name.split_once('/') else {
            described.insert("resource".to_owned(), json!(name));
            described.insert("responseKind".to_owned(), response_kind);
            let is_namespaced = object::at(resource, &["namespaced"]) == &json!(true);
            let scope = if is_namespaced {
                "Namespaced"
            } else {
                "Cluster"
            };
            described.insert("scope".to_owned(), json!(scope));
            described.insert("singularResource".to_owned(), json!(text("singularName")));
            for field in ["verbs", "shortNames", "categories"] {
                if let Some(value) = resource.get(field) {
                    described.insert(field.to_owned(), value.clone());
                }
            }
            resources.push(described);
            continue;
        };
        described.insert("subresource".to_owned(), json!(subresource));
        described.insert("responseKind".to_owned(), response_kind);
        if let Some(verbs) = resource.get("verbs") {
            described.insert("verbs".to_owned(), verbs.clone());
        }
        let is_parent = |known: &&mut Map<String, Value>| {
            known.get("resource").and_then(Value::as_str) == Some(parent)
        };
        if let Some(known) = resources.iter_mut().find(is_parent) {
            let subresources = known.entry("subresources").or_insert_with(|| json!([]));
            if let Some(subresources) = subresources.as_array_mut() {
                subresources.push(Value::Object(described));
            }
        }
    }
    resources.into_iter().map(Value::Object).collect()
}
