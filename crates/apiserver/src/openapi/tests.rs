use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Cache;
use crate::crd::{SUBRESOURCE_VERBS, VERBS};
use crate::kinds::{Catalog, Kind, SchemaSource, Subresource};

/// Returns what a real server publishes for a CRD and for `apps/v1`.
fn fixture() -> Value {
    serde_json::from_str(include_str!("fixtures/openapi.json")).unwrap()
}

fn robots() -> Kind {
    let sub = |name: &str, response| Subresource {
        name: name.to_owned(),
        verbs: SUBRESOURCE_VERBS.to_vec(),
        response,
        scale: None,
    };
    let scale = (
        "autoscaling".to_owned(),
        "v1".to_owned(),
        "Scale".to_owned(),
    );
    Kind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Robot".to_owned(),
        plural: "robots".to_owned(),
        singular: "robot".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: VERBS.to_vec(),
        subresources: vec![sub("status", None), sub("scale", Some(scale))],
        columns: Vec::new(),
        deprecation: None,
        schema: SchemaSource::Custom(Arc::new(fixture()["sent"].clone())),
        custom: None,
    }
}

/// Returns the document at a path from an empty cache.
fn get(path: &str, catalog: &Catalog) -> Option<Value> {
    get_from(&Cache::default(), path, catalog)
}

fn get_from(cache: &Cache, path: &str, catalog: &Catalog) -> Option<Value> {
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    let document = cache.respond(&segments, catalog, &[])?;
    Some((*document).clone())
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

/// Returns method and operation ID of each path.
fn operations(document: &Value) -> BTreeMap<String, BTreeMap<String, Value>> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .map(|(path, item)| {
            let methods = item
                .as_object()
                .unwrap()
                .iter()
                .filter(|(method, _)| *method != "parameters");
            let ids = methods
                .map(|(method, op)| (method.clone(), op["operationId"].clone()))
                .collect();
            (path.clone(), ids)
        })
        .collect()
}

#[test]
fn a_custom_kind_is_published_as_by_a_real_server() {
    let catalog = Catalog::builtin();
    catalog.insert(robots());
    let document = get("/openapi/v3/apis/example.com/v1", &catalog).unwrap();
    let fixture = fixture();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["com.example.v1.Robot"], fixture["published"]);
    assert_eq!(json!(keys(schemas)), fixture["schemas"]);
    let ours: BTreeMap<String, Vec<String>> = operations(&document)
        .into_iter()
        .map(|(path, methods)| (path, methods.into_keys().collect()))
        .collect();
    let real: BTreeMap<String, Vec<String>> = fixture["paths"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(path, methods)| (path.clone(), keys(methods).into_iter().cloned().collect()))
        .collect();
    assert_eq!(ours, real);
}

#[test]
fn a_builtin_group_has_the_paths_and_schemas_of_a_real_server() {
    let document = get("/openapi/v3/apis/apps/v1", &Catalog::builtin()).unwrap();
    let fixture = fixture();
    let ours: BTreeMap<String, Vec<String>> = operations(&document)
        .into_iter()
        .map(|(path, methods)| (path, methods.into_keys().collect()))
        .collect();
    assert_eq!(json!(ours), fixture["appsPaths"]);
    let names = keys(&document["components"]["schemas"]);
    for name in fixture["appsSchemas"].as_array().unwrap() {
        let is_of_watch_paths = name.as_str().unwrap().ends_with("WatchEvent")
            || name.as_str().unwrap().ends_with("RawExtension");
        assert!(
            is_of_watch_paths || names.contains(&&name.as_str().unwrap().to_owned()),
            "{name}"
        );
    }
}

/// kubectl sends `fieldValidation` only if it finds these two in the document.
#[test]
fn patches_name_their_kind_and_field_validation() {
    let catalog = Catalog::builtin();
    catalog.insert(robots());
    let check = |document: &str, path: &str, gvk: Value| {
        let document = get(document, &catalog).unwrap();
        let patch = &document["paths"][path]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"], gvk, "{path}");
        let parameters = patch["parameters"].as_array().unwrap().iter();
        let mut names = parameters
            .filter(|p| p["in"] == "query")
            .map(|p| p["name"].clone());
        assert!(names.any(|name| name == "fieldValidation"), "{path}");
    };
    check(
        "/openapi/v3/api/v1",
        "/api/v1/namespaces/{name}",
        json!({"group": "", "version": "v1", "kind": "Namespace"}),
    );
    check(
        "/openapi/v3/apis/example.com/v1?hash=old",
        "/apis/example.com/v1/namespaces/{namespace}/robots/{name}",
        json!({"group": "example.com", "version": "v1", "kind": "Robot"}),
    );
}

#[test]
fn every_document_is_closed_and_in_the_index() {
    let catalog = Catalog::builtin();
    catalog.insert(robots());
    let index = get("/openapi/v3", &catalog).unwrap();
    let entries = index["paths"].as_object().unwrap();
    assert!(entries.contains_key("api/v1") && entries.contains_key("apis/example.com/v1"));
    for entry in entries.values() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        assert!(url.contains("?hash="), "{url}");
        let document = get(url, &catalog).unwrap();
        let mut wanted = Vec::new();
        super::document::references(&document, &mut wanted);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in wanted {
            assert!(schemas.contains_key(&name), "{url}: {name}");
        }
    }
    assert!(get("/openapi/v3/apis/example.com/v9", &catalog).is_none());
    assert!(get("/openapi/v2", &catalog).is_none());
}

#[test]
fn documents_and_hashes_follow_the_catalog() {
    let (cache, catalog) = (Cache::default(), Catalog::builtin());
    let get = |path: &str, catalog: &Catalog| get_from(&cache, path, catalog);
    let url = |path: &str| get("/openapi/v3", &catalog).unwrap()["paths"][path].clone();
    assert!(get("/openapi/v3/apis/example.com/v1", &catalog).is_none());
    catalog.insert(robots());
    let (first, apps) = (url("apis/example.com/v1"), url("apis/apps/v1"));
    let document = get("/openapi/v3/apis/example.com/v1", &catalog).unwrap();
    assert!(
        document["components"]["schemas"]["com.example.v1.Robot"]["properties"]["spec"].is_object()
    );
    let mut changed = robots();
    changed.schema = SchemaSource::Custom(Arc::new(json!({"type": "object"})));
    catalog.insert(changed);
    assert_ne!(url("apis/example.com/v1"), first);
    assert_eq!(url("apis/apps/v1"), apps);
    let document = get("/openapi/v3/apis/example.com/v1", &catalog).unwrap();
    assert!(
        document["components"]["schemas"]["com.example.v1.Robot"]["properties"]["spec"].is_null()
    );
    catalog.remove("example.com", "robots");
    assert!(url("apis/example.com/v1").is_null());
}
