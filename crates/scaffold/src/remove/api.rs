//! `opkit remove api`.

use super::{first_use, remove_module};
use crate::add::{Workshop, parsed_yaml_kinds};
use crate::manifest::TYPES_ROOT;
use crate::operator::{self, Call};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, items, kinds};

/// Removes a kind with its controller, webhook, tests and samples.
#[derive(Clone, Debug)]
pub struct RemoveApi {
    /// Kind, such as `Arm`.
    pub kind: String,
}

impl RemoveApi {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If other code uses the kind, or a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let mut shop = Workshop::open(tree)?;
        let Some(kind) = shop.own_kind(&self.kind, None)? else {
            return Ok(Outcome::default());
        };
        let [module] = kind.module.as_slice() else {
            let reason = format!(
                "{} is not in a file of its own below the crate's root: remove it by hand",
                kind.name
            );
            return Err(Error::source(&kind.file, 1, reason));
        };
        let all = kinds::all(&shop.tree, &shop.manifest);
        if kind.inline > 0
            || all
                .iter()
                .any(|it| it.file == kind.file && it.name != kind.name)
        {
            let reason = format!(
                "this file does not only define {}: remove the kind by hand",
                kind.name
            );
            return Err(Error::source(&kind.file, 1, reason));
        }
        let prefix = format!("{module}::");
        let of_kind = |call: &Call| {
            let argument = call.arguments.trim_start_matches("crate::");
            call.is_crd(&kind.name)
                || ["controller", "webhook"].contains(&call.method.as_str())
                    && argument.trim_start_matches("self::").starts_with(&prefix)
        };
        operator::remove_links(&mut shop.tree, &shop.place, of_kind)?;
        let place = shop.place.clone();
        shop.edit(&place.file, |source, edits| {
            let around = operator::items(source, &place.inline);
            items::remove_uses(source, around, module, edits);
            Ok(())
        })?;
        remove_module(&mut shop, module)?;
        let operator_file = shop.manifest.operator_file(&shop.tree, &kind.file);
        if operator_file != kind.file {
            shop.edit(TYPES_ROOT, |source, edits| {
                if let Some(item) = items::module(&source.file.items, module) {
                    edits.delete(source.lines_of(item));
                }
                Ok(())
            })?;
        }
        for file in [&kind.file, &operator_file] {
            for path in files(&shop.tree, file, module, &kind.name) {
                shop.tree.remove(&path);
            }
        }
        let names = [kind.name.as_str(), kind.spec.as_str()];
        if let Some((path, line, name)) = first_use(&shop, &names, Some(module)) {
            let line = tree
                .get(&path)
                .and_then(|text| line_of(text, &name))
                .unwrap_or(line);
            let reason = format!("`{name}` is used here: change this first");
            return Err(Error::source(&path, line, reason));
        }
        Ok(Outcome::new(tree, &shop.tree))
    }
}

/// Returns the last line with a word. Lines before it may be those that the command removes.
fn line_of(text: &str, word: &str) -> Option<usize> {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    let has = |line: &str| line.split(|c| !is_inner(c)).any(|it| it == word);
    let lines = text.lines().collect::<Vec<_>>();
    lines
        .iter()
        .rposition(|line| has(line))
        .map(|index| index + 1)
}

/// Returns the files of a kind: its module, its test, and samples that contain nothing else.
fn files(tree: &Tree, file: &str, module: &str, kind: &str) -> Vec<String> {
    let folder = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs"));
    let folder = format!("{}/", folder.unwrap_or(file));
    let test = format!("tests/{module}.rs");
    let is_sample = |path: &str, text: &str| {
        let kinds = parsed_yaml_kinds(text);
        path.starts_with("config/samples/")
            && !kinds.is_empty()
            && kinds.iter().all(|it| it == kind)
    };
    let of_kind = |(path, text): &(&str, &str)| {
        *path == file || path.starts_with(&folder) || *path == test || is_sample(path, text)
    };
    tree.files()
        .filter(of_kind)
        .map(|(path, _)| path.to_owned())
        .collect()
}
