//! Reference of the kinds in Markdown.

use std::fmt::Write;

use serde_json::Value;

use crate::CrdError;
use crate::fields::{Field, Version, fields, flag, text, texts};

#[cfg(test)]
mod tests;

/// A page in Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Path, such as `robots.example.com.md`.
    pub path: String,
    /// Text of the page.
    pub text: String,
}

/// Returns a page for each CRD, and the page `README.md` with a list of them.
///
/// # Errors
/// If a document is not a CRD.
pub fn reference(crds: &[Value]) -> Result<Vec<Page>, CrdError> {
    let mut pages = Vec::new();
    let mut index =
        String::from("# API reference\n\n| kind | group | versions | |\n|---|---|---|---|\n");
    let mut sorted: Vec<_> = crds
        .iter()
        .map(|crd| Ok((crate::name_of(crd)?, crd)))
        .collect::<Result<_, CrdError>>()?;
    sorted.sort_by_key(|(name, _)| *name);
    for (name, crd) in sorted {
        let path = format!("{name}.md");
        let versions: Vec<_> = served(crd).iter().map(|it| it.name).collect();
        let _ = writeln!(
            index,
            "| [{}]({path}) | {} | {} | {} |",
            part(crd, "/spec/names/kind"),
            part(crd, "/spec/group"),
            versions.join(", "),
            cell(first_sentence(description(crd)))
        );
        let text = page(crd);
        pages.push(Page { path, text });
    }
    let path = "README.md".to_owned();
    pages.insert(0, Page { path, text: index });
    Ok(pages)
}

fn part<'a>(crd: &'a Value, pointer: &str) -> &'a str {
    let value = crd.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default()
}

fn served(crd: &Value) -> Vec<Version<'_>> {
    let versions = Version::all(crd).into_iter();
    versions.filter(|it| flag(it.document, "served")).collect()
}

/// Returns the description of the kind in its first version.
fn description(crd: &Value) -> &str {
    let versions = Version::all(crd);
    let schema = versions.first().and_then(Version::schema);
    schema.map_or("", |schema| text(schema, "description"))
}

fn first_sentence(text: &str) -> &str {
    let end = text.find(". ").or_else(|| text.find(".\n"));
    end.and_then(|end| text.get(..=end)).unwrap_or(text)
}

/// Returns the page of a CRD.
fn page(crd: &Value) -> String {
    let kind = part(crd, "/spec/names/kind");
    let mut page = format!("# {kind}\n\n");
    let about = description(crd);
    if !about.is_empty() {
        let _ = writeln!(page, "{}\n", paragraph(about));
    }
    let scope = match part(crd, "/spec/scope") {
        "Cluster" => "cluster-scoped",
        _ => "namespaced",
    };
    let names = crd.pointer("/spec/names").unwrap_or(&Value::Null);
    let mut facts = vec![
        format!("`{}`, {scope}", part(crd, "/spec/group")),
        format!("plural `{}`", text(names, "plural")),
    ];
    for (keyword, label) in [("shortNames", "short"), ("categories", "categories")] {
        let values = texts(names, keyword);
        if !values.is_empty() {
            facts.push(format!("{label} `{}`", values.join("`, `")));
        }
    }
    let _ = writeln!(page, "{}\n", facts.join(", "));
    page += "| version | | stored | columns of `kubectl get` |\n|---|---|---|---|\n";
    for version in Version::all(crd) {
        page += &version_row(&version);
    }
    for version in served(crd) {
        let _ = writeln!(page, "\n## {}", version.name);
        if let Some(schema) = version.schema() {
            page += &tables(schema, version.name);
        }
    }
    page
}

fn version_row(version: &Version<'_>) -> String {
    let document = version.document;
    let state = match (flag(document, "served"), flag(document, "deprecated")) {
        (false, _) => "not served".to_owned(),
        (true, false) => "served".to_owned(),
        (true, true) => match text(document, "deprecationWarning") {
            "" => "deprecated".to_owned(),
            warning => format!("deprecated: {}", cell(warning)),
        },
    };
    let columns = document.get("additionalPrinterColumns");
    let columns = columns.and_then(Value::as_array).into_iter().flatten();
    let columns: Vec<_> = columns.map(|column| cell(text(column, "name"))).collect();
    format!(
        "| {} | {state} | {} | {} |\n",
        version.name,
        if flag(document, "storage") { "yes" } else { "" },
        columns.join(", ")
    )
}

/// Returns a table for each object in the schema of a version, without those of every object.
fn tables(schema: &Value, version: &str) -> String {
    let of_every_object = [".apiVersion", ".kind", ".metadata"];
    let all = fields(schema);
    let shown: Vec<_> = all
        .iter()
        .filter(|field| !of_every_object.iter().any(|path| field.is_below(path)))
        .collect();
    let mut text = String::new();
    for object in shown.iter().filter(|it| has_fields(it)) {
        if !object.path.is_empty() {
            let _ = writeln!(text, "\n### {version} {}", object.path);
        }
        for rule in rules(object.schema) {
            let _ = writeln!(text, "\nRule: {rule}");
        }
        text += "\n| field | type | |\n|---|---|---|\n";
        let is_child = |field: &&&Field<'_>| {
            let parent = field.path.rsplit_once('.').map(|(parent, _)| parent);
            field.name.is_some() && parent == Some(object.path.as_str())
        };
        for field in shown.iter().filter(is_child) {
            text += &row(field, version);
        }
    }
    text
}

fn has_fields(field: &Field<'_>) -> bool {
    let properties = field.schema.get("properties");
    let properties = properties.and_then(Value::as_object);
    properties.is_some_and(|it| !it.is_empty())
}

/// Returns the rules of a schema, each with its message.
fn rules(schema: &Value) -> Vec<String> {
    let rules = schema.get("x-kubernetes-validations");
    let rules = rules.and_then(Value::as_array).into_iter().flatten();
    rules
        .map(|rule| {
            let expression = format!("`{}`", text(rule, "rule"));
            match text(rule, "message") {
                "" => expression,
                message => format!("{} ({expression})", cell(message)),
            }
        })
        .collect()
}

fn row(field: &Field<'_>, version: &str) -> String {
    let schema = field.schema;
    let name = field.name.unwrap_or_default();
    let required = if field.is_required { ", required" } else { "" };
    let mut sentences = Vec::new();
    let about = cell(text(schema, "description"));
    if !about.is_empty() {
        sentences.push(about);
    }
    sentences.extend(limits(schema));
    // The rules of an object are above its table.
    if !has_fields(field) {
        sentences.extend(rules(schema).into_iter().map(|it| cell(&it)));
    }
    format!(
        "| `{name}` | {}{required} | {} |\n",
        type_of(schema, &field.path, version),
        sentences.join("<br>")
    )
}

/// Returns the type of a value. An object with fields is a link to its table.
fn type_of(schema: &Value, path: &str, version: &str) -> String {
    if flag(schema, "x-kubernetes-int-or-string") {
        return "integer or string".to_owned();
    }
    let below = format!("{path}[*]");
    if let Some(items) = schema.get("items").filter(|it| it.is_object()) {
        return format!("list of {}", type_of(items, &below, version));
    }
    let values = schema.get("additionalProperties");
    if let Some(values) = values.filter(|it| it.is_object()) {
        return format!("map of {}", type_of(values, &below, version));
    }
    let type_ = match (text(schema, "type"), text(schema, "format")) {
        ("", _) => "any".to_owned(),
        (type_, "") => type_.to_owned(),
        (type_, format) => format!("{type_} ({format})"),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    match properties.is_some_and(|it| !it.is_empty()) {
        true => format!("[{type_}](#{})", anchor(&format!("{version} {path}"))),
        false => type_,
    }
}

/// Returns the anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.to_lowercase();
    let chars = heading.chars().filter_map(|char| match char {
        ' ' => Some('-'),
        char if char.is_alphanumeric() || char == '-' || char == '_' => Some(char),
        _ => None,
    });
    chars.collect()
}

/// Returns the default and the limits of a value.
fn limits(schema: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(default) = schema.get("default") {
        limits.push(format!("Default: {}.", code(default)));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().map(code).collect();
        limits.push(format!("One of {}.", values.join(", ")));
    }
    for (keyword, label) in [
        ("minimum", "Minimum"),
        ("maximum", "Maximum"),
        ("minLength", "Minimum length"),
        ("maxLength", "Maximum length"),
        ("minItems", "Minimum number of items"),
        ("maxItems", "Maximum number of items"),
        ("minProperties", "Minimum number of entries"),
        ("maxProperties", "Maximum number of entries"),
        ("multipleOf", "Multiple of"),
        ("pattern", "Pattern"),
    ] {
        if let Some(value) = schema.get(keyword) {
            limits.push(format!("{label}: {}.", code(value)));
        }
    }
    let keys = texts(schema, "x-kubernetes-list-map-keys");
    if !keys.is_empty() {
        limits.push(format!("Unique by `{}`.", keys.join("`, `")));
    }
    if text(schema, "x-kubernetes-list-type") == "set" {
        limits.push("Items are unique.".to_owned());
    }
    limits
}

/// Returns a value as code in a cell of a table.
fn code(value: &Value) -> String {
    let text = match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        // Rust's schemas write limits as floats.
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        value => value.to_string(),
    };
    format!("`{}`", text.replace('|', "\\|"))
}

/// Returns text in a cell of a table, on one line.
fn cell(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    escaped(&words.join(" ")).replace('|', "\\|")
}

/// Returns text as a paragraph.
fn paragraph(text: &str) -> String {
    escaped(text.trim())
}

/// Replaces what Markdown would read as HTML.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;")
}
