//! The OpenAPI paths of a kind, and the operations at each path.

use opkit_apimachinery::identity::GroupVersion;
use serde_json::{Map, Value, json};

use super::document::{reference, schema_name};
use super::put;
use crate::kinds::{Definitions, Kind, SchemaSource, Subresource, Verb};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const READ: &[(&str, &str)] = &[("resourceVersion", "string")];
const WRITE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
];
const PATCH: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

/// The OpenAPI operation of a verb.
struct Operation {
    verb: Verb,
    method: &'static str,
    /// First word of the operation ID and of the description.
    word: &'static str,
    /// Value of `x-kubernetes-action`.
    action: &'static str,
    parameters: &'static [(&'static str, &'static str)],
}

const fn operation(
    verb: Verb,
    method: &'static str,
    word: &'static str,
    action: &'static str,
    parameters: &'static [(&'static str, &'static str)],
) -> Operation {
    Operation {
        verb,
        method,
        word,
        action,
        parameters,
    }
}

const OF_COLLECTION: &[Operation] = &[
    operation(Verb::List, "get", "list", "list", LIST),
    operation(Verb::Create, "post", "create", "post", WRITE),
    operation(
        Verb::DeleteCollection,
        "delete",
        "deleteCollection",
        "deletecollection",
        LIST,
    ),
];
const OF_ITEM: &[Operation] = &[
    operation(Verb::Get, "get", "read", "get", READ),
    operation(Verb::Update, "put", "replace", "put", WRITE),
    operation(Verb::Delete, "delete", "delete", "delete", DELETE),
    operation(Verb::Patch, "patch", "patch", "patch", PATCH),
];
const OF_SUBRESOURCE: &[Operation] = &[
    operation(Verb::Get, "get", "read", "get", READ),
    operation(Verb::Create, "post", "create", "post", WRITE),
    operation(Verb::Update, "put", "replace", "put", WRITE),
    operation(Verb::Delete, "delete", "delete", "delete", DELETE),
    operation(Verb::Patch, "patch", "patch", "patch", PATCH),
];

/// The data that all operations at one path have in common.
struct Target<'a> {
    kind: &'a Kind,
    /// End of the operation IDs, such as `AppsV1NamespacedDeploymentStatus`.
    id: String,
    /// Name of the schema of the body, if the body has a schema.
    schema: Option<String>,
    /// Group, version and kind of the body, for `x-kubernetes-group-version-kind`.
    gvk: Value,
}

/// Adds all OpenAPI paths of `kind` to `paths`.
pub(super) fn add(kind: &Kind, paths: &mut Map<String, Value>) {
    let Ok(base) = GroupVersion::new(&kind.group, &kind.version).path() else {
        return;
    };
    let across = format!("{base}/{}", kind.plural);
    let collection = match kind.namespaced {
        true => format!("{base}/namespaces/{{namespace}}/{}", kind.plural),
        false => across.clone(),
    };
    let scope = if kind.namespaced { "Namespaced" } else { "" };
    let name = schema_name(kind);
    let own = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut target = Target {
        kind,
        id: format!("{}{scope}{}", group_id(kind), kind.kind),
        schema: Some(name.clone()),
        gvk: own.clone(),
    };
    let mut insert = |path: String, operations: Map<String, Value>| {
        if !operations.is_empty() {
            let mut item = operations;
            item.insert("parameters".to_owned(), path_parameters(&path, kind));
            paths.insert(path, Value::Object(item));
        }
    };
    insert(
        collection.clone(),
        operations(OF_COLLECTION, &kind.verbs, &target),
    );
    insert(
        format!("{collection}/{{name}}"),
        operations(OF_ITEM, &kind.verbs, &target),
    );
    for subresource in &kind.subresources {
        let mut suffix = subresource.name.clone();
        if let Some(first) = suffix.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let target = Target {
            kind,
            id: format!("{}{suffix}", target.id),
            schema: body_of(subresource, &name),
            gvk: gvk_of(kind, subresource, &own),
        };
        insert(
            format!("{collection}/{{name}}/{}", subresource.name),
            operations(OF_SUBRESOURCE, &subresource.verbs, &target),
        );
    }
    if kind.namespaced {
        target.id = format!("{}{}ForAllNamespaces", group_id(kind), kind.kind);
        let list = OF_COLLECTION.get(..1).unwrap_or_default();
        insert(across, operations(list, &kind.verbs, &target));
    }
}

/// Returns group and version in the form of operation IDs, such as `AppsV1`, `RbacAuthorizationV1`
/// or `ExampleComV1`.
fn group_id(kind: &Kind) -> String {
    let group = if kind.group.is_empty() {
        "core"
    } else {
        kind.group.trim_end_matches(".k8s.io")
    };
    let mut id = String::new();
    for word in group.split(['.', '-']).chain([kind.version.as_str()]) {
        let mut letters = word.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.push_str(letters.as_str());
    }
    id
}

/// Returns the name of the schema of a subresource's body. Without a response kind of its own, the
/// subresource has the schema of the parent resource. A log has no schema.
fn body_of(subresource: &Subresource, parent: &str) -> Option<String> {
    let Some((group, version, name)) = &subresource.response else {
        // A log is text and has no schema.
        return (subresource.name != "log").then(|| parent.to_owned());
    };
    let of_group = match group.as_str() {
        "" => "core",
        group => group.trim_end_matches(".k8s.io"),
    };
    let parent_group = parent
        .rsplit_once('.')
        .map_or("", |(parent_group, _)| parent_group);
    let candidates = [
        format!("io.k8s.api.{of_group}.{version}.{name}"),
        format!("{parent_group}.{name}"),
    ];
    candidates
        .into_iter()
        .find(|name| Definitions::builtin().raw(name).is_some())
}

/// Returns group, version and kind of a subresource's body. As in Kubernetes, the `scale` of a
/// custom kind has `own`, the group, version and kind of the custom kind.
fn gvk_of(kind: &Kind, subresource: &Subresource, own: &Value) -> Value {
    match (&subresource.response, &kind.schema) {
        (Some((group, version, name)), SchemaSource::Definition(_)) => {
            json!({"group": group, "version": version, "kind": name})
        }
        _ => own.clone(),
    }
}

/// Returns the operations among `known` whose verbs are in `verbs`, by HTTP method.
fn operations(known: &[Operation], verbs: &[Verb], target: &Target<'_>) -> Map<String, Value> {
    known
        .iter()
        .filter(|operation| verbs.contains(&operation.verb))
        .map(|operation| (operation.method.to_owned(), describe(operation, target)))
        .collect()
}

fn describe(operation: &Operation, target: &Target<'_>) -> Value {
    let body = target.schema.as_deref();
    let (request, response) = match operation.verb {
        Verb::List => (None, body.map(|schema| format!("{schema}List"))),
        Verb::Get => (None, body.map(str::to_owned)),
        Verb::Patch => (Some(format!("{META}Patch")), body.map(str::to_owned)),
        Verb::Delete | Verb::DeleteCollection => (
            Some(format!("{META}DeleteOptions")),
            Some(format!("{META}Status")),
        ),
        _ => (body.map(str::to_owned), body.map(str::to_owned)),
    };
    let mut described = json!({
        "tags": [tag(target.kind)],
        "description": format!("{} {}", operation.word, target.kind.kind),
        "operationId": format!("{}{}", operation.word, target.id),
        "parameters": operation.parameters.iter().map(query).collect::<Vec<_>>(),
        "responses": {
            "200": match &response {
                Some(schema) => json!({"description": "OK", "content": content(&["application/json"], schema)}),
                None => json!({"description": "OK"}),
            },
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": target.gvk,
    });
    if let Some(schema) = request {
        let is_builtin = !target.kind.is_custom();
        let types: &[&str] = match (operation.verb, is_builtin) {
            (Verb::Patch, true) => &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ],
            (Verb::Patch, false) => &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ],
            _ => &["application/json"],
        };
        let mut body = json!({"content": content(types, &schema)});
        if !matches!(operation.verb, Verb::Delete | Verb::DeleteCollection) {
            put(&mut body, "required", json!(true));
        }
        put(&mut described, "requestBody", body);
    }
    described
}

/// Returns the OpenAPI tag of a kind's group version, such as `apps_v1`.
fn tag(kind: &Kind) -> String {
    let id = group_id(kind);
    let group = id
        .get(..id.len().saturating_sub(kind.version.len()))
        .unwrap_or_default();
    let mut letters = group.chars();
    let first: String = letters
        .next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .collect();
    format!("{first}{}_{}", letters.as_str(), kind.version)
}

fn content(types: &[&str], schema: &str) -> Value {
    types
        .iter()
        .map(|&media| (media.to_owned(), json!({"schema": reference(schema)})))
        .collect()
}

fn query((name, type_): &(&str, &str)) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": type_, "uniqueItems": true}})
}

/// Returns the OpenAPI parameters that all operations at a path have, such as `name` and
/// `namespace`.
fn path_parameters(path: &str, kind: &Kind) -> Value {
    let known = [
        ("name", format!("name of the {}", kind.kind)),
        (
            "namespace",
            "object name and auth scope, such as for teams and projects".to_owned(),
        ),
    ];
    let mut parameters: Vec<Value> = known
        .into_iter()
        .filter(|(name, _)| path.contains(&format!("{{{name}}}")))
        .map(|(name, description)| {
            json!({
                "name": name,
                "in": "path",
                "description": description,
                "required": true,
                "schema": {"type": "string", "uniqueItems": true},
            })
        })
        .collect();
    parameters.push(query(&("pretty", "string")));
    Value::Array(parameters)
}
