//! Which room may depend on which.
//!
//! The table is that of the design: each room's direct neighbours below it. An edge to a room
//! further down is fine as well, since whoever is allowed to see a room sees what it stands on.

use std::collections::BTreeSet;

use super::{Package, Violation};

/// Each room and those directly below it. A new room needs a row here, which is a design change.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "opkit",
        &["opkit-derive", "opkit-envtest", "opkit-operator"],
    ),
    ("opkit-apimachinery", &[]),
    ("opkit-apiserver", &["opkit-apimachinery", "opkit-random"]),
    ("opkit-cache", &["opkit-client"]),
    (
        "opkit-cli",
        &[
            "opkit",
            "opkit-apiserver",
            "opkit-client",
            "opkit-debug",
            "opkit-envtest",
            "opkit-manifests",
        ],
    ),
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
    ("opkit-debug", &[]),
    ("opkit-derive", &[]),
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
            "opkit-controller",
            "opkit-debug",
            "opkit-manifests",
            "opkit-webhook",
        ],
    ),
    ("opkit-random", &[]),
    ("opkit-servers", &["opkit-client"]),
    ("opkit-webhook", &["opkit-apimachinery"]),
    ("opkit-workqueue", &["opkit-random"]),
];

/// Edges that the table does not allow, and rooms that are not in it.
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
        if !ROOMS.iter().any(|(room, _)| *room == package.name) {
            report(format!(
                "{} is not in the table of rooms of xtask/src/tidy/rooms.rs",
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

/// Every room below one.
fn below(room: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![room];
    while let Some(room) = waiting.pop() {
        let neighbours = ROOMS
            .iter()
            .filter(|(name, _)| *name == room)
            .flat_map(|(_, below)| *below);
        for neighbour in neighbours {
            if found.insert(*neighbour) {
                waiting.push(neighbour);
            }
        }
    }
    found
}
