//! Commands that remove from a project what the commands of `add` add.

use std::collections::BTreeSet;

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Item;

use crate::add::{Workshop, function};
use crate::source::Edits;
use crate::{Error, Result, Tree, items, parse, sources};

mod api;
mod controller;
mod version;
mod webhook;

#[cfg(test)]
mod tests;

pub use api::RemoveApi;
pub use controller::RemoveController;
pub use version::RemoveVersion;
pub use webhook::RemoveWebhook;

/// Returns the identifiers of tokens, each with its line and whether `::` follows.
fn identifiers(tokens: TokenStream, found: &mut Vec<(String, usize, bool)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) => {
                // One colon follows the name of a field or of a parameter.
                let is_path = matches!(
                    tokens.peek(),
                    Some(TokenTree::Punct(it))
                        if it.as_char() == ':' && it.spacing() == Spacing::Joint
                );
                found.push((ident.to_string(), ident.span().start().line, is_path));
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            _ => {}
        }
    }
}

/// Returns the identifiers in items other than imports.
fn used(items: &[Item]) -> BTreeSet<String> {
    let mut found = Vec::new();
    for item in items.iter().filter(|it| !matches!(it, Item::Use(_))) {
        identifiers(item.to_token_stream(), &mut found);
    }
    found.into_iter().map(|(name, _, _)| name).collect()
}

/// Removes functions from a file, private functions that only they used, and their imports.
fn prune(shop: &mut Workshop, path: &str, functions: &[String]) -> Result<()> {
    let mut waiting: Vec<String> = functions.to_vec();
    let before = used(&parse(&shop.tree, path)?.file.items);
    while let Some(name) = waiting.pop() {
        let source = parse(&shop.tree, path)?;
        let items = &source.file.items;
        let Some(item) = function(items, &name) else {
            continue;
        };
        let mut inside = Vec::new();
        identifiers(item.block.to_token_stream(), &mut inside);
        shop.edit(path, |source, edits| {
            edits.delete(source.lines_of(item));
            Ok(())
        })?;
        let rest = parse(&shop.tree, path)?;
        let mut left = Vec::new();
        identifiers(rest.file.to_token_stream(), &mut left);
        for (name, _, _) in inside {
            let uses = left.iter().filter(|(it, _, _)| *it == name).count();
            let is_private = function(&rest.file.items, &name)
                .is_some_and(|it| matches!(it.vis, syn::Visibility::Inherited));
            // One is the definition.
            if is_private && uses == 1 {
                waiting.push(name);
            }
        }
    }
    let after = used(&parse(&shop.tree, path)?.file.items);
    shop.edit(path, |source, edits| {
        let is_unused = |_: &[String], name: &str| before.contains(name) && !after.contains(name);
        items::remove_leaves(source, &source.file.items, edits, &is_unused);
        Ok(())
    })
}

/// Removes the module of a kind that the project does not define, if no function is left in it.
fn remove_empty_module(shop: &mut Workshop, path: &str, module: &str) -> Result<()> {
    let source = parse(&shop.tree, path)?;
    let is_import = |item: &Item| matches!(item, Item::Use(_));
    if !source.file.items.iter().all(is_import) {
        return Ok(());
    }
    shop.tree.remove(path);
    shop.tree.remove(&format!("tests/{module}.rs"));
    remove_module(shop, module)
}

/// Removes the declaration of a module from the crate's root.
fn remove_module(shop: &mut Workshop, module: &str) -> Result<()> {
    let root = shop.manifest.root.clone();
    shop.edit(&root, |source, edits| {
        if let Some(item) = items::module(&source.file.items, module) {
            edits.delete(source.lines_of(item));
        }
        Ok(())
    })
}

/// Removes a function from a test file, if it is there.
fn remove_test(shop: &mut Workshop, module: &str, name: &str) -> Result<()> {
    let path = format!("tests/{module}.rs");
    if shop.tree.get(&path).is_none() {
        return Ok(());
    }
    shop.edit(&path, |source, edits: &mut Edits| {
        if let Some(item) = function(&source.file.items, name) {
            edits.delete(source.lines_of(item));
        }
        Ok(())
    })
}

/// Refuses to remove a function of a module that is used otherwise than in a call of `operator()`
/// that was removed, such as in a macro.
fn refuse_use_of_function(
    before: &Tree,
    shop: &Workshop,
    module: &str,
    function: &str,
) -> Result<()> {
    let module = module.rsplit("::").next().unwrap_or(module);
    let find = |text: &str| {
        let mut found = Vec::new();
        identifiers(text.parse().unwrap_or_default(), &mut found);
        let pairs = found.iter().zip(found.iter().skip(1));
        let mut uses = pairs.filter(|((first, _, is_path), (second, _, _))| {
            *is_path && first == module && second == function
        });
        uses.next_back().map(|((_, line, _), _)| *line)
    };
    for (path, text) in sources(&shop.tree) {
        if let Some(line) = find(text) {
            let line = before.get(path).and_then(find).unwrap_or(line);
            let reason = format!("`{module}::{function}` is used here: change this first");
            return Err(Error::source(path, line, reason));
        }
    }
    Ok(())
}

/// Returns file and line of the first use of a name, or of a path that starts with a module, in the
/// sources and tests of the project.
fn first_use(
    shop: &Workshop,
    names: &[&str],
    module: Option<&str>,
) -> Option<(String, usize, String)> {
    let tests = shop
        .tree
        .files()
        .filter(|(path, _)| path.starts_with("tests/") && path.ends_with(".rs"));
    for (path, text) in sources(&shop.tree).chain(tests) {
        let Ok(tokens) = text.parse::<TokenStream>() else {
            continue;
        };
        let mut found = Vec::new();
        identifiers(tokens, &mut found);
        let is_use = |(name, _, is_path): &&(String, usize, bool)| {
            names.contains(&name.as_str()) || *is_path && module == Some(name.as_str())
        };
        if let Some((name, line, _)) = found.iter().find(is_use) {
            return Some((path.to_owned(), *line, name.clone()));
        }
    }
    None
}
