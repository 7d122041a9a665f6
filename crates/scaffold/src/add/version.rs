//! `opkit add version`: the kind gets a new version, and the present one a module of its own.
//!
//! The new version is the hub, so that controllers and webhooks need no change. The present
//! version stays the stored one until `opkit edit storage`.

use super::Workshop;
use crate::kinds::{self, Kind};
use crate::source::{Edits, Source};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, items, names, parse, render};

mod old;

use old::old_version;

/// Adds a version to a kind of a project.
#[derive(Clone, Debug)]
pub struct AddVersion {
    /// Kind, such as `Robot`.
    pub kind: String,
    /// New version, such as `v1`.
    pub version: String,
}

impl AddVersion {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If the version is not newer than those of the kind, or a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        names::check_version(&self.version)?;
        let mut shop = Workshop::open(tree)?;
        let kind = kinds::find(&shop.tree, &shop.manifest, &self.kind)?;
        let old = kind.version();
        if old == self.version || kind.other_versions().contains(&self.version) {
            return Ok(Outcome::default());
        }
        if names::priority(&self.version) < names::priority(&old) {
            let reason = format!(
                "it is older than {old}, the newest version of {}; opkit adds newer ones",
                kind.name
            );
            return Err(Error::argument("--version", &self.version, reason));
        }
        if kind.inline > 0 || kind.module.is_empty() {
            let reason = format!(
                "{} is not in a file of its own, beside which its versions are: move it to src/{}.rs",
                kind.name,
                names::module(&kind.name)
            );
            return Err(Error::source(&kind.file, 1, reason));
        }
        let source = parse(&shop.tree, &kind.file)?;
        if let Some(module) = items::module(&source.file.items, &old) {
            let reason =
                format!("there is a module `{old}` already, which is not in versions(...)");
            return Err(source.refuse(module.ident.span(), reason));
        }
        let folder = kind.file.strip_suffix("/mod.rs");
        let folder = folder
            .or(kind.file.strip_suffix(".rs"))
            .unwrap_or(&kind.file);
        let path = format!("{folder}/{old}.rs");
        if shop.tree.get(&path).is_some() {
            return Err(Error::source(&path, 1, "this file exists: rename it"));
        }
        let text = old_version(&source, &kind)?;
        Source::parse(&path, &text)?;
        shop.tree.insert(path, text);
        let version = self.version.clone();
        shop.edit(&kind.file, |source, edits| {
            items::add_module(source, &old, edits);
            edits.replace(kind.attribute.clone(), hub(source, &kind, &version));
            Ok(())
        })?;
        add_sample(&mut shop.tree, &kind, &version);
        let next = format!(
            "change {} and release; then `opkit edit storage {version} --kind {}`, release, `opkit migrate storage {}`",
            kind.spec,
            kind.name,
            kind.string("plural")
                .unwrap_or_else(|| crate::plural::regular(&kind.name))
        );
        Ok(Outcome::new(tree, &shop.tree).with_next(next))
    }
}

/// Returns the attribute of the kind with the new version.
fn hub(source: &Source, kind: &Kind, version: &str) -> String {
    let old = kind.version();
    let path = format!("{old}::{}", kind.name);
    let versions = [vec![path], kind.versions()].concat().join(", ");
    let mut new = vec![("version", format!("version = \"{version}\""))];
    new.push(("versions", format!("versions({versions})")));
    if kind.argument("storage").is_none() {
        new.push(("storage", format!("storage = \"{old}\"")));
    }
    with_arguments(source, kind, &new)
}

/// Returns the attribute of a kind, in which arguments are replaced, added, or, if they are empty,
/// removed.
pub(crate) fn with_arguments(source: &Source, kind: &Kind, new: &[(&str, String)]) -> String {
    let text = source.text.get(kind.attribute.clone()).unwrap_or_default();
    let is_line = !text.contains('\n') && !text.contains("/*");
    let replaced = |name: &str| new.iter().find(|(it, _)| *it == name).map(|(_, text)| text);
    let added = new.iter().filter(|(name, _)| kind.argument(name).is_none());
    if is_line {
        let present = kind.arguments.iter().map(|it| {
            let text = source.text.get(it.range.clone()).unwrap_or_default();
            replaced(&it.name).map_or(text.to_owned(), Clone::clone)
        });
        let all = present.chain(added.map(|(_, text)| text.clone()));
        let arguments: Vec<_> = all.filter(|text| !text.is_empty()).collect();
        let path = text.split('(').next().unwrap_or_default();
        return render::attribute(path.trim_start_matches("#["), &arguments);
    }
    let start = kind.attribute.start;
    let mut edits = Edits::default();
    let mut before = None;
    for argument in &kind.arguments {
        match replaced(&argument.name) {
            Some(text) if text.is_empty() => {
                // The comma before it goes.
                let from = before.unwrap_or(argument.range.start);
                edits.delete(from - start..argument.range.end - start);
            }
            Some(text) => {
                edits.replace(
                    argument.range.start - start..argument.range.end - start,
                    text,
                );
            }
            None => {}
        }
        before = Some(argument.range.end);
    }
    if let Some(last) = kind.arguments.last() {
        let separator = match source.is_first_on_line(last.range.start) {
            true => format!(",\n{}", source.indent(last.range.start)),
            false => ", ".to_owned(),
        };
        for (_, text) in added.filter(|(_, text)| !text.is_empty()) {
            edits.insert(last.range.end - start, format!("{separator}{text}"));
        }
    }
    let is_crlf = source.text.contains("\r\n");
    let text = edits.apply(text);
    if is_crlf {
        text.replace("\r\n", "\n")
    } else {
        text
    }
}

/// Gives the sample the new version, and keeps it as it is in a file of the old version.
fn add_sample(tree: &mut Tree, kind: &Kind, version: &str) {
    let name = kind.module.last().cloned().unwrap_or_default();
    let path = format!("config/samples/{name}.yaml");
    let old = format!("apiVersion: {}/{}", kind.group(), kind.version());
    let copy = format!("config/samples/{name}-{}.yaml", kind.version());
    let Some(text) = tree.get(&path).map(str::to_owned) else {
        return;
    };
    let is_kind = text
        .lines()
        .any(|line| line.trim_end() == format!("kind: {}", kind.name));
    if is_kind && text.lines().any(|line| line.trim_end() == old) && tree.get(&copy).is_none() {
        let new = format!("apiVersion: {}/{version}", kind.group());
        tree.insert(copy, text.clone());
        tree.insert(path, text.replace(&old, &new));
    }
}
