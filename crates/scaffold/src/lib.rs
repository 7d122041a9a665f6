//! Projects of operators: new ones, and edits of their Rust source.
//!
//! [`NewProject`] returns the files of a project. The other commands take the files of a project
//! as a [`Tree`], and return [`Changes`], which are written all or not at all. Rust source is
//! edited at the positions of a syntax tree; text that an edit does not cover stays as it is. A
//! file that is not as expected is refused with its line and what to write by hand. [`CrdTypes`]
//! generates the Rust types of a CRD, and [`Import`] the project of a kubebuilder project.
//!
//! # Examples
//! ```
//! use opkit_scaffold::{AddApi, Dependency, NewProject};
//!
//! let opkit = Dependency::Version("0.1".to_owned());
//! let project = NewProject::new("robot-operator", opkit, 2026).tree()?;
//! assert!(project.get("src/robot.rs").is_some_and(|text| text.contains("pub struct RobotSpec")));
//!
//! let added = AddApi::new("Arm").apply(&project)?;
//! assert!(added.changes.diff().contains("+        .controller(arm::controller())"));
//! # Ok::<(), opkit_scaffold::Error>(())
//! ```

mod add;
mod built_in;
mod dependency;
mod diff;
mod edit;
mod error;
mod import;
mod items;
mod kinds;
mod manifest;
mod names;
mod new;
mod operator;
mod plural;
mod remove;
mod render;
mod source;
mod tooling;
mod tree;
mod types;
mod upgrade;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod variants;

pub use add::{AddApi, AddController, AddTypesCrate, AddVersion, AddWebhook};
pub use dependency::Dependency;
pub use edit::{Edit, EditStorage};
pub use error::{Error, Result};
pub use import::{Import, Imported, KubebuilderProject};
pub use new::{License, NewProject};
pub use plural::plural;
pub use remove::{RemoveApi, RemoveController, RemoveVersion, RemoveWebhook};
pub use render::ImageOptions;
pub use tooling::{AddTooling, Libc, RemoveTooling, Tooling};
pub use tree::{Change, Changes, Tree};
pub use types::{CrdTypes, GeneratedTypes};
pub use upgrade::Upgrade;

use source::Source;

/// Result of a command on a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Changes of files. They are empty if there is nothing to do.
    pub changes: Changes,
    /// What a person must do, such as a breaking change with what to write instead.
    pub by_hand: Vec<String>,
    /// Next step for the user.
    pub next: Option<String>,
}

impl Outcome {
    fn new(before: &Tree, after: &Tree) -> Self {
        Self {
            changes: before.changes_to(after),
            by_hand: Vec::new(),
            next: None,
        }
    }

    fn with_next(mut self, next: impl Into<String>) -> Self {
        if !self.changes.is_empty() {
            self.next = Some(next.into());
        }
        self
    }
}

/// Returns paths and texts of the Rust sources of the package, without its tests.
fn sources(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.files()
        .filter(|(path, _)| path.ends_with(".rs") && !path.starts_with("tests/"))
}

/// Parses a Rust file of a project.
fn parse(tree: &Tree, path: &str) -> Result<Source> {
    let missing = || Error::Project(format!("there is no {path}"));
    Source::parse(path, tree.get(path).ok_or_else(missing)?)
}
