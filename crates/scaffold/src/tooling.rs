//! Files around a project: a workflow of GitHub, a Dockerfile, a development container.
//!
//! They are created once and belong to the project from then on: an existing file is replaced only
//! on request.

use crate::dependency::Dependency;
use crate::manifest::Manifest;
use crate::render::fill;
use crate::tree::Tree;
use crate::{Error, Outcome, Result};

#[cfg(test)]
mod tests;

const WORKFLOW: &str = ".github/workflows/ci.yaml";
const DOCKERFILE: &str = "Dockerfile";
const DOCKERIGNORE: &str = ".dockerignore";
const DEVCONTAINER: &str = ".devcontainer/devcontainer.json";

/// Paths of all files of this module.
pub(crate) const PATHS: [&str; 4] = [DEVCONTAINER, DOCKERIGNORE, WORKFLOW, DOCKERFILE];

/// Files around a project, each for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tooling {
    /// A workflow of GitHub Actions that formats, lints and tests, and checks the manifests.
    Ci,
    /// A Dockerfile of the operator, and its `.dockerignore`.
    Dockerfile,
    /// A development container.
    Devcontainer,
}

/// C library of the operator in its image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Libc {
    /// A static executable, in an image with nothing else.
    #[default]
    Musl,
    /// The C library of Debian.
    Gnu,
}

/// Adds files around a project.
#[derive(Clone, Debug)]
pub struct AddTooling {
    /// Which files.
    pub tooling: Tooling,
    /// C library of the image.
    pub libc: Libc,
    /// Directory of the manifests that the workflow checks.
    pub manifests: String,
    /// Whether files that exist are replaced.
    pub replace: bool,
}

impl AddTooling {
    /// Returns the options with the defaults of each.
    pub fn new(tooling: Tooling) -> Self {
        Self {
            tooling,
            libc: Libc::default(),
            manifests: "deploy".to_owned(),
            replace: false,
        }
    }

    /// Returns the changes of a project. Files that exist stay as they are, unless they are to be
    /// replaced.
    ///
    /// # Errors
    /// If an option is not valid, or the project does not depend on opkit.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let manifest = Manifest::of(tree)?;
        let opkit = Dependency::of_manifest(tree)?;
        let files = self.files(&manifest.package, &opkit)?;
        let mut after = tree.clone();
        for (path, text) in files {
            if self.replace || after.get(path).is_none() {
                after.insert(path, text);
            }
        }
        Ok(Outcome::new(tree, &after).with_next(self.next(&manifest.package, &opkit)))
    }

    /// Returns paths and texts of the files.
    fn files(&self, package: &str, opkit: &Dependency) -> Result<Vec<(&'static str, String)>> {
        Ok(match self.tooling {
            Tooling::Ci => vec![(WORKFLOW, self.workflow(opkit)?)],
            Tooling::Dockerfile => vec![
                (DOCKERFILE, self.dockerfile(package, opkit)),
                (
                    DOCKERIGNORE,
                    include_str!("templates/tooling/dockerignore.txt").to_owned(),
                ),
            ],
            Tooling::Devcontainer => vec![(DEVCONTAINER, devcontainer(package, opkit))],
        })
    }

    fn workflow(&self, opkit: &Dependency) -> Result<String> {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "._/-".contains(char);
        if self.manifests.is_empty()
            || self.manifests.starts_with('-')
            || !self.manifests.chars().all(is_plain)
        {
            let reason = "a directory of letters, digits, '.', '_', '-' and '/' is needed";
            return Err(Error::argument("--manifests", &self.manifests, reason));
        }
        let values = [
            ("install", opkit.install_command(None)),
            ("manifests", self.manifests.clone()),
        ];
        let values = values
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        Ok(fill(include_str!("templates/tooling/ci.yaml.txt"), &values))
    }

    fn dockerfile(&self, package: &str, opkit: &Dependency) -> String {
        let (builder, base) = match self.libc {
            Libc::Musl => ("rust:1-alpine", "gcr.io/distroless/static-debian12:nonroot"),
            Libc::Gnu => ("rust:1-bookworm", "gcr.io/distroless/cc-debian12:nonroot"),
        };
        let context = match outside(opkit) {
            Some(checkout) => {
                let place = resolve("/src", &checkout);
                format!(
                    "# The checkout of opkit is a build context of its own.\nCOPY --from=opkit . {place}\n"
                )
            }
            None => String::new(),
        };
        let values = [
            ("builder", builder),
            ("base", base),
            ("context", context.as_str()),
            ("name", package),
        ];
        fill(include_str!("templates/tooling/Dockerfile.txt"), &values)
    }

    fn next(&self, package: &str, opkit: &Dependency) -> String {
        match (self.tooling, outside(opkit)) {
            (Tooling::Ci, Some(checkout)) => format!(
                "run `opkit manifests --out {}` and commit the files; a runner does not have {checkout}: depend on opkit by git or version",
                self.manifests
            ),
            (Tooling::Ci, None) => format!(
                "run `opkit manifests --out {}`, and commit the files",
                self.manifests
            ),
            (Tooling::Dockerfile, Some(checkout)) => {
                format!("docker build --build-context opkit={checkout} -t {package}:0.1.0 .")
            }
            (Tooling::Dockerfile, None) => format!("docker build -t {package}:0.1.0 ."),
            (Tooling::Devcontainer, _) => {
                "open the directory in an editor that supports development containers".to_owned()
            }
        }
    }
}

/// Returns the text of a file for a dependency on opkit, with the directory of the manifests that
/// `present`, the text of the file in the project, names. Returns `None` if the file has no such
/// text.
pub(crate) fn generated(
    path: &str,
    present: &str,
    libc: Libc,
    package: &str,
    opkit: &Dependency,
) -> Option<String> {
    let tooling = match path {
        WORKFLOW => Tooling::Ci,
        DOCKERFILE | DOCKERIGNORE => Tooling::Dockerfile,
        DEVCONTAINER => Tooling::Devcontainer,
        _ => return None,
    };
    let mut command = AddTooling::new(tooling);
    command.libc = libc;
    let named = present.split("opkit manifests --out ").nth(1);
    if let Some(manifests) = named.and_then(|rest| rest.split_whitespace().next()) {
        command.manifests = manifests.to_owned();
    }
    let files = command.files(package, opkit).ok()?;
    let mut files = files.into_iter();
    files.find(|(name, _)| *name == path).map(|(_, text)| text)
}

/// Removes files around a project.
#[derive(Clone, Copy, Debug)]
pub struct RemoveTooling {
    /// Which files.
    pub tooling: Tooling,
}

impl RemoveTooling {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If the project has no manifest.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        Manifest::of(tree)?;
        let paths: &[&str] = match self.tooling {
            Tooling::Ci => &[WORKFLOW],
            Tooling::Dockerfile => &[DOCKERFILE, DOCKERIGNORE],
            Tooling::Devcontainer => &[DEVCONTAINER],
        };
        let mut after = tree.clone();
        for path in paths {
            after.remove(path);
        }
        Ok(Outcome::new(tree, &after))
    }
}

fn devcontainer(package: &str, opkit: &Dependency) -> String {
    let workspace = format!("/workspaces/{package}");
    // A checkout outside of the project is mounted where the path of the dependency leads to.
    let mounts = outside(opkit).map(|checkout| {
        let source = match checkout.starts_with('/') {
            true => checkout.clone(),
            false => format!("${{localWorkspaceFolder}}/{checkout}"),
        };
        let target = resolve(&workspace, &checkout);
        format!("\n  \"workspaceFolder\": \"{workspace}\",\n  \"mounts\": [\"source={source},target={target},type=bind\"],")
    });
    let values = [
        ("name", package.to_owned()),
        ("mounts", mounts.unwrap_or_default()),
        ("install", opkit.install_command(Some(&workspace))),
    ];
    let values = values
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    fill(
        include_str!("templates/tooling/devcontainer.json.txt"),
        &values,
    )
}

/// Returns the checkout that the project depends on by a path, if it is outside of the project.
fn outside(opkit: &Dependency) -> Option<String> {
    let checkout = opkit.checkout()?;
    (checkout.starts_with('/') || checkout.starts_with("..")).then_some(checkout)
}

/// Returns the absolute path that a path leads to from a directory.
fn resolve(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { directory };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
