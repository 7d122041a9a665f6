//! `opkit edit`: switches of a project.

use crate::add::{Workshop, with_arguments};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, kinds, manifest, names, operator};

#[cfg(test)]
mod tests;

/// Changes switches of a project.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Whether the operator watches one namespace.
    pub namespaced: Option<bool>,
    /// Domain of the groups of kinds that are added later.
    pub domain: Option<String>,
    /// Image of the operator, without the tag.
    pub image: Option<String>,
}

impl Edit {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If an option is not valid, or a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let mut edited = tree.clone();
        if let Some(domain) = &self.domain {
            names::check_domain(domain)?;
            set(&mut edited, "domain", domain);
        }
        if let Some(image) = &self.image {
            check_image(image)?;
            set(&mut edited, "image", image);
        }
        let Some(namespaced) = self.namespaced else {
            return Ok(Outcome::new(tree, &edited));
        };
        let mut shop = Workshop::open(&edited)?;
        let calls = operator::calls(&shop.tree, &shop.place)?;
        let is_namespaced = calls.iter().any(|call| call.method == "namespaced");
        if namespaced && !is_namespaced {
            let kinds = kinds::all(&shop.tree, &shop.manifest);
            if let Some(kind) = kinds.iter().find(|kind| !kind.is_namespaced()) {
                let reason = format!(
                    "objects of the kind {} are in no namespace, so an operator of one namespace cannot watch them",
                    kind.name
                );
                return Err(Error::argument("--namespaced", "true", reason));
            }
            operator::add_link(&mut shop.tree, &shop.place, "namespaced", ".namespaced()")?;
        } else if !namespaced && is_namespaced {
            let is_meant = |call: &operator::Call| call.method == "namespaced";
            operator::remove_links(&mut shop.tree, &shop.place, is_meant)?;
        }
        Ok(Outcome::new(tree, &shop.tree))
    }
}

fn set(tree: &mut Tree, key: &str, value: &str) {
    let text = tree.get("Cargo.toml").unwrap_or_default();
    let text = manifest::set(text, key, value);
    tree.insert("Cargo.toml", text);
}

/// Fails unless `image` is the name of an image without a tag.
fn check_image(image: &str) -> Result<()> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/:".contains(c);
    let name = image.rsplit('/').next().unwrap_or_default();
    let is_valid = !name.is_empty()
        && image.starts_with(|c: char| c.is_ascii_alphanumeric())
        && image.chars().all(is_inner);
    if !is_valid {
        let reason = "an image is lower-case letters, digits and `._-/`, such as registry.example.com/team/robot-operator";
        return Err(Error::argument("--image", image, reason));
    }
    if name.contains(':') {
        let reason = "the tag is the version of the package: leave it out";
        return Err(Error::argument("--image", image, reason));
    }
    Ok(())
}

/// Changes the version that objects of a kind are stored in.
#[derive(Clone, Debug)]
pub struct EditStorage {
    /// Kind, such as `Robot`.
    pub kind: String,
    /// Version, such as `v1`.
    pub version: String,
}

impl EditStorage {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If the kind does not have the version.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let mut shop = Workshop::open(tree)?;
        let kind = kinds::find(&shop.tree, &shop.manifest, &self.kind)?;
        let versions = [vec![kind.version()], kind.other_versions()].concat();
        if !versions.contains(&self.version) {
            let reason = format!("{} has the versions {}", kind.name, versions.join(", "));
            return Err(Error::argument("VERSION", &self.version, reason));
        }
        let stored = kind.string("storage").unwrap_or_else(|| kind.version());
        if stored == self.version {
            return Ok(Outcome::default());
        }
        let storage = format!("storage = \"{}\"", self.version);
        shop.edit(&kind.file, |source, edits| {
            let text = with_arguments(source, &kind, &[("storage", storage)]);
            edits.replace(kind.attribute.clone(), text);
            Ok(())
        })?;
        let plural = kind.string("plural");
        let plural = plural.unwrap_or_else(|| crate::plural::regular(&kind.name));
        let next =
            format!("release; then `opkit migrate storage {plural}` rewrites the stored objects");
        Ok(Outcome::new(tree, &shop.tree).with_next(next))
    }
}
