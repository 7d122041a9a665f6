//! Splits a file: the items that move, and the rest.
//!
//! Both parts are the file without the items of the other part, so that comments and formatting
//! stay.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::{Attribute, Item};

use super::package::Package;
use super::paths;
use super::select::{Module, Modules, Selection};
use crate::source::{Edits, Source};
use crate::{Result, items, names};

/// Names of the prelude that items without functions have.
const PRELUDE: [&str; 6] = [
    "Arc",
    "BTreeMap",
    "Condition",
    "Conditions",
    "Duration",
    "Quantity",
];

/// The two parts of a file.
#[derive(Debug)]
pub(super) struct Parts {
    /// Text in the crate of the types.
    pub(super) types: String,
    /// Text in the operator; `None` if nothing stays.
    pub(super) operator: Option<String>,
}

/// Splits a file. `kinds` are the names of its kinds.
pub(super) fn split(
    module: &Module,
    moved: &BTreeSet<usize>,
    kinds: &[&str],
    package: &Package,
    selection: &Selection,
    modules: &Modules,
) -> Result<Parts> {
    let source = &module.source;
    let moves_whole = moves_whole(module, moved, selection, modules);
    let (mut types, mut operator) = (Edits::default(), Edits::default());
    if !kinds.is_empty() {
        docs(source, &format!("//! {}.", title(kinds)), &mut types);
    }
    let path = [vec![package.library.clone()], module.path.clone()].concat();
    let export = exports(&path.join("::"), module, moved);
    let first = source.file.items.first();
    let start = first.map(|item| source.start_with_comments(source.range(item).start));
    operator.insert(start.unwrap_or(source.text.len()), export);
    for (at, item) in source.file.items.iter().enumerate() {
        let (in_types, in_operator) = places(module, item, moved.contains(&at), selection, modules);
        if !in_types {
            types.delete(source.lines_of(item));
        }
        if !in_operator {
            operator.delete(source.lines_of(item));
        }
    }
    let used = used(&source.file.items);
    let types = without_unused(&source.path, &types.apply(&source.text), &used, true)?;
    let operator = operator.apply(&source.text);
    let operator = match moves_whole {
        true => None,
        false => Some(without_unused(&source.path, &operator, &used, false)?),
    };
    Ok(Parts { types, operator })
}

/// Returns the lines that export what moved. A name that the prelude has too is named, because two
/// globs with one name would be ambiguous.
fn exports(path: &str, module: &Module, moved: &BTreeSet<usize>) -> String {
    let items = moved
        .iter()
        .filter_map(|at| module.source.file.items.get(*at));
    let names = items.filter_map(crate::add::defined);
    let names: BTreeSet<String> = names.filter(|it| names::is_taken(it)).collect();
    let named = names
        .iter()
        .map(|name| format!("pub use {path}::{name};\n"));
    format!("pub use {path}::*;\n{}\n", named.collect::<String>())
}

/// Selects the tests of the files that move whole.
pub(super) fn add_tests(modules: &Modules, selection: &mut Selection) {
    for module in modules.iter() {
        let moved = selection.files.get(&module.source.path).cloned();
        let Some(mut moved) = moved else { continue };
        if moves_whole(module, &moved, selection, modules) {
            let items = module.source.file.items.iter().enumerate();
            moved.extend(items.filter(|(_, item)| is_test(item)).map(|(at, _)| at));
            selection.files.insert(module.source.path.clone(), moved);
        }
    }
}

/// Reports whether nothing of a file stays. The file of a version moves whole, because its module
/// is exported with that of the kind.
fn moves_whole(
    module: &Module,
    moved: &BTreeSet<usize>,
    selection: &Selection,
    modules: &Modules,
) -> bool {
    let is_inner = !has_kind(module) && module.path.len() > 1;
    is_inner && stays_empty(module, moved, selection, modules)
}

/// Reports whether nothing but imports and tests is left in a file.
fn stays_empty(
    module: &Module,
    moved: &BTreeSet<usize>,
    selection: &Selection,
    modules: &Modules,
) -> bool {
    let mut items = module.source.file.items.iter().enumerate();
    items.all(|(at, item)| {
        let (_, in_operator) = places(module, item, moved.contains(&at), selection, modules);
        !in_operator || matches!(item, Item::Use(_)) || is_test(item)
    })
}

/// Returns whether an item is in the crate of the types, and in the operator. Imports are in both;
/// the declaration of a module is where the module has a file.
fn places(
    module: &Module,
    item: &Item,
    is_moved: bool,
    selection: &Selection,
    modules: &Modules,
) -> (bool, bool) {
    match item {
        Item::Use(_) => (true, true),
        Item::Mod(it) if it.content.is_none() => {
            let name = it.ident.to_string();
            let path = [module.path.clone(), vec![name]].concat();
            let below = |at: &&Module| at.path.starts_with(&path);
            let files: Vec<&Module> = modules.iter().filter(below).collect();
            let moved_of = |at: &Module| selection.files.get(&at.source.path);
            let has_moved = files.iter().any(|at| moved_of(at).is_some());
            // The root of the crate declares the modules of the kinds itself.
            let in_types = has_moved && !module.path.is_empty();
            let is_left = |at: &&Module| {
                let moved = moved_of(at);
                moved.is_none_or(|moved| !moves_whole(at, moved, selection, modules))
            };
            (in_types, files.is_empty() || files.iter().any(is_left))
        }
        _ => (is_moved, !is_moved),
    }
}

fn has_kind(module: &Module) -> bool {
    let is_kind = |it: &Attribute| crate::source::attribute::is_named(it, "kind");
    let mut items = module.source.file.items.iter();
    items.any(|item| matches!(item, Item::Struct(it) if it.attrs.iter().any(is_kind)))
}

fn is_test(item: &Item) -> bool {
    let is_test = |it: &Attribute| crate::source::tokens(it) == "#[cfg(test)]";
    matches!(item, Item::Mod(it) if it.attrs.iter().any(is_test))
}

/// Returns the docs of a module with kinds.
fn title(kinds: &[&str]) -> String {
    let names: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
    match names.as_slice() {
        [name] => format!("The kind {name}"),
        names => format!("The kinds {}", names.join(", ")),
    }
}

/// Replaces the docs of a file.
fn docs(source: &Source, text: &str, edits: &mut Edits) {
    let attributes = source.file.attrs.iter();
    let docs: Vec<&Attribute> = attributes.filter(|it| it.path().is_ident("doc")).collect();
    match (docs.first(), docs.last()) {
        (Some(first), Some(last)) => {
            edits.replace(source.range(*first).start..source.range(*last).end, text);
        }
        _ => edits.insert(0, format!("{text}\n\n")),
    }
}

/// Returns the identifiers in items other than imports.
fn used(items: &[Item]) -> BTreeSet<String> {
    let items = items.iter().filter(|it| !matches!(it, Item::Use(_)));
    let paths = items.flat_map(|item| paths::of(item.to_token_stream()));
    paths.flat_map(|path| path.segments).collect()
}

/// Removes the imports that a part does not use. Those of traits are used by functions without
/// their names.
fn without_unused(
    path: &str,
    text: &str,
    before: &BTreeSet<String>,
    is_types: bool,
) -> Result<String> {
    let source = Source::parse(path, text)?;
    let all = &source.file.items;
    let after = used(all);
    let is_code = |item: &Item| matches!(item, Item::Fn(_) | Item::Impl(_) | Item::Mod(_));
    let has_code = all
        .iter()
        .any(|item| is_code(item) && !is_declaration(item));
    let is_unused = |path: &[String], name: &str| match name {
        "*" => {
            let is_prelude = path.iter().any(|it| it == "prelude");
            let is_needed = has_code || PRELUDE.iter().any(|it| after.contains(*it));
            is_prelude && !is_needed
        }
        name => !after.contains(name) && (before.contains(name) || !has_code),
    };
    let mut edits = Edits::default();
    let is_export = |item: &&Item| matches!(item, Item::Use(it) if !is_types && matches!(it.vis, syn::Visibility::Public(_)));
    let imports: Vec<Item> = all.iter().filter(|it| !is_export(it)).cloned().collect();
    items::remove_leaves(&source, &imports, &mut edits, &is_unused);
    let mut text = edits.apply(text);
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    Ok(text)
}

fn is_declaration(item: &Item) -> bool {
    matches!(item, Item::Mod(it) if it.content.is_none())
}
