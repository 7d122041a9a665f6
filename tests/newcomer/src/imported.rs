//! A kubebuilder project that is imported, compiled and tested with the projects of the guides.

use std::path::{Path, PathBuf};

use crate::project::{command_in, opkit, repository, text};

/// Returns the directory of the kubebuilder project that is imported.
fn kubebuilder_project() -> PathBuf {
    let path = repository().join("crates/scaffold/src/import/shop");
    path.canonicalize().unwrap()
}

/// Imports a kubebuilder project, and returns the directory of the result.
pub(crate) fn create(parent: &Path) -> PathBuf {
    let mut import = command_in(parent, opkit());
    import.arg("import").arg(kubebuilder_project());
    let output = import.args(["--out", "imported-shop"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    parent.join("imported-shop")
}

/// Checks that the CRDs of an imported project differ from the originals, in both directions, at
/// most by the fields that the API server adds to every schema.
pub(crate) fn crds_are_the_originals(project: &Path) {
    let run = |arguments: &[&str]| {
        let mut command = command_in(project, opkit());
        command.args(arguments).output().unwrap()
    };
    let written = run(&["manifests", "--out", "generated"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let originals = kubebuilder_project().join("config/crd/bases");
    let originals = originals.to_string_lossy();
    for (before, after) in [(&*originals, "generated"), ("generated", &*originals)] {
        let checked = run(&["crd", "check", "--against", before, "--crds", after]);
        let (out, errors) = (text(&checked.stdout), text(&checked.stderr));
        for name in ["shelves.store.example.com\n", "shops.store.example.com\n"] {
            assert!(
                out.contains(name),
                "from {before} to {after}: {out}{errors}"
            );
        }
        // Below the name of each CRD: verdict, version and field.
        let mut changes = out.lines().filter_map(|line| line.strip_prefix("   "));
        let is_implicit = |line: &str| {
            let field = line.split_whitespace().nth(2).unwrap_or_default();
            line == "no changes" || [".apiVersion", ".kind", ".metadata"].contains(&field)
        };
        assert!(changes.all(is_implicit), "from {before} to {after}: {out}");
    }
}
