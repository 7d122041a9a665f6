use std::sync::Arc;

use opkit_apimachinery::identity::ResourcePath;
use serde_json::{Value, json};

use super::{Catalog, Definitions, Kind, NotServed, SchemaSource, builtin, sections};

#[test]
fn builtin_kinds_have_definitions() {
    let catalog = Catalog::builtin();
    let definitions = Definitions::builtin();
    assert!(catalog.all().len() > 60);
    for kind in catalog.all() {
        let SchemaSource::Definition(name) = &kind.schema else {
            panic!("{kind:?}")
        };
        assert!(definitions.raw(name).is_some(), "{name}");
    }
    let deployment = catalog.get("apps", "v1", "deployments").unwrap();
    assert_eq!(deployment.short_names, ["deploy"]);
    let scale = deployment.subresource("scale").unwrap();
    assert_eq!(
        scale.response,
        Some(("autoscaling".into(), "v1".into(), "Scale".into()))
    );
    assert_eq!(deployment.subresource("status").unwrap().response, None);
}

#[test]
fn every_definition_parses_and_refers_to_known_ones() {
    let definitions = Definitions::builtin();
    for name in definitions.names() {
        let raw = definitions.raw(name).unwrap();
        assert!(definitions.value(name).is_some(), "{name}");
        for part in raw.split("#/components/schemas/").skip(1) {
            let referred = part.split('"').next().unwrap();
            assert!(
                definitions.raw(referred).is_some(),
                "{name} refers to {referred}"
            );
        }
    }
    assert!(Arc::ptr_eq(
        &definitions.schema("io.k8s.api.core.v1.Pod").unwrap(),
        &definitions.schema("io.k8s.api.core.v1.Pod").unwrap(),
    ));
    assert!(definitions.value("io.k8s.api.core.v1.Nothing").is_none());
}

#[test]
fn generation_follows_changes() {
    let catalog = Catalog::builtin();
    let pods = catalog.get("", "v1", "pods").unwrap();
    assert_eq!(catalog.generation(), 0);
    catalog.insert((*pods).clone());
    catalog.remove("", "pods");
    assert_eq!(catalog.generation(), 2);
    assert!(catalog.get("", "v1", "pods").is_none());
}

#[test]
fn api_services_are_those_of_the_kinds() {
    let kinds = Catalog::builtin().all();
    let mut served: Vec<(&str, &str)> = kinds
        .iter()
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .filter(|(group, _)| *group != "apiregistration.k8s.io")
        .collect();
    served.dedup();
    let mut registered: Vec<(&str, &str)> = Catalog::builtin_api_services().collect();
    registered.sort_unstable();
    assert_eq!(registered, served);
}

/// A server starts in a few milliseconds, also in a debug build; the limit allows for a busy
/// machine.
#[test]
fn startup_is_quick() {
    let start = std::time::SystemTime::now();
    let kinds = Catalog::builtin().all().len();
    let definitions = Definitions::builtin().names().count();
    let elapsed = start.elapsed().unwrap();
    assert!(
        elapsed.as_millis() < 500,
        "{kinds} kinds, {definitions} definitions: {elapsed:?}"
    );
}

/// Each section of a data file that is written by hand must be a resource of the real server, and
/// each line of `cells.txt` one of its columns.
#[test]
fn cells_and_selectors_are_of_known_resources() {
    let catalog = Catalog::builtin();
    let find = |resource: &str| {
        let (api_version, plural) = resource.split_once(' ').unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        catalog
            .get(group, version, plural)
            .unwrap_or_else(|| panic!("{resource}"))
    };
    for (resource, lines) in builtin::cells() {
        let kind = find(resource);
        for line in lines {
            let (name, _) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("{resource}: {line}"));
            assert!(
                kind.columns.iter().any(|column| column.name == name),
                "{resource}: {name}"
            );
        }
    }
    for resource in sections(include_str!("../../data/field-selectors.txt")).into_keys() {
        assert!(!find(resource).field_selectors().is_empty());
    }
}

#[test]
fn field_selectors_find_values() {
    let catalog = Catalog::builtin();
    let check = |plural: &str, object: Value, field: &str, value: &str| {
        let kind = catalog.get("", "v1", plural).unwrap();
        assert_eq!(kind.field_value(&object, field), value, "{plural} {field}");
    };
    let pod = json!({"metadata": {"name": "a"}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}});
    check("pods", pod.clone(), "metadata.name", "a");
    check("pods", pod.clone(), "status.podIP", "10.0.0.1");
    check("pods", pod.clone(), "spec.hostNetwork", "false");
    check("pods", pod, "spec.nodeName", "");
    check(
        "events",
        json!({"reportingComponent": "kubelet"}),
        "source",
        "kubelet",
    );
    assert!(
        catalog
            .get("", "v1", "pods")
            .unwrap()
            .field_selectors()
            .contains(&"status.phase")
    );
    assert!(
        catalog
            .get("apps", "v1", "deployments")
            .unwrap()
            .field_selectors()
            .is_empty()
    );
}

/// A path has one of two 404s: built-in groups have a handler for the whole group, custom resources
/// one for each resource.
#[test]
fn lookup_finds_the_kind_or_its_404() {
    let catalog = Catalog::builtin();
    catalog.insert(Kind {
        group: "example.com".into(),
        plural: "robots".into(),
        schema: SchemaSource::Custom(Arc::new(json!({"type": "object"}))),
        custom: None,
        ..(*catalog.get("", "v1", "pods").unwrap()).clone()
    });
    let check = |path: &str, expected: Result<&str, NotServed>| {
        let resource = ResourcePath::parse(path).unwrap();
        let found = catalog.lookup(&resource);
        let found = found.as_ref().map(|kind| kind.plural.as_str());
        assert_eq!(found, expected.as_ref().copied(), "{path}");
    };
    check("/api/v1/pods", Ok("pods"));
    check("/api/v1/namespaces/a/pods/b", Ok("pods"));
    check("/api/v1/pods/b", Err(NotServed::Resource));
    check("/api/v1/namespaces/a/nodes", Err(NotServed::Resource));
    check("/api/v1/things", Err(NotServed::Resource));
    check("/apis/apps/v9/deployments", Err(NotServed::Resource));
    check("/apis/example.com/v1/robots", Ok("robots"));
    check("/apis/example.com/v1/robots/b", Err(NotServed::Path));
    check("/apis/example.com/v1/things", Err(NotServed::Path));
    check("/apis/example.com/v2/robots", Err(NotServed::Path));
    check("/apis/example.org/v1/robots", Err(NotServed::Path));
}
