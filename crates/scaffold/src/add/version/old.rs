//! The file of the version that was the hub: its spec and nested types, as they are.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Fields, Item, UseTree};

use crate::kinds::Kind;
use crate::source::attribute::{arguments, is_named};
use crate::source::{Edits, Source};
use crate::{Error, Result, render};

/// Arguments of a kind that a version takes from its hub.
const OF_HUB: [&str; 15] = [
    "group",
    "version",
    "plural",
    "singular",
    "namespaced",
    "cluster",
    "shortname",
    "category",
    "status",
    "versions",
    "storage",
    "apply",
    "label",
    "annotation",
    "unserved",
];

/// Names of the prelude that fields have.
const PRELUDE: [&str; 6] = [
    "Arc",
    "BTreeMap",
    "Condition",
    "Conditions",
    "Duration",
    "Quantity",
];

/// Returns the file of the version that was the hub.
pub(super) fn old_version(source: &Source, kind: &Kind) -> Result<String> {
    let items = &source.file.items;
    let old = kind.version();
    let mut copied = BTreeSet::new();
    let mut texts = Vec::new();
    let mut waiting = vec![kind.spec.clone()];
    let mut used = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let Some(item) = items
            .iter()
            .find(|item| crate::add::defined(item).as_ref() == Some(&name))
        else {
            continue;
        };
        let is_spec = name == kind.spec;
        if !copied.contains(&name) && (is_spec || is_plain(item)) {
            let text = copy(source, kind, item, is_spec);
            let inside = identifiers(&text)?;
            waiting.extend(inside.iter().filter(|it| **it != name).cloned());
            used.extend(inside);
            copied.insert(name);
            texts.push(text);
        }
    }
    let mut imports = imports(items, &used);
    let shared: Vec<String> = (items.iter())
        .filter_map(shared_name)
        .filter(|name| used.contains(name) && !copied.contains(name))
        .collect();
    imports.extend(shared.into_iter().map(|name| format!("use super::{name};")));
    imports.sort_by_key(|line| {
        (
            line.starts_with("use super") || line.starts_with("use crate"),
            line.clone(),
        )
    });
    let mut text = format!(
        "//! The version `{old}` of the kind `{}`. It does not change any more.\n\n",
        kind.name
    );
    if !imports.is_empty() {
        text += &imports.join("\n");
        text += "\n\n";
    }
    text += &texts.join("\n\n");
    text.push('\n');
    Ok(text.replace("\r\n", "\n"))
}

/// Reports whether a type gets a version of its own. Others are used in both versions.
fn is_plain(item: &Item) -> bool {
    let is_schema = |attributes: &[syn::Attribute]| {
        let mut schemas = attributes.iter().filter(|it| is_named(it, "schema"));
        schemas.next().is_some_and(|it| arguments(it).is_empty())
    };
    match item {
        Item::Struct(item) => is_schema(&item.attrs) && matches!(item.fields, Fields::Named(_)),
        Item::Enum(item) => {
            let is_unit = item.variants.iter().all(|it| it.fields.is_empty());
            is_schema(&item.attrs) && is_unit
        }
        _ => false,
    }
}

/// Returns the text of a type with the attribute of a version.
fn copy(source: &Source, kind: &Kind, item: &Item, is_spec: bool) -> String {
    let range = source.range(item);
    let text = source.text.get(range.clone()).unwrap_or_default();
    let attributes = match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => return text.to_owned(),
    };
    let mut edits = Edits::default();
    for attribute in attributes {
        let place = source.range(attribute);
        let place = place.start - range.start..place.end - range.start;
        let kept = || {
            let all = arguments(attribute).into_iter();
            let all = all.filter(|it| !OF_HUB.contains(&it.name.as_str()));
            all.filter_map(|it| source.text.get(it.range).map(str::to_owned))
        };
        if is_named(attribute, "kind") {
            let of = format!("of = super::{}", kind.name);
            let version = format!("version = \"{}\"", kind.version());
            let all: Vec<_> = [of, version].into_iter().chain(kept()).collect();
            edits.replace(place, render::attribute("opkit::version", &all));
        } else if is_named(attribute, "schema") {
            let of = format!(
                "of = super::{}",
                crate::add::defined(item).unwrap_or_default()
            );
            edits.replace(place, render::attribute("opkit::version", &[of]));
        } else if is_spec && is_named(attribute, "opkit") {
            let all: Vec<_> = kept().collect();
            if all.len() < arguments(attribute).len() {
                edits.replace(place, render::attribute("opkit", &all));
            }
        }
    }
    edits.apply(text)
}

fn identifiers(text: &str) -> Result<BTreeSet<String>> {
    fn collect(tokens: TokenStream, found: &mut BTreeSet<String>) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    found.insert(ident.to_string());
                }
                TokenTree::Group(group) => collect(group.stream(), found),
                _ => {}
            }
        }
    }
    let item: Item = syn::parse_str(text).map_err(|error| {
        Error::Project(format!("the copy of a type is not valid Rust: {error}"))
    })?;
    let mut found = BTreeSet::new();
    collect(item.to_token_stream(), &mut found);
    Ok(found)
}

/// Returns the name of an item that a version can use from its hub.
fn shared_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => Some(item.ident.to_string()),
        Item::Static(item) => Some(item.ident.to_string()),
        Item::Fn(item) => Some(item.sig.ident.to_string()),
        item => crate::add::defined(item),
    };
    // The names of attributes are not uses of functions.
    name.filter(|name| !["controller", "reconcile", "webhook", "check"].contains(&name.as_str()))
}

/// Returns the imports of the hub that a version uses.
fn imports(items: &[Item], used: &BTreeSet<String>) -> Vec<String> {
    fn walk(tree: &UseTree, path: &str, used: &BTreeSet<String>, found: &mut Vec<String>) {
        match tree {
            UseTree::Path(it) => walk(&it.tree, &format!("{path}{}::", it.ident), used, found),
            UseTree::Name(it) if used.contains(&it.ident.to_string()) => {
                found.push(format!("use {path}{};", it.ident));
            }
            UseTree::Rename(it) if used.contains(&it.rename.to_string()) => {
                found.push(format!("use {path}{} as {};", it.ident, it.rename));
            }
            UseTree::Glob(_)
                if path == "opkit::prelude::" && PRELUDE.iter().any(|it| used.contains(*it)) =>
            {
                found.push("use opkit::prelude::*;".to_owned());
            }
            UseTree::Group(group) => {
                group
                    .items
                    .iter()
                    .for_each(|tree| walk(tree, path, used, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for item in items {
        if let Item::Use(item) = item {
            walk(&item.tree, "", used, &mut found);
        }
    }
    let from_below = |line: String| match line.strip_prefix("use super::") {
        Some(rest) => format!("use super::super::{rest}"),
        None => line.replacen("use self::", "use super::", 1),
    };
    found.into_iter().map(from_below).collect()
}
