//! `cargo xtask kinds`: generates the table of built-in kinds from a real API server.
//!
//! Discovery has names, scopes, verbs and subresources, the OpenAPI v3 documents have the schemas,
//! an empty list in Table format has the printer columns, and the APIServices have the priorities
//! of groups and versions. Data that a server does not publish (cells, field selectors, most
//! defaults) is written by hand beside the output and never changed by this command.
//!
//! The server is read with `curl`, so that this crate needs no TLS stack.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opkit_apimachinery::identity::GroupVersion;
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Server to read, and directory to write to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Base URL of the API server; its certificate is not checked
    #[arg(long)]
    server: String,
    /// Bearer token of a user who may list everything
    #[arg(long)]
    token: String,
    /// Directory to write to
    #[arg(long, default_value = "crates/apiserver/data/v1.36")]
    out: PathBuf,
}

/// Source of responses to GET requests: a server, or a test.
pub(crate) trait Source {
    /// Returns the JSON at `path`, requested with `accept`.
    fn get(&self, path: &str, accept: &str) -> Result<Value>;
}

/// Text of the generated files.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) kinds: String,
    pub(crate) definitions: String,
    /// Descriptions of the definitions and of their properties.
    pub(crate) descriptions: String,
    pub(crate) api_services: String,
}

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Reads the server and writes the files.
pub(crate) fn run(args: &Args) -> Result<()> {
    let server = Curl {
        server: args.server.trim_end_matches('/').to_owned(),
        token: args.token.clone(),
    };
    let tables = read(&server)?;
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot create {}", args.out.display()))?;
    write(&args.out, "kinds.json", &tables.kinds)?;
    write(&args.out, "definitions.txt", &tables.definitions)?;
    write(&args.out, "descriptions.txt", &tables.descriptions)?;
    write(&args.out, "apiservices.txt", &tables.api_services)
}

/// Reads all data from the server; returns the text of the files.
pub(crate) fn read(source: &dyn Source) -> Result<Tables> {
    let definitions = definitions(source)?;
    let by_kind = definitions_by_kind(&definitions);
    let groups = source.get("/apis", JSON)?;
    let mut group_versions = vec![(String::new(), "v1".to_owned())];
    for group in array(&groups, "groups") {
        let name = text(group, "name");
        for version in array(group, "versions") {
            group_versions.push((name.to_owned(), text(version, "version").to_owned()));
        }
    }
    group_versions.sort();

    let mut lines = Vec::new();
    for (group, version) in &group_versions {
        let base = GroupVersion::new(group.as_str(), version.as_str()).path()?;
        let list = source.get(&base, JSON)?;
        let mut kinds = kinds_of(group, version, &list, &by_kind)?;
        kinds.sort_by_key(|kind| text(kind, "plural").to_owned());
        for mut kind in kinds {
            if array(&kind, "verbs").iter().any(|verb| verb == "list") {
                let path = format!("{base}/{}?limit=1", text(&kind, "plural"));
                let columns = columns(&source.get(&path, TABLE)?, &definitions);
                put(&mut kind, "columns", columns);
            }
            lines.push(kind.to_string());
        }
    }
    let (mut structures, mut descriptions) = (String::new(), String::new());
    for (name, mut definition) in definitions {
        let texts = take_descriptions(&mut definition);
        let _ = writeln!(structures, "{name}\t{definition}");
        if !texts.is_empty() {
            let _ = writeln!(descriptions, "{name}\t{}", Value::Object(texts));
        }
    }
    Ok(Tables {
        kinds: format!("[\n{}\n]\n", lines.join(",\n")),
        definitions: structures,
        descriptions,
        api_services: api_services(source)?,
    })
}

/// Removes the description of a definition and those of its properties. Returns the descriptions by
/// the name of the property; the description of the definition itself has an empty name.
fn take_descriptions(definition: &mut Value) -> Map<String, Value> {
    let mut descriptions = Map::new();
    let mut take = |name: &str, schema: &mut Value| {
        let schema = schema.as_object_mut();
        if let Some(text) = schema.and_then(|schema| schema.remove("description")) {
            descriptions.insert(name.to_owned(), text);
        }
    };
    take("", definition);
    if let Some(Value::Object(properties)) = definition.get_mut("properties") {
        for (name, property) in properties {
            take(name, property);
        }
    }
    descriptions
}

/// Returns a line for each APIService: its name, the priority of its group and the priority of its
/// version.
fn api_services(source: &dyn Source) -> Result<String> {
    let list = source.get("/apis/apiregistration.k8s.io/v1/apiservices", JSON)?;
    let mut lines = String::new();
    for item in array(&list, "items") {
        let name = item.pointer("/metadata/name").and_then(Value::as_str);
        let priority = |field: &str| {
            item.pointer(&format!("/spec/{field}"))
                .and_then(Value::as_i64)
        };
        let priorities = (
            priority("groupPriorityMinimum"),
            priority("versionPriority"),
        );
        let (Some(name), (Some(group), Some(version))) = (name, priorities) else {
            anyhow::bail!("an APIService has no name or no priorities: {item}");
        };
        writeln!(lines, "{name} {group} {version}")?;
    }
    Ok(lines)
}

/// Returns every definition of every OpenAPI v3 document, by name.
fn definitions(source: &dyn Source) -> Result<BTreeMap<String, Value>> {
    let index = source.get("/openapi/v3", JSON)?;
    let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
    for entry in index
        .get("paths")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
    {
        let document = source.get(text(entry, "serverRelativeURL"), JSON)?;
        let schemas = document
            .pointer("/components/schemas")
            .and_then(Value::as_object);
        for (name, schema) in schemas.into_iter().flatten() {
            let mut schema = schema.clone();
            // Each document lists its own group here; the embedded server fills it in per document
            // again.
            if is_of_every_group(name) {
                schema
                    .as_object_mut()
                    .map(|schema| schema.remove(GROUP_VERSION_KIND));
            }
            match definitions.get(name) {
                Some(known) => ensure!(
                    *known == schema,
                    "definition {name} differs between OpenAPI documents"
                ),
                None => drop(definitions.insert(name.clone(), schema)),
            }
        }
    }
    Ok(definitions)
}

const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";

/// Reports whether a definition names a kind that every group serves.
fn is_of_every_group(name: &str) -> bool {
    name.ends_with(".meta.v1.DeleteOptions") || name.ends_with(".meta.v1.WatchEvent")
}

/// Returns the name of the definition of each group, version and kind.
fn definitions_by_kind(
    definitions: &BTreeMap<String, Value>,
) -> BTreeMap<(String, String, String), String> {
    let mut by_kind = BTreeMap::new();
    for (name, definition) in definitions {
        for gvk in array(definition, GROUP_VERSION_KIND) {
            let field = |field| text(gvk, field).to_owned();
            by_kind.insert(
                (field("group"), field("version"), field("kind")),
                name.clone(),
            );
        }
    }
    by_kind
}

/// Returns the kinds of one group version, with their subresources nested.
fn kinds_of(
    group: &str,
    version: &str,
    list: &Value,
    by_kind: &BTreeMap<(String, String, String), String>,
) -> Result<Vec<Value>> {
    let resources = array(list, "resources");
    let mut kinds = Vec::new();
    for resource in resources
        .iter()
        .filter(|resource| !text(resource, "name").contains('/'))
    {
        let plural = text(resource, "name");
        let kind = text(resource, "kind");
        let gvk = (group.to_owned(), version.to_owned(), kind.to_owned());
        let definition = by_kind
            .get(&gvk)
            .with_context(|| format!("no OpenAPI definition for {kind} of {group}/{version}"))?;
        let subresources: Vec<Value> = resources
            .iter()
            .filter_map(|sub| {
                let name = text(sub, "name").strip_prefix(plural)?.strip_prefix('/')?;
                Some(subresource(group, version, kind, name, sub))
            })
            .collect();
        let mut entry = json!({
            "group": group,
            "version": version,
            "kind": kind,
            "plural": plural,
            "singular": text(resource, "singularName"),
            "namespaced": resource["namespaced"],
            "verbs": resource["verbs"],
            "schema": {"definition": definition},
        });
        for (field, value) in [
            ("shortNames", resource["shortNames"].clone()),
            ("categories", resource["categories"].clone()),
            ("subresources", Value::Array(subresources)),
        ] {
            if value.as_array().is_some_and(|list| !list.is_empty()) {
                put(&mut entry, field, value);
            }
        }
        kinds.push(entry);
    }
    Ok(kinds)
}

/// Returns one subresource; its kind is omitted if it is the parent's.
fn subresource(group: &str, version: &str, parent: &str, name: &str, resource: &Value) -> Value {
    let mut entry = json!({"name": name, "verbs": resource["verbs"]});
    let kind = text(resource, "kind");
    let or = |field, other: &str| match text(resource, field) {
        "" => other.to_owned(),
        said => said.to_owned(),
    };
    // A resource without a version belongs to the group version of the list.
    let (group_of, version_of) = match text(resource, "version") {
        "" => (group.to_owned(), version.to_owned()),
        _ => (text(resource, "group").to_owned(), or("version", version)),
    };
    if kind != parent || group_of != group || version_of != version {
        put(&mut entry, "response", json!([group_of, version_of, kind]));
    }
    entry
}

/// Returns the columns of a Table. A description that equals that of an ObjectMeta property is
/// stored as `#name`: nearly every kind has two of them, and they would be most of the file.
fn columns(table: &Value, definitions: &BTreeMap<String, Value>) -> Value {
    let metadata = definitions
        .get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        .and_then(|definition| definition["properties"].as_object());
    array(table, "columnDefinitions")
        .iter()
        .map(|column| {
            let mut kept = Map::new();
            for field in ["name", "type", "format", "description", "priority"] {
                let value = &column[field];
                if !matches!(value, Value::Null) && *value != json!("") && *value != json!(0) {
                    kept.insert(field.to_owned(), value.clone());
                }
            }
            let description = text(column, "description");
            let property = metadata.into_iter().flatten().find(|(_, property)| {
                !description.is_empty() && text(property, "description") == description
            });
            if let Some((name, _)) = property {
                kept.insert("description".to_owned(), json!(format!("#{name}")));
            }
            Value::Object(kept)
        })
        .collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn array<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

fn write(out: &Path, name: &str, content: &str) -> Result<()> {
    let path = out.join(name);
    std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Server that is read with curl.
struct Curl {
    server: String,
    token: String,
}

impl Source for Curl {
    fn get(&self, path: &str, accept: &str) -> Result<Value> {
        let url = format!("{}{path}", self.server);
        let output = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--fail",
                "--insecure",
                "--max-time",
                "60",
            ])
            .args(["--header", &format!("Authorization: Bearer {}", self.token)])
            .args(["--header", &format!("Accept: {accept}"), &url])
            .output()
            .context("cannot run curl")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "cannot read {url}: {}",
            error.trim()
        );
        serde_json::from_slice(&output.stdout).with_context(|| format!("{url} is not JSON"))
    }
}
