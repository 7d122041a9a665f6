use serde_json::{Value, json};

use super::{JSON, Source, TABLE, read};

/// Server with one kind of the core group and one with a scale.
struct Fake;

impl Source for Fake {
    fn get(&self, path: &str, accept: &str) -> anyhow::Result<Value> {
        Ok(match (path, accept) {
            ("/openapi/v3", JSON) => json!({"paths": {
                "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"},
                "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=2"},
            }}),
            ("/openapi/v3/api/v1?hash=1", JSON) => document("", "Binding", "core.Binding"),
            ("/openapi/v3/apis/apps/v1?hash=2", JSON) => {
                document("apps", "Deployment", "apps.Deployment")
            }
            ("/apis", JSON) => {
                json!({"groups": [{"name": "apps", "versions": [{"version": "v1"}]}]})
            }
            ("/apis/apiregistration.k8s.io/v1/apiservices", JSON) => json!({"items": [{
                "metadata": {"name": "v1.apps"},
                "spec": {"groupPriorityMinimum": 17800, "versionPriority": 15},
            }]}),
            ("/api/v1", JSON) => json!({"resources": [{
                "name": "bindings", "singularName": "binding", "namespaced": true, "kind": "Binding",
                "verbs": ["create"],
            }]}),
            ("/apis/apps/v1", JSON) => json!({"resources": [
                {"name": "deployments", "singularName": "deployment", "namespaced": true,
                 "kind": "Deployment", "verbs": ["list"], "shortNames": ["deploy"]},
                {"name": "deployments/scale", "singularName": "", "namespaced": true, "kind": "Scale",
                 "group": "autoscaling", "version": "v1", "verbs": ["get"]},
                {"name": "deployments/status", "singularName": "", "namespaced": true,
                 "kind": "Deployment", "verbs": ["get"]},
            ]}),
            ("/apis/apps/v1/deployments?limit=1", TABLE) => json!({"columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name", "description": "Its name.",
                 "priority": 0},
                {"name": "Images", "type": "string", "format": "", "description": "Images.",
                 "priority": 1},
            ]}),
            other => anyhow::bail!("unexpected request {other:?}"),
        })
    }
}

fn document(group: &str, kind: &str, name: &str) -> Value {
    json!({"components": {"schemas": {
        name: {"x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": kind}]},
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions": {
            "x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": "DeleteOptions"}],
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
            "properties": {"name": {"description": "Its name."}},
        },
    }}})
}

#[test]
fn reads_kinds_definitions_and_api_services() {
    let tables = read(&Fake).unwrap();
    let kinds: Value = serde_json::from_str(&tables.kinds).unwrap();
    assert_eq!(tables.kinds.lines().count(), 4, "one line per kind");
    assert_eq!(
        kinds,
        json!([
            {"group": "", "version": "v1", "kind": "Binding", "plural": "bindings",
             "singular": "binding", "namespaced": true, "verbs": ["create"],
             "schema": {"definition": "core.Binding"}},
            {"group": "apps", "version": "v1", "kind": "Deployment", "plural": "deployments",
             "singular": "deployment", "namespaced": true, "verbs": ["list"],
             "shortNames": ["deploy"],
             "subresources": [
                 {"name": "scale", "verbs": ["get"], "response": ["autoscaling", "v1", "Scale"]},
                 {"name": "status", "verbs": ["get"]},
             ],
             "columns": [
                 {"name": "Name", "type": "string", "format": "name", "description": "#name"},
                 {"name": "Images", "type": "string", "description": "Images.", "priority": 1},
             ],
             "schema": {"definition": "apps.Deployment"}},
        ])
    );
    assert_eq!(tables.api_services, "v1.apps 17800 15\n");
    let names: Vec<&str> = tables
        .definitions
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(
        names,
        [
            "apps.Deployment",
            "core.Binding",
            "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        ]
    );
    assert!(
        tables.definitions.contains("DeleteOptions\t{}\n"),
        "the group is per document"
    );
}
