//! Selects the items that move: those of the kinds, and the items that they use.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Item, UseTree};

use super::paths::{self, Path};
use crate::kinds::Kind;
use crate::manifest::{Manifest, TYPES_SOURCE};
use crate::source::Source;
use crate::tree::Tree;
use crate::{Result, sources};

/// Names of opkit that belong to controllers and webhooks.
const OF_OPERATOR: [&str; 16] = [
    "Action",
    "Admission",
    "AdmissionRequest",
    "AnyController",
    "AnyWebhook",
    "Cleanup",
    "Context",
    "Controller",
    "MapContext",
    "Operator",
    "Request",
    "RunContext",
    "Runnable",
    "StateContext",
    "Webhook",
    "WebhookContext",
];

/// File of the library, and the module that it is.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) path: Vec<String>,
    pub(super) source: Source,
    /// Names that the macros generate, by the struct that they generate them for.
    aliases: BTreeMap<String, String>,
}

/// Modules of the library.
#[derive(Debug)]
pub(super) struct Modules {
    modules: Vec<Module>,
}

impl Modules {
    pub(super) fn read(tree: &Tree, manifest: &Manifest) -> Result<Self> {
        let mut modules = Vec::new();
        let files = sources(tree).filter(|(path, _)| !path.starts_with(TYPES_SOURCE));
        for (path, text) in files {
            let Some(module) = manifest.module(path) else {
                continue;
            };
            modules.push(Module {
                path: module,
                source: Source::parse(path, text)?,
                aliases: BTreeMap::new(),
            });
        }
        for module in &mut modules {
            module.aliases = aliases(&module.source.file.items);
        }
        Ok(Self { modules })
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Module> {
        self.modules.iter()
    }

    pub(super) fn of_file(&self, path: &str) -> Option<&Module> {
        self.iter().find(|it| it.source.path == path)
    }

    fn at(&self, path: &[String]) -> Option<&Module> {
        self.iter().find(|it| it.path == path)
    }

    /// Returns the module and the name that a path leads to, if it leads to an item of the library.
    fn resolve<'a>(&'a self, from: &Module, path: &[String]) -> Option<(&'a Module, String)> {
        let mut at = from.path.clone();
        let mut rest = path.iter().peekable();
        match rest.peek()?.as_str() {
            "crate" => {
                at.clear();
                rest.next();
            }
            "self" => {
                rest.next();
            }
            "super" => {}
            name if from.declares(name) => {}
            _ => return None,
        }
        while rest.next_if(|it| *it == "super").is_some() {
            at.pop()?;
        }
        while let Some(name) = rest.next() {
            at.push(name.clone());
            if self.at(&at).is_none() || rest.peek().is_none() {
                // A path that ends with a module leads to its declaration.
                let name = at.pop()?;
                return Some((self.at(&at)?, name));
            }
        }
        None
    }
}

impl Module {
    /// Reports whether the file declares a module in another file.
    pub(super) fn declares(&self, name: &str) -> bool {
        let module = crate::items::module(&self.source.file.items, name);
        module.is_some_and(|it| it.content.is_none())
    }

    /// Returns the position of the item that defines a name. A module in another file is not one.
    fn item(&self, name: &str) -> Option<usize> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        let mut items = self.source.file.items.iter();
        items.position(|item| {
            let is_file = matches!(item, Item::Mod(it) if it.content.is_none());
            !is_file && self::name(item).is_some_and(|it| it == name)
        })
    }

    /// Returns the paths that a name was imported by, and those of globs.
    fn imported(&self, name: &str) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for item in &self.source.file.items {
            if let Item::Use(item) = item {
                imports(&item.tree, &mut Vec::new(), name, &mut found);
            }
        }
        found
    }
}

/// Returns the name of an item.
pub(super) fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Mod(it) => &it.ident,
        Item::Static(it) => &it.ident,
        Item::Macro(it) => it.ident.as_ref()?,
        item => return super::super::defined(item),
    };
    Some(ident.to_string())
}

/// Returns the names that the macros generate.
fn aliases(items: &[Item]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in items {
        let Item::Struct(item) = item else { continue };
        let is = |name: &str| {
            let mut attributes = item.attrs.iter();
            attributes.any(|it| crate::source::attribute::is_named(it, name))
        };
        let name = item.ident.to_string();
        if is("kind") || is("version") {
            let kind = name.strip_suffix("Spec").unwrap_or(&name).to_owned();
            found.insert(format!("{kind}Apply"), name.clone());
            found.insert(format!("{kind}Client"), name.clone());
            found.insert(kind, name.clone());
        }
        found.insert(format!("{name}Apply"), name);
    }
    found
}

fn imports(tree: &UseTree, path: &mut Vec<String>, name: &str, found: &mut Vec<Vec<String>>) {
    let mut leaf =
        |ident: &syn::Ident| found.push([path.clone(), vec![ident.to_string()]].concat());
    match tree {
        UseTree::Path(it) => {
            path.push(it.ident.to_string());
            imports(&it.tree, path, name, found);
            path.pop();
        }
        UseTree::Name(it) if it.ident == name => leaf(&it.ident),
        UseTree::Rename(it) if it.rename == name => leaf(&it.ident),
        UseTree::Glob(_) => found.push([path.clone(), vec![name.to_owned()]].concat()),
        UseTree::Group(group) => {
            for tree in &group.items {
                imports(tree, path, name, found);
            }
        }
        _ => {}
    }
}

/// Items that move, by their files.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) files: BTreeMap<String, BTreeSet<usize>>,
}

impl Selection {
    /// Selects the items of the kinds.
    pub(super) fn of_kinds(modules: &Modules, kinds: &[Kind]) -> Result<Self> {
        let mut selection = Self::default();
        let mut waiting: Vec<(&Module, usize)> = Vec::new();
        for kind in kinds {
            let module = modules.of_file(&kind.file);
            waiting.extend(module.and_then(|it| Some((it, it.item(&kind.spec)?))));
        }
        loop {
            while let Some((module, at)) = waiting.pop() {
                let Some(item) = module.source.file.items.get(at) else {
                    continue;
                };
                let file = selection.files.entry(module.source.path.clone());
                if !file.or_default().insert(at) {
                    continue;
                }
                for path in paths::of(item.to_token_stream()) {
                    check(module, item, &path)?;
                    waiting.extend(uses(modules, module, &path));
                }
            }
            for module in modules.iter() {
                waiting.extend(selection.impls(modules, module)?);
            }
            if waiting.is_empty() {
                return Ok(selection);
            }
        }
    }

    pub(super) fn has(&self, module: &Module, at: usize) -> bool {
        let items = self.files.get(&module.source.path);
        items.is_some_and(|items| items.contains(&at))
    }

    /// Returns the implementations in a module that have to be in the crate of the types.
    fn impls<'a>(
        &self,
        modules: &'a Modules,
        module: &'a Module,
    ) -> Result<Vec<(&'a Module, usize)>> {
        let mut found = Vec::new();
        for (at, item) in module.source.file.items.iter().enumerate() {
            let Item::Impl(block) = item else { continue };
            if self.has(module, at) {
                continue;
            }
            let is_moved = |path: &Path| {
                let mut targets = uses(modules, module, path);
                targets.any(|(module, at)| self.has(module, at))
            };
            let of_type = paths::of(block.self_ty.to_token_stream());
            let Some(path) = of_type.iter().find(|it| is_moved(it)) else {
                continue;
            };
            // A trait of the operator is implemented there.
            let is_of_operator = block.trait_.as_ref().is_some_and(|(path, _)| {
                let paths = paths::of(path.to_token_stream());
                let mut paths = paths.iter();
                let is_own = |path: &Path| uses(modules, module, path).next().is_some();
                paths.any(|path| is_own(path) && !is_moved(path))
            });
            if is_of_operator {
                continue;
            }
            if !self.files.contains_key(&module.source.path) {
                let name = path.segments.last().map_or("", String::as_str);
                let reason = format!(
                    "this implements something for {name}, which only the crate with the kinds can do: move it to the file of {name}"
                );
                return Err(module.source.refuse(item.span(), reason));
            }
            found.push((module, at));
        }
        Ok(found)
    }
}

/// Fails if an item that has to move belongs to controllers.
fn check(module: &Module, item: &Item, path: &Path) -> Result<()> {
    let is_opkit = match path.segments.as_slice() {
        [name] => OF_OPERATOR.contains(&name.as_str()) && is_of_opkit(module, name),
        [first, .., last] => first == "opkit" && OF_OPERATOR.contains(&last.as_str()),
        [] => false,
    };
    if !is_opkit {
        return Ok(());
    }
    let what = path.segments.last().map_or("", String::as_str);
    let name = name(item).map_or("this".to_owned(), |name| format!("`{name}`"));
    let reason = format!(
        "a kind needs {name}, which uses `{what}` of the controllers: separate them, so that only the part without `{what}` is needed"
    );
    Err(module.source.refuse(path.span, reason))
}

/// Reports whether a name of opkit is not hidden by an item of the file, and is imported.
fn is_of_opkit(module: &Module, name: &str) -> bool {
    let imported = module.imported(name);
    module.item(name).is_none()
        && imported
            .iter()
            .any(|path| path.first().is_some_and(|it| it == "opkit"))
}

/// Returns the items that a path in a module may lead to.
fn uses<'a>(
    modules: &'a Modules,
    module: &'a Module,
    path: &Path,
) -> impl Iterator<Item = (&'a Module, usize)> + use<'a> {
    let segments = path.segments.as_slice();
    let mut found = Vec::new();
    let mut add = |target: Option<(&'a Module, String)>| {
        let item = target.and_then(|(module, name)| Some((module, module.item(&name)?)));
        found.extend(item);
    };
    add(modules.resolve(module, segments));
    if let Some(first) = segments.first() {
        if !module.declares(first) {
            add(Some((module, first.clone())));
        }
        for path in module.imported(first) {
            let path = [path, segments.get(1..).unwrap_or_default().to_vec()].concat();
            // Either the path of an item, or the item with one of its functions or variants.
            add(modules.resolve(module, &path));
            for end in 1..path.len() {
                add(modules.resolve(module, path.get(..end).unwrap_or_default()));
            }
        }
        for end in 1..segments.len() {
            add(modules.resolve(module, segments.get(..end).unwrap_or_default()));
        }
    }
    found.into_iter()
}
