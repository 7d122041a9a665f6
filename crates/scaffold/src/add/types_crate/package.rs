//! The manifests of the crate with the kinds and of the operator.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::{Item, UseTree};

use super::paths;
use super::select::{Modules, Selection};
use crate::dependency::Dependency;
use crate::manifest::{self, Manifest, TYPES_MANIFEST};
use crate::tree::Tree;
use crate::{Error, Result, render};

/// Crates that need no dependency of their own.
const KNOWN: [&str; 7] = ["alloc", "core", "crate", "opkit", "self", "std", "super"];

/// Keys of the source of opkit.
const SOURCES: [&str; 7] = ["path", "git", "version", "tag", "branch", "rev", "registry"];

/// The crate with the kinds.
#[derive(Debug)]
pub(super) struct Package {
    /// Name of the package.
    pub(super) name: String,
    /// Name of the crate in Rust.
    pub(super) library: String,
    operator: String,
    manifest: String,
}

impl Package {
    pub(super) fn of(tree: &Tree, manifest: &Manifest) -> Result<Self> {
        Dependency::of_manifest(tree)?;
        let name = manifest.types_package();
        if let Some(text) = tree.get(TYPES_MANIFEST)
            && manifest::value(text, "package", "name").as_ref() != Some(&name)
        {
            let reason = format!(
                "this is not the manifest of the package {name}, which the command writes here: move the directory"
            );
            return Err(Error::source(TYPES_MANIFEST, 1, reason));
        }
        Ok(Self {
            library: name.replace('-', "_"),
            name,
            operator: manifest.package.clone(),
            manifest: tree.get("Cargo.toml").unwrap_or_default().to_owned(),
        })
    }

    /// Returns the docs of the root of the crate.
    pub(super) fn root_docs(&self) -> String {
        format!(
            "//! The kinds of {}, for it and for other operators.\n",
            self.operator
        )
    }

    /// Returns the lines of the dependencies that the items need besides opkit.
    pub(super) fn dependencies_of(
        &self,
        modules: &Modules,
        selection: &Selection,
    ) -> Result<Vec<String>> {
        let known: Vec<(String, String)> = manifest::entries(&self.manifest, "dependencies");
        let mut found = BTreeSet::new();
        for module in modules.iter() {
            for (at, item) in module.source.file.items.iter().enumerate() {
                if !selection.has(module, at) {
                    continue;
                }
                for path in paths::of(item.to_token_stream()) {
                    let Some(first) = path.segments.first() else {
                        continue;
                    };
                    let mut roots = vec![first.clone()];
                    roots.extend(roots_of(&module.source.file.items, first));
                    let is_dependency = |(name, _): &&(String, String)| {
                        roots.contains(&name.replace('-', "_")) && !KNOWN.contains(&name.as_str())
                    };
                    let Some((name, line)) = known.iter().find(is_dependency) else {
                        continue;
                    };
                    if line.contains("path") {
                        let reason = format!(
                            "a kind needs `{name}`, a dependency with a path, which opkit does not copy to {TYPES_MANIFEST}: separate them"
                        );
                        return Err(module.source.refuse(path.span, reason));
                    }
                    found.insert(line.clone());
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Writes the manifest of the crate, and the dependency of the operator on it.
    pub(super) fn write(
        &self,
        tree: &mut Tree,
        dependencies: &[String],
        is_in_workspace: bool,
    ) -> Result<()> {
        match tree.get(TYPES_MANIFEST).map(str::to_owned) {
            None => {
                let text = self.types_manifest(dependencies);
                tree.insert(TYPES_MANIFEST, text);
            }
            Some(text) => {
                let known = manifest::entries(&text, "dependencies");
                let is_new = |line: &&String| !known.iter().any(|(_, it)| it == *line);
                let new: Vec<String> = dependencies.iter().filter(is_new).cloned().collect();
                let text = manifest::add_entries(&text, "dependencies", &new);
                tree.insert(TYPES_MANIFEST, text);
            }
        }
        let mut text = self.manifest.clone();
        let entries = manifest::entries(&text, "dependencies");
        if !entries.iter().any(|(name, _)| *name == self.name) {
            let line = format!("{} = {{ path = \"types\" }}", self.name);
            text = manifest::add_entries(&text, "dependencies", &[line]);
        }
        let is_workspace = |line: &str| {
            let line = line.trim();
            line.starts_with("[workspace]") || line.starts_with("[workspace.")
        };
        if !is_in_workspace && !text.lines().any(is_workspace) {
            text = format!(
                "{}\n\n[workspace]\nmembers = [\"types\"]\n",
                text.trim_end()
            );
        }
        tree.insert("Cargo.toml", text);
        Ok(())
    }

    fn types_manifest(&self, dependencies: &[String]) -> String {
        let value = |key: &str| manifest::value(&self.manifest, "package", key);
        let source = SOURCES.iter().filter_map(|key| {
            let value = manifest::dependency(&self.manifest, "opkit", key)?;
            let value = match *key {
                "path" if !value.starts_with('/') => format!("../{value}"),
                _ => value,
            };
            Some(format!("{key} = \"{value}\""))
        });
        let source = source.collect::<Vec<_>>().join(", ");
        let more: String = dependencies
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        render::fill(
            include_str!("../../templates/types-crate.toml.txt"),
            &[
                ("name", &self.name),
                ("operator", &self.operator),
                (
                    "version",
                    &value("version").unwrap_or_else(|| "0.1.0".to_owned()),
                ),
                (
                    "edition",
                    &value("edition").unwrap_or_else(|| "2024".to_owned()),
                ),
                ("opkit", &source),
                ("kubernetes", &kubernetes(&self.manifest)),
                ("more", &more),
            ],
        )
    }
}

/// Returns the feature of the Kubernetes version that the operator chooses.
fn kubernetes(manifest: &str) -> String {
    let words = manifest.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let mut versions = words.filter(|word| {
        let digits = word.strip_prefix("v1_").unwrap_or_default();
        !digits.is_empty() && digits.chars().all(|char| char.is_ascii_digit())
    });
    versions.next().unwrap_or("v1_36").to_owned()
}

/// Returns the first segments of the paths that a name is imported by.
fn roots_of(items: &[Item], name: &str) -> Vec<String> {
    fn walk(tree: &UseTree, root: Option<&str>, name: &str, found: &mut Vec<String>) {
        let mut leaf = |ident: &syn::Ident| {
            found.push(root.map_or_else(|| ident.to_string(), str::to_owned));
        };
        match tree {
            UseTree::Path(it) => {
                let own = it.ident.to_string();
                walk(&it.tree, Some(root.unwrap_or(&own)), name, found);
            }
            UseTree::Name(it) if it.ident == name => leaf(&it.ident),
            UseTree::Rename(it) if it.rename == name => leaf(&it.ident),
            UseTree::Group(group) => {
                for tree in &group.items {
                    walk(tree, root, name, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for item in items {
        if let Item::Use(item) = item {
            walk(&item.tree, None, name, &mut found);
        }
    }
    found
}
