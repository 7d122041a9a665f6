//! The entries of opkit in a `Cargo.toml`, which are edited in place.

use super::refused;
use crate::Result;
use crate::dependency::Dependency;

/// Keys of the source of a dependency.
const SOURCES: [&str; 7] = ["path", "git", "version", "tag", "branch", "rev", "registry"];

/// Sets the source of opkit in one table of dependencies: on a line `opkit = ...`, and in a table
/// of its own. `version` is the version behind a git tag.
pub(super) fn edit(text: &str, table: &str, new: &Dependency, version: &str) -> Result<String> {
    let (lines, own) = (format!("[{table}]"), format!("[{table}.opkit]"));
    let mut edited = String::with_capacity(text.len());
    let mut header = String::new();
    let mut is_set = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with('[') {
            header = line.split('#').next().unwrap_or_default().trim().to_owned();
            is_set = false;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim();
        if header == lines && (key == "opkit" || key == "opkit.workspace") {
            let value = entry(key, value, new, version).map_err(|it| refused(number + 1, it))?;
            let start = line.len() - line.split_once('=').map_or(0, |(_, value)| value.len());
            edited.push_str(line.get(..start).unwrap_or_default());
            edited.push_str(&value);
        } else if header == own && SOURCES.contains(&key) {
            let old = Item::parse(line.trim_end());
            let end = line.get(line.trim_end().len()..).unwrap_or_default();
            // Otherwise the line is of a source that the new one does not have.
            if let Some(item) = replaced(&old, new, version, is_set) {
                edited.push_str(&item);
                edited.push_str(end);
                is_set |= is_location(&old.key);
            }
        } else {
            edited.push_str(line);
        }
    }
    Ok(edited)
}

/// Returns the value of a line, with the spaces and comments around it.
fn entry(key: &str, value: &str, new: &Dependency, version: &str) -> Result<String, &'static str> {
    let trimmed = value.trim_start();
    let space = value.get(..value.len() - trimmed.len()).unwrap_or_default();
    if key == "opkit.workspace" {
        return Err(
            "opkit is a dependency of the workspace: change it in the Cargo.toml of the workspace",
        );
    }
    if let Some(quote) = trimmed.chars().next().filter(|it| ['"', '\''].contains(it)) {
        let inner = trimmed.get(1..).unwrap_or_default();
        let (_, rest) = inner.split_once(quote).ok_or("the string has no end")?;
        return Ok(match new {
            Dependency::Version(version) => format!("{space}\"{version}\"{rest}"),
            other => format!("{space}{{ {} }}{rest}", other.text()),
        });
    }
    let inner = trimmed
        .strip_prefix('{')
        .ok_or("opkit is neither a version nor a table")?;
    let end = end_of_table(inner)
        .ok_or("the entry of opkit is on several lines: write it on one line")?;
    let (items, rest) = (inner.get(..end), inner.get(end + 1..));
    let items: Vec<Item> = split(items.unwrap_or_default()).map(Item::parse).collect();
    if items.iter().any(|item| item.key == "workspace") {
        return Err(
            "opkit is a dependency of the workspace: change it in the Cargo.toml of the workspace",
        );
    }
    let mut kept = Vec::new();
    let mut is_set = false;
    for item in &items {
        match SOURCES.contains(&item.key.as_str()) {
            true => {
                kept.extend(replaced(item, new, version, is_set));
                is_set |= is_location(&item.key);
            }
            false => kept.push(item.text.clone()),
        }
    }
    if !is_set {
        return Err("opkit has no version, path or git");
    }
    Ok(format!(
        "{space}{{ {} }}{}",
        kept.join(", "),
        rest.unwrap_or_default()
    ))
}

/// Key and value of a table.
struct Item {
    key: String,
    text: String,
}

impl Item {
    fn parse(text: &str) -> Self {
        let key = text.split('=').next().unwrap_or_default();
        Self {
            key: key.trim().to_owned(),
            text: text.trim().to_owned(),
        }
    }

    fn value(&self) -> &str {
        let value = self
            .text
            .split_once('=')
            .map_or("", |(_, value)| value.trim());
        value.trim_matches(['"', '\''])
    }
}

/// Reports whether a key is the main one of a source.
fn is_location(key: &str) -> bool {
    matches!(key, "path" | "git" | "version")
}

/// Returns the item in place of one about the source, or `None` if it goes. `is_set` is whether an
/// earlier item has the new source already.
fn replaced(item: &Item, new: &Dependency, version: &str, is_set: bool) -> Option<String> {
    let is_same_source = matches!(
        (item.key.as_str(), new),
        ("path", Dependency::Path(_)) | ("version" | "registry", Dependency::Version(_))
    ) || matches!((item.key.as_str(), new), ("git", Dependency::Git(url)) if item.value() == url);
    match item.key.as_str() {
        _ if is_location(&item.key) && !is_set => match is_same_source && is_value(item, new) {
            true => Some(item.text.clone()),
            false => Some(new.text()),
        },
        "registry" => is_same_source.then(|| item.text.clone()),
        "tag" if matches!(new, Dependency::Git(_)) => Some(format!("tag = \"v{version}\"")),
        "branch" | "rev" if matches!(new, Dependency::Git(_)) => Some(item.text.clone()),
        _ => None,
    }
}

/// Reports whether an item has the value of the new source, so that its text can stay.
fn is_value(item: &Item, new: &Dependency) -> bool {
    let (Dependency::Path(value) | Dependency::Git(value) | Dependency::Version(value)) = new;
    item.value() == value
}

/// Returns the position of the brace that ends an inline table.
fn end_of_table(text: &str) -> Option<usize> {
    positions(text)
        .find_map(|(position, char, depth)| (char == '}' && depth == 0).then_some(position))
}

/// Splits the items of an inline table.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let commas = positions(text).filter(|(_, char, depth)| *char == ',' && *depth == 0);
    let ends = commas.map(|(position, ..)| position).chain([text.len()]);
    let mut start = 0;
    let items = ends.map(move |end| {
        let item = text.get(start..end).unwrap_or_default();
        start = end + 1;
        item
    });
    items.filter(|item| !item.trim().is_empty())
}

/// Returns the characters outside of strings, each with its position and the number of brackets and
/// braces around it.
fn positions(text: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut depth, mut quote) = (0_usize, None);
    text.char_indices().filter_map(move |(position, char)| {
        match (quote, char) {
            (Some(open), _) => {
                if char == open {
                    quote = None;
                }
                return None;
            }
            (None, '"' | '\'') => {
                quote = Some(char);
                return None;
            }
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => {
                let before = depth;
                depth = depth.saturating_sub(1);
                return Some((position, char, if before == 0 { 0 } else { before }));
            }
            _ => {}
        }
        Some((position, char, depth))
    })
}
