use std::sync::Arc;

use serde_json::{Value, json};

use super::respond;
use crate::crd::{SUBRESOURCE_VERBS, VERBS};
use crate::kinds::{Catalog, Kind, SchemaSource, Subresource};

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const KUBECTL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                       application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                       application/json";

/// Returns the built-in kinds, and a custom kind in two versions.
fn catalog() -> Catalog {
    let strings = |list: &[&str]| {
        list.iter()
            .map(|&item| item.to_owned())
            .collect::<Vec<String>>()
    };
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
    let catalog = Catalog::builtin();
    for (version, subresources) in [
        ("v1", vec![sub("status", None), sub("scale", Some(scale))]),
        ("v1alpha1", Vec::new()),
    ] {
        catalog.insert(Kind {
            group: "example.com".to_owned(),
            version: version.to_owned(),
            kind: "Robot".to_owned(),
            plural: "robots".to_owned(),
            singular: "robot".to_owned(),
            short_names: strings(&["rb"]),
            categories: strings(&["all"]),
            namespaced: true,
            verbs: VERBS.to_vec(),
            subresources,
            columns: Vec::new(),
            deprecation: None,
            schema: SchemaSource::Custom(Arc::new(json!({"type": "object"}))),
            custom: None,
        });
    }
    catalog
}

fn get(path: &str, accept: &str) -> Option<(String, Value)> {
    let segments: Vec<&str> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    respond(&segments, accept, &catalog(), &[])
}

/// The fixtures are responses of a real server with the same CRD.
#[test]
fn responses_are_those_of_a_real_server() {
    let fixtures: Value = serde_json::from_str(include_str!("fixtures/discovery.json")).unwrap();
    for (path, expected) in fixtures["legacy"].as_object().unwrap() {
        let (content_type, body) =
            get(path, "application/json").unwrap_or_else(|| panic!("{path}"));
        assert_eq!(content_type, "application/json");
        assert_eq!(body, *expected, "{path}");
    }
    for (path, expected) in fixtures["aggregated"].as_object().unwrap() {
        let (content_type, body) = get(path, KUBECTL).unwrap();
        assert_eq!(content_type, V2);
        assert_eq!(body, *expected, "{path}");
    }
}

#[test]
fn the_accept_header_selects_the_representation() {
    let check = |accept: &str, kind: &str, api_version: Option<&str>| {
        let (_, body) = get("/apis", accept).unwrap();
        assert_eq!(body["kind"], kind, "{accept}");
        assert_eq!(
            body["apiVersion"].as_str(),
            api_version.or(Some("v1")),
            "{accept}"
        );
    };
    let list = "APIGroupDiscoveryList";
    check(KUBECTL, list, Some("apidiscovery.k8s.io/v2"));
    check(
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
        list,
        Some("apidiscovery.k8s.io/v2beta1"),
    );
    check(
        "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
         application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer",
        list,
        Some("apidiscovery.k8s.io/v2"),
    );
    check("application/json", "APIGroupList", None);
    check("", "APIGroupList", None);
    check("*/*", "APIGroupList", None);
}

#[test]
fn other_paths_are_not_discovery() {
    for path in [
        "/",
        "/api/v2",
        "/apis/nothing",
        "/apis/apps/v9",
        "/api/v1/pods",
        "/apis/apps/v1/x",
    ] {
        assert!(get(path, "*/*").is_none(), "{path}");
    }
}
