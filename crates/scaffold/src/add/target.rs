//! The kind that a controller or a webhook is added for.

use super::Workshop;
use crate::source::Source;
use crate::{Error, Result, built_in, items, names};

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
            let file = shop.manifest.operator_file(&shop.tree, &own.file);
            if shop.tree.get(&file).is_none() {
                let reason = format!(
                    "the functions for {kind} belong in {file}, which does not exist: create it with `pub use {}::{}::*;`",
                    shop.manifest.types_package().replace('-', "_"),
                    own.path()
                );
                return Err(Error::source(&own.file, 1, reason));
            }
            return Ok(Self {
                kind: own.name.clone(),
                module: own.path(),
                file,
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
            let template = include_str!("../templates/foreign-test.rs.txt");
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
