//! Commands that add to a project.

use crate::kinds::{self, Kind};
use crate::manifest::Manifest;
use crate::operator::{self, Place};
use crate::source::{Edits, Source, tokens};
use crate::tree::Tree;
use crate::{Error, Result, built_in, items, names, parse};

mod api;
mod controller;
mod version;
mod webhook;

#[cfg(test)]
mod tests;

pub use api::AddApi;
pub use controller::AddController;
pub(crate) use controller::{function_name, reconcile_name};
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
fn defined(item: &syn::Item) -> Option<String> {
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

/// Kind that a controller or a webhook is added for.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) kind: String,
    /// Path of the module with its functions.
    pub(crate) module: String,
    /// Path of the file with its functions.
    pub(crate) file: String,
    /// Import of a kind that the project does not define.
    pub(crate) import: Option<String>,
}

impl Target {
    /// Finds a kind: of the project, of Kubernetes, or by its path in Rust.
    pub(crate) fn find(
        shop: &Workshop,
        kind: &str,
        group: Option<&str>,
        version: Option<&str>,
        rust_path: Option<&str>,
    ) -> Result<Self> {
        if let Some(path) = rust_path {
            names::check_kind_name(kind)?;
            let is_path = syn::parse_str::<syn::Path>(path).is_ok();
            if !is_path || path.rsplit("::").next() != Some(kind) {
                let reason = format!(
                    "this is not the path of the type {kind}, such as cert_manager::{kind}"
                );
                return Err(Error::argument("--path", path, reason));
            }
            return Ok(Self::foreign(shop, kind, path.to_owned()));
        }
        if let Some(own) = shop.own_kind(kind, group)? {
            if own.inline > 0 || own.module.is_empty() {
                let reason = format!(
                    "{kind} is not in a file of its own, to which opkit adds functions: move it to src/{}.rs",
                    names::module(kind)
                );
                return Err(Error::source(&own.file, 1, reason));
            }
            return Ok(Self {
                kind: own.name.clone(),
                module: own.path(),
                file: own.file,
                import: None,
            });
        }
        if let Some(found) = built_in::find(kind, group, version)? {
            let path = format!("opkit::k8s_openapi::{}", found.path);
            return Ok(Self::foreign(shop, kind, path));
        }
        let group = group
            .map(|group| format!(" of the group {group}"))
            .unwrap_or_default();
        let reason = format!(
            "neither this project nor Kubernetes has this kind{group}: for a type of another crate add --path, such as --path cert_manager::Certificate"
        );
        Err(Error::argument("--kind", kind, reason))
    }

    /// Finds a kind as [`Target::find`] does, or by the file of its name.
    pub(crate) fn find_or_module(shop: &Workshop, kind: &str, group: Option<&str>) -> Result<Self> {
        names::check_kind_name(kind)?;
        let module = names::module(kind);
        let file = shop.manifest.beside_root(&format!("{module}.rs"));
        let is_own = shop.own_kind(kind, group)?.is_some();
        match shop.tree.get(&file).is_some() && !is_own {
            true => Ok(Self::foreign(shop, kind, kind.to_owned())),
            false => Self::find(shop, kind, group, None, None),
        }
    }

    fn foreign(shop: &Workshop, kind: &str, path: String) -> Self {
        let module = names::module(kind);
        Self {
            kind: kind.to_owned(),
            file: shop.manifest.beside_root(&format!("{module}.rs")),
            module,
            import: Some(path),
        }
    }

    /// Creates the module of a kind that the project does not define, if it is missing.
    pub(crate) fn ensure_module(&self, shop: &mut Workshop) -> Result<()> {
        let Some(import) = &self.import else {
            return Ok(());
        };
        if let Some(text) = shop.tree.get(&self.file) {
            let source = Source::parse(&self.file, text)?;
            return match items::imported(&source.file.items).contains(&self.kind) {
                true => Ok(()),
                false => {
                    let reason = format!(
                        "this file exists, but does not import {}: rename it",
                        self.kind
                    );
                    Err(Error::source(&self.file, 1, reason))
                }
            };
        }
        shop.check_free(&self.module)?;
        let mut imports = [
            format!("use {import};"),
            "use opkit::prelude::*;".to_owned(),
        ];
        imports.sort();
        let text = format!(
            "//! What the operator does with the kind `{}`.\n\n{}\n",
            self.kind,
            imports.join("\n")
        );
        shop.tree.insert(&self.file, text);
        let test = format!("tests/{}.rs", self.module);
        if shop.tree.get(&test).is_none() {
            let template = include_str!("templates/foreign-test.rs.txt");
            let values = [
                ("Kind", self.kind.as_str()),
                ("library", &shop.manifest.library),
            ];
            let text = crate::render::fill(template, &values);
            shop.tree.insert(test, text);
        }
        shop.add_module(&self.module)
    }
}
