//! Which crate may depend on which.
//!
//! The table lists the crates directly below each crate. An edge to a crate further below is
//! allowed as well.

use std::collections::BTreeSet;

use super::{Package, Violation};

/// Each crate, and the crates directly below it. A new crate needs a row here, which is a design
/// change.
const CRATES: &[(&str, &[&str])] = &[
    (
        "opkit",
        &[
            "opkit-apply-types",
            "opkit-derive",
            "opkit-envtest",
            "opkit-operator",
        ],
    ),
    ("opkit-apimachinery", &[]),
    ("opkit-apiserver", &["opkit-cel", "opkit-random"]),
    ("opkit-apply-types", &[]),
    ("opkit-cache", &["opkit-client"]),
    ("opkit-cel", &["opkit-apimachinery", "opkit-syntax"]),
    (
        "opkit-cli",
        &[
            "opkit",
            "opkit-apiserver",
            "opkit-client",
            "opkit-crds",
            "opkit-dashboard",
            "opkit-debug",
            "opkit-deploy",
            "opkit-doctor",
            "opkit-envtest",
            "opkit-manifests",
            "opkit-scaffold",
        ],
    ),
    ("opkit-certificates", &["opkit-client"]),
    ("opkit-client", &["opkit-apimachinery", "opkit-random"]),
    (
        "opkit-controller",
        &[
            "opkit-cache",
            "opkit-events",
            "opkit-leaderelection",
            "opkit-servers",
            "opkit-workqueue",
        ],
    ),
    ("opkit-crds", &["opkit-cel"]),
    ("opkit-dashboard", &["opkit-debug"]),
    ("opkit-debug", &["opkit-apimachinery"]),
    ("opkit-deploy", &["opkit-client", "opkit-crds"]),
    ("opkit-derive", &["opkit-syntax"]),
    ("opkit-doctor", &["opkit-crds", "opkit-deploy"]),
    (
        "opkit-envtest",
        &["opkit-apiserver", "opkit-client", "opkit-operator"],
    ),
    ("opkit-events", &["opkit-client"]),
    ("opkit-kube-streams", &["opkit-cache", "opkit-client"]),
    ("opkit-leaderelection", &["opkit-client"]),
    ("opkit-manifests", &["opkit-apimachinery"]),
    (
        "opkit-operator",
        &[
            "opkit-certificates",
            "opkit-controller",
            "opkit-debug",
            "opkit-manifests",
            "opkit-webhook",
        ],
    ),
    ("opkit-random", &[]),
    ("opkit-scaffold", &[]),
    ("opkit-servers", &["opkit-client"]),
    ("opkit-syntax", &[]),
    ("opkit-webhook", &["opkit-controller"]),
    ("opkit-workqueue", &["opkit-random"]),
];

/// Returns the edges that the table does not allow, and the crates that are not in it.
pub(super) fn check(packages: &[Package]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in packages
        .iter()
        .filter(|package| package.manifest.starts_with("crates/"))
    {
        let mut report = |what: String| {
            violations.push(Violation {
                path: package.manifest.clone(),
                line: 1,
                what,
            });
        };
        if !CRATES.iter().any(|(name, _)| *name == package.name) {
            report(format!(
                "{} is not in the table of crates in xtask/src/tidy/crates.rs",
                package.name
            ));
            continue;
        }
        let allowed = below(&package.name);
        for dependency in &package.dependencies {
            if !allowed.contains(dependency.as_str()) {
                report(format!("{} may not depend on {dependency}", package.name));
            }
        }
    }
    violations
}

/// Returns all crates below one.
fn below(top: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![top];
    while let Some(next) = waiting.pop() {
        let direct = CRATES
            .iter()
            .filter(|(name, _)| *name == next)
            .flat_map(|(_, below)| *below);
        for below in direct {
            if found.insert(*below) {
                waiting.push(below);
            }
        }
    }
    found
}
