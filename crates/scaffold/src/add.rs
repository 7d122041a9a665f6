//! Commands that add to a project.

use crate::kinds::{self, Kind};
use crate::manifest::Manifest;
use crate::operator::{self, Place};
use crate::source::{Edits, Source, tokens};
use crate::tree::Tree;
use crate::{Error, Result, items, names, parse};

mod api;
mod controller;
mod target;
mod types_crate;
mod version;
mod webhook;

#[cfg(test)]
mod tests;

pub use api::AddApi;
pub use controller::AddController;
pub(crate) use controller::{function_name, reconcile_name};
pub(crate) use target::Target;
pub use types_crate::AddTypesCrate;
pub use version::AddVersion;
pub(crate) use version::with_arguments;
pub use webhook::AddWebhook;

/// Project whose files a command changes.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) tree: Tree,
    pub(crate) manifest: Manifest,
    pub(crate) place: Place,
}

impl Workshop {
    pub(crate) fn open(tree: &Tree) -> Result<Self> {
        let manifest = Manifest::of(tree)?;
        Ok(Self {
            place: operator::find(tree, &manifest.root)?,
            tree: tree.clone(),
            manifest,
        })
    }

    /// Reports whether `operator()` is in the root module of the crate.
    fn is_in_root(&self) -> bool {
        self.place.file == self.manifest.root && self.place.inline.is_empty()
    }

    /// Returns the path of a function of a module, as `operator()` writes it.
    pub(crate) fn path_of(&self, module: &str, function: &str) -> String {
        match self.is_in_root() {
            true => format!("{module}::{function}"),
            false => format!("crate::{module}::{function}"),
        }
    }

    /// Edits a file by its syntax tree.
    pub(crate) fn edit(
        &mut self,
        path: &str,
        edit: impl FnOnce(&Source, &mut Edits) -> Result<()>,
    ) -> Result<()> {
        let source = parse(&self.tree, path)?;
        let mut edits = Edits::default();
        edit(&source, &mut edits)?;
        let text = edits.apply(&source.text);
        Source::parse(path, &text)?;
        self.tree.insert(path, text);
        Ok(())
    }

    /// Declares a module in the root of the crate.
    fn add_module(&mut self, module: &str) -> Result<()> {
        let root = self.manifest.root.clone();
        self.edit(&root, |source, edits| {
            if items::module(&source.file.items, module).is_none() {
                items::add_module(source, module, edits);
            }
            Ok(())
        })
    }

    /// Imports a name from a module to the module of `operator()`.
    fn add_use(&mut self, module: &str, name: &str) -> Result<()> {
        let (place, is_root) = (self.place.clone(), self.is_in_root());
        self.edit(&place.file, |source, edits| {
            let around = operator::items(source, &place.inline);
            if !items::imported(around).iter().any(|it| it == name) {
                items::add_use(source, &place.inline, is_root, (module, name), edits);
            }
            Ok(())
        })
    }

    /// Registers the result of a function of a module, such as `arm::controller()`.
    fn add_call(&mut self, method: &str, module: &str, function: &str) -> Result<()> {
        let calls = operator::calls(&self.tree, &self.place)?;
        let named = format!("{module}::{function}()");
        if calls.iter().any(|call| call.passes(method, &named)) {
            return Ok(());
        }
        let link = format!(".{method}({}())", self.path_of(module, function));
        operator::add_link(&mut self.tree, &self.place, method, &link)
    }

    /// Fails if a module of the crate's root cannot be created.
    fn check_free(&self, module: &str) -> Result<()> {
        for name in [format!("{module}.rs"), format!("{module}/mod.rs")] {
            let path = self.manifest.beside_root(&name);
            if self.tree.get(&path).is_some() {
                let reason = "this file exists, but does not define the kind: rename it, or choose another kind";
                return Err(Error::source(&path, 1, reason));
            }
        }
        let root = parse(&self.tree, &self.manifest.root)?;
        match items::module(&root.file.items, module) {
            Some(item) => {
                let reason = format!("there is a module `{module}` already: choose another kind");
                Err(root.refuse(item.ident.span(), reason))
            }
            None => Ok(()),
        }
    }

    /// Fails if a name means something else in the module of `operator()`.
    fn check_unused(&self, name: &str) -> Result<()> {
        let source = parse(&self.tree, &self.place.file)?;
        for item in operator::items(&source, &self.place.inline) {
            let is_import = items::imported(std::slice::from_ref(item))
                .iter()
                .any(|it| it == name);
            if is_import || defined(item).is_some_and(|it| it == name) {
                let line = syn::spanned::Spanned::span(item);
                let reason =
                    format!("`{name}` is the name of something else here: choose another kind");
                return Err(source.refuse(line, reason));
            }
        }
        Ok(())
    }

    /// Returns the kind of the project with this name, if its group and version are the given ones.
    pub(crate) fn own_kind(&self, name: &str, group: Option<&str>) -> Result<Option<Kind>> {
        let kinds = kinds::all(&self.tree, &self.manifest);
        let Some(kind) = kinds.into_iter().find(|it| it.name == name) else {
            return Ok(None);
        };
        match group {
            Some(group) if names::group(group, &self.manifest.domain)? != kind.group() => Ok(None),
            _ => Ok(Some(kind)),
        }
    }
}

/// Returns the name that an item defines in its module.
pub(crate) fn defined(item: &syn::Item) -> Option<String> {
    let ident = match item {
        syn::Item::Struct(it) => &it.ident,
        syn::Item::Enum(it) => &it.ident,
        syn::Item::Type(it) => &it.ident,
        syn::Item::Trait(it) => &it.ident,
        syn::Item::Union(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns the kinds of the objects in a YAML text.
pub(crate) fn parsed_yaml_kinds(text: &str) -> Vec<String> {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("kind:"));
    kinds.map(|kind| kind.trim().to_owned()).collect()
}

/// Returns the function with this name among the items.
pub(crate) fn function<'a>(items: &'a [syn::Item], name: &str) -> Option<&'a syn::ItemFn> {
    items.iter().find_map(|item| match item {
        syn::Item::Fn(function) if function.sig.ident == name => Some(function),
        _ => None,
    })
}

/// Reports whether the items import opkit's prelude.
fn has_prelude(items: &[syn::Item]) -> bool {
    items.iter().any(|item| match item {
        syn::Item::Use(item) => {
            let text = tokens(&item.tree);
            text.contains("opkit::prelude::*") || text.contains("prelude::*")
        }
        _ => false,
    })
}

/// Appends functions to the end of a file.
pub(crate) fn append(source: &Source, text: &str, edits: &mut Edits) {
    let items = &source.file.items;
    if !has_prelude(items) {
        let import = "use opkit::prelude::*;";
        let last = items.iter().rfind(|item| matches!(item, syn::Item::Use(_)));
        match (last, items.first()) {
            // An export is in a group of its own.
            (Some(syn::Item::Use(last)), _) if matches!(last.vis, syn::Visibility::Public(_)) => {
                edits.insert(source.range(last).end, format!("\n\n{import}"));
            }
            (Some(last), _) => edits.insert(source.range(last).end, format!("\n{import}")),
            (None, Some(first)) => {
                let start = source.start_with_comments(source.range(first).start);
                edits.insert(start, format!("{import}\n\n"));
            }
            (None, None) => edits.insert(source.text.len(), format!("{import}\n")),
        }
    }
    // Tests stay at the end of the file.
    let is_tests = |item: &&syn::Item| matches!(item, syn::Item::Mod(it) if it.ident == "tests");
    match items.last().filter(is_tests) {
        Some(tests) => {
            let start = source.start_with_comments(source.range(tests).start);
            let text = text.trim_start_matches('\n');
            edits.insert(start, format!("{text}\n"));
        }
        None => {
            let end = if source.text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            edits.insert(source.text.len(), format!("{end}{text}"));
        }
    }
}
