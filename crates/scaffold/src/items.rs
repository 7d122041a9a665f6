//! Edits of modules and imports.

use std::ops::Range;

use syn::{Item, ItemMod, ItemUse, UseTree};

use crate::operator;
use crate::source::{Edits, Source};

/// Returns the module `name` among the items.
pub(crate) fn module<'a>(items: &'a [Item], name: &str) -> Option<&'a ItemMod> {
    items.iter().find_map(|item| match item {
        Item::Mod(module) if module.ident == name => Some(module),
        _ => None,
    })
}

/// Adds `pub mod name;` to a file: in the order of the alphabet to its first group of modules, as
/// rustfmt sorts them.
pub(crate) fn add_module(source: &Source, name: &str, edits: &mut Edits) {
    let line = format!("pub mod {name};");
    let items = &source.file.items;
    let is_mod = |item: &&Item| matches!(item, Item::Mod(module) if module.content.is_none());
    let start = items.iter().position(|item| is_mod(&item));
    let Some(start) = start else {
        return add_first(source, &line, edits);
    };
    let group = items.iter().skip(start).take_while(is_mod);
    let before =
        group.filter(|item| matches!(item, Item::Mod(it) if it.ident.to_string().as_str() < name));
    insert_in_group(source, before.last(), items.get(start), &line, edits);
}

/// Inserts a line after an item of a group, or before the first item of the group.
fn insert_in_group(
    source: &Source,
    before: Option<&Item>,
    first: Option<&Item>,
    line: &str,
    edits: &mut Edits,
) {
    match (before, first) {
        (Some(before), _) => insert_after(source, before, line, edits),
        (None, Some(first)) => {
            let start = source.range(first).start;
            let indent = source.indent(start);
            match source.is_first_on_line(start) {
                true => {
                    let position = source.start_with_comments(start);
                    edits.insert(position, format!("{indent}{line}\n"));
                }
                false => edits.insert(start, format!("{line} ")),
            }
        }
        (None, None) => {}
    }
}

fn insert_after(source: &Source, item: &Item, line: &str, edits: &mut Edits) {
    let range = source.range(item);
    let end = source.comment_end(range.end).unwrap_or(range.end);
    let indent = match source.is_first_on_line(range.start) {
        true => source.indent(range.start),
        false => "",
    };
    edits.insert(end, format!("\n{indent}{line}"));
}

/// Adds the first module of a file: before its first item, after inner attributes and docs.
fn add_first(source: &Source, line: &str, edits: &mut Edits) {
    if let Some(first) = source.file.items.first() {
        let start = source.range(first).start;
        let position = match source.is_first_on_line(start) {
            true => source.start_with_comments(start),
            false => start,
        };
        edits.insert(position, format!("{line}\n\n"));
        return;
    }
    let end = match source.text.is_empty() || source.text.ends_with('\n') {
        true => "",
        false => "\n",
    };
    edits.insert(source.text.len(), format!("{end}{line}\n"));
}

/// Adds the import of `name` from the module `module` of the crate's root to the module that
/// contains `operator()`.
pub(crate) fn add_use(
    source: &Source,
    inline: &[String],
    is_root: bool,
    path: (&str, &str),
    edits: &mut Edits,
) {
    let (module, name) = path;
    let items = operator::items(source, inline);
    let uses: Vec<(&Item, String)> = (items.iter())
        .filter_map(|item| match item {
            Item::Use(it) if it.attrs.is_empty() => Some((item, head(&it.tree))),
            _ => None,
        })
        .collect();
    let is_own = |head: &str| {
        matches!(head, "crate" | "self" | "super")
            || is_root && self::module(&source.file.items, head).is_some()
    };
    // The style of the imports that are there: `robot::Robot`, `self::robot::Robot` or
    // `crate::robot::Robot`.
    let style = uses.iter().rev().find(|(_, head)| is_own(head));
    let prefix = match style.map(|(_, head)| head.as_str()) {
        Some("self") if is_root => "self::",
        Some("crate" | "super" | "self") => "crate::",
        Some(_) => "",
        None => "crate::",
    };
    let line = format!("use {prefix}{module}::{name};");
    if let Some((last, _)) = style {
        let group = group_of(source, &uses, last);
        let sorts_before = |item: &&&Item| sort_key(source.text_of(*item)) < sort_key(&line);
        let before = group.iter().rfind(sorts_before);
        insert_in_group(
            source,
            before.copied(),
            group.first().copied(),
            &line,
            edits,
        );
    } else if let Some((last, _)) = uses.last() {
        let range = source.range(last);
        let indent = source.indent(range.start);
        let end = source.comment_end(range.end).unwrap_or(range.end);
        edits.insert(end, format!("\n\n{indent}{line}"));
    } else if let Some(module) = items
        .iter()
        .rev()
        .find(|item| matches!(item, Item::Mod(it) if it.content.is_none()))
    {
        let range = source.range(module);
        let end = source.comment_end(range.end).unwrap_or(range.end);
        let indent = source.indent(range.start);
        edits.insert(end, format!("\n\n{indent}{line}"));
    } else if let Some(first) = items.first() {
        let start = source.range(first).start;
        let indent = source.indent(start).to_owned();
        let position = source.start_with_comments(start);
        edits.insert(position, format!("{indent}{line}\n\n"));
    }
}

/// Returns the segments of the path of an import, by which rustfmt sorts.
fn sort_key(line: &str) -> Vec<String> {
    let path = line.trim_start_matches("pub ").trim_start_matches("use ");
    let segments = path.trim_end_matches(';').split("::");
    // An underscore is before digits.
    segments.map(|it| it.replace('_', " ")).collect()
}

/// Returns the imports without a blank line between them and `member`.
fn group_of<'a>(source: &Source, uses: &[(&'a Item, String)], member: &Item) -> Vec<&'a Item> {
    let mut group: Vec<&Item> = Vec::new();
    let mut has_member = false;
    for (item, _) in uses {
        let start = source.range(*item).start;
        let is_next = group.last().is_some_and(|last| {
            let between = source.text.get(source.range(*last).end..start);
            let lines = between.map(|text| text.matches('\n').count());
            lines == Some(1) || lines == Some(0)
        });
        if !is_next {
            if has_member {
                break;
            }
            group.clear();
        }
        group.push(item);
        has_member |= std::ptr::eq(*item, member);
    }
    group
}

fn head(tree: &UseTree) -> String {
    match tree {
        UseTree::Path(path) => path.ident.to_string(),
        UseTree::Name(name) => name.ident.to_string(),
        UseTree::Rename(rename) => rename.ident.to_string(),
        UseTree::Glob(_) | UseTree::Group(_) => String::new(),
    }
}

/// Names that the imports of a file bring in, besides globs.
pub(crate) fn imported(items: &[Item]) -> Vec<String> {
    fn names(tree: &UseTree, found: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => names(&path.tree, found),
            UseTree::Name(name) => found.push(name.ident.to_string()),
            UseTree::Rename(rename) => found.push(rename.rename.to_string()),
            UseTree::Glob(_) => {}
            UseTree::Group(group) => group.items.iter().for_each(|tree| names(tree, found)),
        }
    }
    let mut found = Vec::new();
    for item in items {
        if let Item::Use(item) = item {
            names(&item.tree, &mut found);
        }
    }
    found
}

/// Removes the imports from a module of the crate's root, and returns their number.
pub(crate) fn remove_uses(
    source: &Source,
    items: &[Item],
    module: &str,
    edits: &mut Edits,
) -> usize {
    remove_leaves(source, items, edits, &|path, _| {
        let mut path = path.iter();
        match path.next().map(String::as_str) {
            Some("crate" | "self" | "super") => path.next().is_some_and(|it| it == module),
            Some(first) => first == module,
            None => false,
        }
    })
}

/// Removes the imported names that `is_removed` selects by their path and the name that they have
/// in this file. Returns their number.
pub(crate) fn remove_leaves(
    source: &Source,
    items: &[Item],
    edits: &mut Edits,
    is_removed: &dyn Fn(&[String], &str) -> bool,
) -> usize {
    let mut count = 0;
    for item in items {
        let Item::Use(it) = item else { continue };
        let mut removed = Vec::new();
        let all = collect(source, it, is_removed, &mut removed);
        count += removed.len();
        if all {
            edits.delete(source.lines_of(item));
        } else {
            removed.into_iter().for_each(|range| edits.delete(range));
        }
    }
    count
}

/// Collects the positions of the selected names; returns whether all names of the import are
/// selected.
fn collect(
    source: &Source,
    item: &ItemUse,
    is_removed: &dyn Fn(&[String], &str) -> bool,
    removed: &mut Vec<Range<usize>>,
) -> bool {
    walk(source, &item.tree, &mut Vec::new(), is_removed, removed)
}

fn walk(
    source: &Source,
    tree: &UseTree,
    path: &mut Vec<String>,
    is_removed: &dyn Fn(&[String], &str) -> bool,
    removed: &mut Vec<Range<usize>>,
) -> bool {
    match tree {
        UseTree::Path(it) => {
            path.push(it.ident.to_string());
            let all = walk(source, &it.tree, path, is_removed, removed);
            path.pop();
            all
        }
        UseTree::Group(group) => {
            let mut parts = Vec::new();
            let mut all = true;
            let mut inner = Vec::new();
            for pair in group.items.pairs() {
                let mut of_part = Vec::new();
                let is_whole = walk(source, pair.value(), path, is_removed, &mut of_part);
                let range = source.range(*pair.value());
                let comma = pair.punct().map(|comma| source.range(*comma).end);
                parts.push((range, comma, is_whole));
                all &= is_whole;
                if !is_whole {
                    inner.extend(of_part);
                }
            }
            if all {
                removed.push(source.range(group));
            } else {
                removed.extend(inner);
                removed.extend(group_parts(source, &parts));
            }
            all
        }
        UseTree::Name(it) => leaf(
            source, tree, &it.ident, &it.ident, path, is_removed, removed,
        ),
        UseTree::Rename(it) => leaf(
            source, tree, &it.ident, &it.rename, path, is_removed, removed,
        ),
        UseTree::Glob(_) => {
            let is = is_removed(path, "*");
            if is {
                removed.push(source.range(tree));
            }
            is
        }
    }
}

fn leaf(
    source: &Source,
    tree: &UseTree,
    name: &syn::Ident,
    here: &syn::Ident,
    path: &mut Vec<String>,
    is_removed: &dyn Fn(&[String], &str) -> bool,
    removed: &mut Vec<Range<usize>>,
) -> bool {
    path.push(name.to_string());
    let is = is_removed(path, &here.to_string());
    path.pop();
    if is {
        removed.push(source.range(tree));
    }
    is
}

/// Part of a group in braces: its bytes, the end of its comma, and whether it is removed.
type Part = (Range<usize>, Option<usize>, bool);

/// Returns the bytes of the removed parts of a group, each with one comma.
fn group_parts(source: &Source, parts: &[Part]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (index, (range, comma, is_removed)) in parts.iter().enumerate() {
        if !is_removed {
            continue;
        }
        let next = parts.get(index + 1).map(|(next, _, _)| next.start);
        let previous = index.checked_sub(1).and_then(|it| parts.get(it));
        found.push(match (next, previous) {
            (Some(next), _) => range.start..next,
            (None, Some((previous, _, false))) => {
                previous.end..comma.unwrap_or(range.end).min(source.text.len())
            }
            _ => range.start..comma.unwrap_or(range.end),
        });
    }
    found
}
