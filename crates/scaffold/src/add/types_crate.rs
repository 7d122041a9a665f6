//! `opkit add types-crate`: the kinds of a project move to a crate of their own.
//!
//! The items of the kinds, and the items that they use, move with their files: `src/robot.rs` is
//! split into `types/src/robot.rs` and `src/robot.rs`, which exports what moved. So paths such as
//! `crate::robot::Robot` stay valid.

use std::collections::{BTreeMap, BTreeSet};

use self::package::Package;
use self::select::{Modules, Selection};
use super::Workshop;
use crate::kinds::{self, Kind};
use crate::manifest::{TYPES_ROOT, TYPES_SOURCE};
use crate::source::{Edits, Source};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, items};

mod package;
mod paths;
mod select;
mod split;
mod visible;

#[cfg(test)]
mod tests;

/// Moves the kinds of a project to a crate that other operators can depend on.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddTypesCrate {
    /// Whether a directory above the project is a cargo workspace.
    pub is_in_workspace: bool,
}

impl AddTypesCrate {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If the kinds cannot be separated from the controllers, or a file is not as expected.
    pub fn apply(self, tree: &Tree) -> Result<Outcome> {
        let mut shop = Workshop::open(tree)?;
        let package = Package::of(&shop.tree, &shop.manifest)?;
        let all = kinds::all(&shop.tree, &shop.manifest);
        let (moved, kinds): (Vec<Kind>, Vec<Kind>) =
            (all.into_iter()).partition(|it| it.file.starts_with(TYPES_SOURCE));
        if kinds.is_empty() {
            return match moved.is_empty() {
                false => Ok(Outcome::default()),
                true => Err(Error::Project(
                    "there is no struct with #[opkit::kind(...)] to move; kinds on kube's derive are not found".to_owned(),
                )),
            };
        }
        if let Some(kind) = kinds.iter().find(|it| it.inline > 0) {
            let reason = format!(
                "{} is in a module inside of this file: move the module to a file of its own",
                kind.name
            );
            let line = crate::parse(&shop.tree, &kind.file)?.line_of(kind.attribute.start);
            return Err(Error::source(&kind.file, line, reason));
        }
        let modules = Modules::read(&shop.tree, &shop.manifest)?;
        let mut selection = Selection::of_kinds(&modules, &kinds)?;
        split::add_tests(&modules, &mut selection);
        visible::check(&modules, &selection, &shop.tree)?;
        let mut crates = package.dependencies_of(&modules, &selection)?;
        crates.sort();
        let names: BTreeSet<&str> = kinds.iter().map(|it| it.name.as_str()).collect();
        move_items(&mut shop, &modules, &selection, &kinds, &package)?;
        package.write(&mut shop.tree, &crates, self.is_in_workspace)?;
        let next = format!(
            "cargo check --workspace; another operator depends on {} and uses {}::{}",
            package.name,
            package.library,
            example(&kinds, &names)
        );
        Ok(Outcome::new(tree, &shop.tree).with_next(next))
    }
}

/// Returns the path of a kind in the new crate.
fn example(kinds: &[Kind], names: &BTreeSet<&str>) -> String {
    let first = names.iter().next().copied().unwrap_or_default();
    let kind = kinds.iter().find(|it| it.name == first);
    let module = kind.map(|it| it.module.as_slice()).unwrap_or_default();
    let path = module.iter().map(String::as_str).chain([first]);
    path.collect::<Vec<_>>().join("::")
}

/// Writes the two parts of each file.
fn move_items(
    shop: &mut Workshop,
    modules: &Modules,
    selection: &Selection,
    kinds: &[Kind],
    package: &Package,
) -> Result<()> {
    let mut new: BTreeMap<String, String> = BTreeMap::new();
    for (path, moved) in &selection.files {
        let Some(module) = modules.of_file(path) else {
            continue;
        };
        let of_file = kinds.iter().filter(|it| it.file == *path);
        let names: Vec<&str> = of_file.map(|it| it.name.as_str()).collect();
        let parts = split::split(module, moved, &names, package, selection, modules)?;
        let target = match module.path.as_slice() {
            [] => TYPES_ROOT.to_owned(),
            path => format!("{TYPES_SOURCE}{}.rs", path.join("/")),
        };
        if target != TYPES_ROOT && shop.tree.get(&target).is_some() {
            let reason = format!("this file exists, so the kinds of {path} cannot move there");
            return Err(Error::source(&target, 1, reason));
        }
        new.insert(target, parts.types);
        match parts.operator {
            Some(text) => shop.tree.insert(path, text),
            None => shop.tree.remove(path),
        }
    }
    let root = shop.tree.get(TYPES_ROOT).map(str::to_owned);
    match (root, new.get(TYPES_ROOT)) {
        (Some(_), Some(_)) => {
            let reason = "the root of the crate has kinds, and there are more in src: move these to a file of their own";
            return Err(Error::source(TYPES_ROOT, 1, reason));
        }
        (Some(root), None) => {
            new.insert(TYPES_ROOT.to_owned(), root);
        }
        (None, None) => {
            new.insert(TYPES_ROOT.to_owned(), package.root_docs());
        }
        (None, Some(_)) => {}
    }
    declare_modules(&shop.tree, &mut new)?;
    for (path, text) in new {
        Source::parse(&path, &text)?;
        shop.tree.insert(path, text);
    }
    Ok(())
}

/// Declares each file of the crate in the module above it, and creates modules that are missing.
fn declare_modules(tree: &Tree, new: &mut BTreeMap<String, String>) -> Result<()> {
    let mut waiting: Vec<String> = new.keys().cloned().collect();
    while let Some(path) = waiting.pop() {
        let Some(relative) = path.strip_prefix(TYPES_SOURCE) else {
            continue;
        };
        let relative = relative.strip_suffix(".rs").unwrap_or(relative);
        if path == TYPES_ROOT {
            continue;
        }
        let (parent, name) = match relative.rsplit_once('/') {
            Some((parent, name)) => (format!("{TYPES_SOURCE}{parent}.rs"), name),
            None => (TYPES_ROOT.to_owned(), relative),
        };
        let text = match new.get(&parent).map(String::as_str).or(tree.get(&parent)) {
            Some(text) => text.to_owned(),
            None => {
                waiting.push(parent.clone());
                "//! Kinds of the operator.\n".to_owned()
            }
        };
        let source = Source::parse(&parent, &text)?;
        let mut edits = Edits::default();
        if items::module(&source.file.items, name).is_none() {
            if source.file.items.is_empty() {
                edits.insert(text.len(), "\n");
            }
            items::add_module(&source, name, &mut edits);
        }
        new.insert(parent, edits.apply(&text));
    }
    Ok(())
}
