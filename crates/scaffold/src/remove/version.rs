//! `opkit remove version`.

use super::first_use;
use crate::add::{Workshop, with_arguments};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, items, kinds};

/// Removes an old version of a kind.
#[derive(Clone, Debug)]
pub struct RemoveVersion {
    /// Kind, such as `Robot`.
    pub kind: String,
    /// Version, such as `v1alpha1`.
    pub version: String,
}

impl RemoveVersion {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If objects are stored in the version, it is the newest one, or other code uses it.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let mut shop = Workshop::open(tree)?;
        let kind = kinds::find(&shop.tree, &shop.manifest, &self.kind)?;
        let version = &self.version;
        if *version == kind.version() {
            let reason = format!(
                "this is the newest version of {}, which controllers use",
                kind.name
            );
            return Err(Error::argument("VERSION", version, reason));
        }
        if !kind.other_versions().contains(version) {
            return Ok(Outcome::default());
        }
        if kind.string("storage").as_ref() == Some(version) {
            let reason = format!(
                "objects of {0} are stored in this version: `opkit edit storage {1} --kind {0}` first, release, and `opkit migrate storage`",
                kind.name,
                kind.version()
            );
            return Err(Error::argument("VERSION", version, reason));
        }
        let paths = kind.versions();
        let is_kept = |path: &String| path.rsplit("::").nth(1) != Some(version.as_str());
        let kept: Vec<String> = paths.into_iter().filter(is_kept).collect();
        let mut new = vec![("versions", format!("versions({})", kept.join(", ")))];
        if kept.is_empty() {
            new = vec![("versions", String::new()), ("storage", String::new())];
        }
        shop.edit(&kind.file, |source, edits| {
            edits.replace(kind.attribute.clone(), with_arguments(source, &kind, &new));
            if let Some(item) = items::module(kind.items(source), version) {
                edits.delete(source.lines_of(item));
            }
            Ok(())
        })?;
        let folder = kind
            .file
            .strip_suffix("/mod.rs")
            .or(kind.file.strip_suffix(".rs"));
        let folder = folder.unwrap_or(&kind.file);
        shop.tree.remove(&format!("{folder}/{version}.rs"));
        let name = kind.module.last().cloned().unwrap_or_default();
        shop.tree
            .remove(&format!("config/samples/{name}-{version}.yaml"));
        if let Some((path, line, _)) = first_use(&shop, &[version], None) {
            let reason = format!("`{version}` is used here: change this first");
            return Err(Error::source(&path, line, reason));
        }
        Ok(Outcome::new(tree, &shop.tree))
    }
}
