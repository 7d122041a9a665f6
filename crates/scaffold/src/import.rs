//! `opkit import`: the opkit project of a kubebuilder project.
//!
//! Types come from the CRDs, controllers and webhooks from the `PROJECT` file and the Go code.
//! Bodies of Go functions become comments, beside a function that does nothing yet. What a person
//! has to port is listed in [`Imported::unported`] and in the README of the new project.

use crate::dependency::Dependency;
use crate::new::NewProject;
use crate::render::fill;
use crate::tree::Tree;
use crate::{Error, Outcome, Result, manifest, names};

mod code;
mod controller;
mod go;
mod kind;
mod library;
mod project;
mod rbac;
mod sample;
mod target;
mod webhook;

#[cfg(test)]
mod tests;

pub use project::KubebuilderProject;

use kind::Functions;
use target::Target;

/// Options of the opkit project of a kubebuilder project.
///
/// # Examples
/// ```
/// use opkit_scaffold::{Dependency, Import, KubebuilderProject, Tree};
///
/// let mut files = Tree::default();
/// files.insert("PROJECT", "version: \"3\"\nprojectName: robot-operator\ndomain: example.com\n");
/// let project = KubebuilderProject::of(files, "go")?;
/// let imported = Import::new(Dependency::Version("0.1".to_owned())).apply(&project)?;
/// assert!(imported.outcome.changes.diff().contains("Operator::new(\"robot-operator\")"));
/// # Ok::<(), opkit_scaffold::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Import {
    /// Source of the library.
    pub opkit: Dependency,
    /// Whether the project is a workspace of its own, because a directory above it is one.
    pub is_workspace: bool,
    /// Text of a `Cargo.lock` with the versions that the library is tested with.
    pub lock_file: Option<String>,
}

/// The opkit project of a kubebuilder project.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Imported {
    /// Creation of the files.
    pub outcome: Outcome,
    /// What a person has to port, each with its place.
    pub unported: Vec<String>,
}

/// Files of the new project, and what is left to port.
#[derive(Debug, Default)]
struct Output {
    tree: Tree,
    unported: Vec<String>,
}

impl Import {
    /// Returns the options for a library.
    pub fn new(opkit: Dependency) -> Self {
        Self {
            opkit,
            is_workspace: false,
            lock_file: None,
        }
    }

    /// Returns the files of the opkit project.
    ///
    /// # Errors
    /// If the name of the project cannot be that of a package, or a file is not valid YAML.
    pub fn apply(&self, project: &KubebuilderProject) -> Result<Imported> {
        let name = project.name();
        names::check_project(name).map_err(|_| {
            let reason = format!(
                "the projectName {name:?} is not a name for a package: lower-case letters, digits and `-`, at most 50"
            );
            Error::import("PROJECT", reason)
        })?;
        let mut output = Output::default();
        let targets = target::all(project, &mut output.unported)?;
        let functions: Vec<Functions> = targets
            .iter()
            .map(|target| kind::write(project, target, &targets, &mut output))
            .collect();
        let targets: Vec<(&Target<'_>, &Functions)> = targets.iter().zip(&functions).collect();
        library::write(project, &targets, &mut output)?;
        sample::copy(&project.files, &mut output.tree);
        remarks(project, &mut output);
        self.package(project, &targets, &mut output)?;
        Ok(Imported {
            outcome: Outcome::new(&Tree::default(), &output.tree),
            unported: output.unported,
        })
    }

    /// Adds the files that do not depend on the kinds.
    fn package(
        &self,
        project: &KubebuilderProject,
        targets: &[(&Target<'_>, &Functions)],
        output: &mut Output,
    ) -> Result<()> {
        let domain = project.domain.as_deref();
        let domain = domain.filter(|it| names::check_domain(it).is_ok());
        let mut new = NewProject::new(project.name(), self.opkit.clone(), 0);
        new.is_workspace = self.is_workspace;
        let tree = &mut output.tree;
        tree.insert(
            "Cargo.toml",
            new.manifest(domain.unwrap_or(manifest::DEFAULT_DOMAIN))?,
        );
        tree.insert(".gitignore", include_str!("templates/gitignore.txt"));
        let library = project.name().replace('-', "_");
        let values = [("library", library.as_str())];
        tree.insert(
            "src/main.rs",
            fill(include_str!("templates/main.rs.txt"), &values),
        );
        let mut test = include_str!("templates/import-test.rs.txt").to_owned();
        // A control plane of a test does not have the CRDs of other projects.
        if !targets.iter().any(|(target, _)| target.is_dynamic()) {
            test += include_str!("templates/import-test-start.rs.txt");
        }
        tree.insert("tests/operator.rs", fill(&test, &values));
        if let Some(lock_file) = &self.lock_file {
            tree.insert("Cargo.lock", lock_file);
        }
        let lines = output.unported.iter().map(|it| format!("- [ ] {it}\n"));
        let unported: String = lines.collect();
        let values = [("name", project.name()), ("unported", &unported)];
        let readme = fill(include_str!("templates/import-README.md.txt"), &values);
        tree.insert("README.md", readme);
        Ok(())
    }
}

/// Adds what no other step imports.
fn remarks(project: &KubebuilderProject, output: &mut Output) {
    if let Some(lease) = code::lease(project) {
        output.unported.push(format!(
            "src/lib.rs: the Go operator elects a leader with the Lease {lease:?}: `.leader_election({lease:?})` keeps both from running at a time"
        ));
    }
    output.unported.push(
        "flags, environment variables, resources and tests of your own: cmd/main.go, config/manager, *_test.go are not imported"
            .to_owned(),
    );
}
