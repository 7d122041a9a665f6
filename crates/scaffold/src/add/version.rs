//! `opkit add version`: the kind gets a new version, and the present one a module of its own.
//!
//! The new version is the hub, so that controllers and webhooks need no change. The present
//! version stays the stored one until `opkit edit storage`.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Fields, Item, UseTree};

use super::Workshop;
use crate::kinds::{self, Kind};
use crate::source::attribute::{arguments, is_named};
use crate::source::{Edits, Source};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, items, names, parse, render};

/// Adds a version to a kind of a project.
#[derive(Clone, Debug)]
pub struct AddVersion {
    /// Kind, such as `Robot`.
    pub kind: String,
    /// New version, such as `v1`.
    pub version: String,
}

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

impl AddVersion {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If the version is not newer than those of the kind, or a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        names::check_version(&self.version)?;
        let mut shop = Workshop::open(tree)?;
        let kind = kinds::find(&shop.tree, &shop.manifest, &self.kind)?;
        let old = kind.version();
        if old == self.version || kind.other_versions().contains(&self.version) {
            return Ok(Outcome::default());
        }
        if names::priority(&self.version) < names::priority(&old) {
            let reason = format!(
                "it is older than {old}, the newest version of {}; opkit adds newer ones",
                kind.name
            );
            return Err(Error::argument("--version", &self.version, reason));
        }
        if kind.inline > 0 || kind.module.is_empty() {
            let reason = format!(
                "{} is not in a file of its own, beside which its versions are: move it to src/{}.rs",
                kind.name,
                names::module(&kind.name)
            );
            return Err(Error::source(&kind.file, 1, reason));
        }
        let source = parse(&shop.tree, &kind.file)?;
        if let Some(module) = items::module(&source.file.items, &old) {
            let reason =
                format!("there is a module `{old}` already, which is not in versions(...)");
            return Err(source.refuse(module.ident.span(), reason));
        }
        let folder = kind.file.strip_suffix("/mod.rs");
        let folder = folder
            .or(kind.file.strip_suffix(".rs"))
            .unwrap_or(&kind.file);
        let path = format!("{folder}/{old}.rs");
        if shop.tree.get(&path).is_some() {
            return Err(Error::source(&path, 1, "this file exists: rename it"));
        }
        let text = old_version(&source, &kind)?;
        Source::parse(&path, &text)?;
        shop.tree.insert(path, text);
        let version = self.version.clone();
        shop.edit(&kind.file, |source, edits| {
            items::add_module(source, &old, edits);
            edits.replace(kind.attribute.clone(), hub(source, &kind, &version));
            Ok(())
        })?;
        add_sample(&mut shop.tree, &kind, &version);
        let next = format!(
            "change {} and release; then `opkit edit storage {version} --kind {}`, release, `opkit migrate storage {}`",
            kind.spec,
            kind.name,
            kind.string("plural")
                .unwrap_or_else(|| crate::plural::regular(&kind.name))
        );
        Ok(Outcome::new(tree, &shop.tree).with_next(next))
    }
}

/// Returns the attribute of the kind with the new version.
fn hub(source: &Source, kind: &Kind, version: &str) -> String {
    let old = kind.version();
    let path = format!("{old}::{}", kind.name);
    let versions = [vec![path], kind.versions()].concat().join(", ");
    let mut new = vec![("version", format!("version = \"{version}\""))];
    new.push(("versions", format!("versions({versions})")));
    if kind.argument("storage").is_none() {
        new.push(("storage", format!("storage = \"{old}\"")));
    }
    with_arguments(source, kind, &new)
}

/// Returns the attribute of a kind, in which arguments are replaced, added, or, if they are empty,
/// removed.
pub(crate) fn with_arguments(source: &Source, kind: &Kind, new: &[(&str, String)]) -> String {
    let text = source.text.get(kind.attribute.clone()).unwrap_or_default();
    let is_line = !text.contains('\n') && !text.contains("/*");
    let replaced = |name: &str| new.iter().find(|(it, _)| *it == name).map(|(_, text)| text);
    let added = new.iter().filter(|(name, _)| kind.argument(name).is_none());
    if is_line {
        let present = kind.arguments.iter().map(|it| {
            let text = source.text.get(it.range.clone()).unwrap_or_default();
            replaced(&it.name).map_or(text.to_owned(), Clone::clone)
        });
        let all = present.chain(added.map(|(_, text)| text.clone()));
        let arguments: Vec<_> = all.filter(|text| !text.is_empty()).collect();
        let path = text.split('(').next().unwrap_or_default();
        return render::attribute(path.trim_start_matches("#["), &arguments);
    }
    let start = kind.attribute.start;
    let mut edits = Edits::default();
    let mut before = None;
    for argument in &kind.arguments {
        match replaced(&argument.name) {
            Some(text) if text.is_empty() => {
                // The comma before it goes.
                let from = before.unwrap_or(argument.range.start);
                edits.delete(from - start..argument.range.end - start);
            }
            Some(text) => {
                edits.replace(
                    argument.range.start - start..argument.range.end - start,
                    text,
                );
            }
            None => {}
        }
        before = Some(argument.range.end);
    }
    if let Some(last) = kind.arguments.last() {
        let separator = match source.is_first_on_line(last.range.start) {
            true => format!(",\n{}", source.indent(last.range.start)),
            false => ", ".to_owned(),
        };
        for (_, text) in added.filter(|(_, text)| !text.is_empty()) {
            edits.insert(last.range.end - start, format!("{separator}{text}"));
        }
    }
    let is_crlf = source.text.contains("\r\n");
    let text = edits.apply(text);
    if is_crlf {
        text.replace("\r\n", "\n")
    } else {
        text
    }
}

/// Returns the file of the version that was the hub.
fn old_version(source: &Source, kind: &Kind) -> Result<String> {
    let items = &source.file.items;
    let old = kind.version();
    let mut copied = BTreeSet::new();
    let mut texts = Vec::new();
    let mut waiting = vec![kind.spec.clone()];
    let mut used = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let Some(item) = items
            .iter()
            .find(|item| super::defined(item).as_ref() == Some(&name))
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
            let of = format!("of = super::{}", super::defined(item).unwrap_or_default());
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
        item => super::defined(item),
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

/// Gives the sample the new version, and keeps it as it is in a file of the old version.
fn add_sample(tree: &mut Tree, kind: &Kind, version: &str) {
    let name = kind.module.last().cloned().unwrap_or_default();
    let path = format!("config/samples/{name}.yaml");
    let old = format!("apiVersion: {}/{}", kind.group(), kind.version());
    let copy = format!("config/samples/{name}-{}.yaml", kind.version());
    let Some(text) = tree.get(&path).map(str::to_owned) else {
        return;
    };
    let is_kind = text
        .lines()
        .any(|line| line.trim_end() == format!("kind: {}", kind.name));
    if is_kind && text.lines().any(|line| line.trim_end() == old) && tree.get(&copy).is_none() {
        let new = format!("apiVersion: {}/{version}", kind.group());
        tree.insert(copy, text.clone());
        tree.insert(path, text.replace(&old, &new));
    }
}
