//! `cargo xtask apply-types`: writes the table that the macro `apply_types!` reads.
//!
//! The table has the kinds of the groups `io.k8s.api` with the types of their fields, in a short
//! form of the definitions that the embedded server has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

const DEFINITIONS: &str = "crates/apiserver/data/v1.36/definitions.txt";
const TABLE: &str = "crates/apply-types/data/v1.36/types.txt";

type Definitions = BTreeMap<String, Value>;

/// Writes the table.
pub(crate) fn run(root: &Path) -> Result<()> {
    let path = root.join(TABLE);
    std::fs::write(&path, table(root)?).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the text of the table.
fn table(root: &Path) -> Result<String> {
    let path = root.join(DEFINITIONS);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut definitions = Definitions::new();
    for line in text.lines() {
        let (name, definition) = line.split_once('\t').context("a line without a tab")?;
        definitions.insert(name.to_owned(), serde_json::from_str(definition)?);
    }
    let mut waiting: Vec<&String> = definitions
        .keys()
        .filter(|name| is_kind(name, &definitions))
        .collect();
    let mut types = BTreeMap::new();
    let mut seen: BTreeSet<&String> = waiting.iter().copied().collect();
    while let Some(name) = waiting.pop() {
        let mut fields = Vec::new();
        let properties = definitions
            .get(name)
            .and_then(|it| it["properties"].as_object());
        for (field, schema) in properties.into_iter().flatten() {
            let (ty, reference) = field_type(schema, &definitions)
                .with_context(|| format!("{name}.{field} has a type that is not known"))?;
            fields.push(format!("{field}:{ty}"));
            if let Some((reference, _)) = reference.and_then(|it| definitions.get_key_value(&it))
                && seen.insert(reference)
            {
                waiting.push(reference);
            }
        }
        let mark = if is_kind(name, &definitions) { "!" } else { "" };
        types.insert(format!("{}{mark}", short(name)), fields.join(","));
    }
    let mut table = String::new();
    for (name, fields) in types {
        writeln!(table, "{name}\t{fields}")?;
    }
    Ok(table)
}

/// Reports whether a definition is a kind of objects with names.
fn is_kind(name: &str, definitions: &Definitions) -> bool {
    let Some(definition) = definitions.get(name) else {
        return false;
    };
    let metadata = definition.pointer("/properties/metadata");
    let metadata = metadata.and_then(reference);
    let has_metadata = metadata.is_some_and(|it| it.ends_with(".ObjectMeta"));
    let is_root = definition.get("x-kubernetes-group-version-kind").is_some();
    name.starts_with("io.k8s.api.") && has_metadata && is_root
}

/// Returns the name of a type without the beginning that all have: `apps.v1.Deployment`.
fn short(name: &str) -> &str {
    let prefixes = ["io.k8s.api.", "io.k8s.apimachinery.pkg.apis."];
    let mut rests = prefixes
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix));
    rests.next().unwrap_or(name)
}

fn reference(schema: &Value) -> Option<&str> {
    let references = ["/$ref", "/allOf/0/$ref"].map(|path| schema.pointer(path));
    let reference = references.into_iter().flatten().next()?.as_str()?;
    reference.strip_prefix("#/components/schemas/")
}

/// Returns a type in the form of the table, and the definition that it refers to.
fn field_type(schema: &Value, definitions: &Definitions) -> Option<(String, Option<String>)> {
    if let Some(name) = reference(schema) {
        return Some(match leaf(name) {
            Some(leaf) => (leaf.to_owned(), None),
            None if definitions.get(name)?["properties"].is_object() => {
                (format!("@{}", short(name)), Some(name.to_owned()))
            }
            None => field_type(definitions.get(name)?, definitions)?,
        });
    }
    let leaf = match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("byte")) => "bytes",
        (Some("string"), _) => "string",
        (Some("boolean"), _) => "boolean",
        (Some("integer"), Some("int32")) => "int32",
        (Some("integer"), _) => "int64",
        (Some("number"), _) => "double",
        (Some("array"), _) => {
            let (item, name) = field_type(&schema["items"], definitions)?;
            return Some((format!("[{item}]"), name));
        }
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            let (value, name) = field_type(&schema["additionalProperties"], definitions)?;
            return Some((format!("{{{value}}}"), name));
        }
        (Some("object") | None, _) => "any",
        _ => return None,
    };
    Some((leaf.to_owned(), None))
}

/// Returns the name of a type for which there is a Rust type without a twin.
fn leaf(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("io.k8s.apimachinery.pkg.")? {
        "api.resource.Quantity" => "quantity",
        "util.intstr.IntOrString" => "int-or-string",
        "apis.meta.v1.Time" => "time",
        "apis.meta.v1.MicroTime" => "micro-time",
        "apis.meta.v1.ObjectMeta" => "metadata",
        "apis.meta.v1.FieldsV1" | "runtime.RawExtension" => "any",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let written = std::fs::read_to_string(root.join(TABLE)).unwrap();
        assert!(
            written == table(&root).unwrap(),
            "run `cargo xtask apply-types`"
        );
    }
}
