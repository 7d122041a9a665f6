//! Types from CRDs: `opkit types from-crd` on all CRDs of other projects.
//!
//! The types of a project are one crate in the target directory. Its program prints the CRD of each
//! type, and decodes and encodes the samples of the project; both are compared with the original.

mod compare;
mod crds;
mod notes;
mod package;
mod samples;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use self::crds::{Crd, Version};
use self::notes::Notes;
use self::package::{Answer, Package};
use self::samples::Sample;
use super::module;

/// Project whose CRDs become types.
#[derive(Debug)]
struct Project {
    /// Name of the package in the target directory.
    name: &'static str,
    /// Go module with the CRDs, with its version.
    module: &'static str,
    /// Folders with the CRDs.
    crds: &'static [&'static str],
    /// Folders with YAML files and Markdown pages that have objects of the kinds.
    samples: &'static [&'static str],
}

const PROJECTS: [Project; 5] = [
    Project {
        name: "cert-manager",
        module: "github.com/cert-manager/cert-manager@v1.21.2",
        crds: &["deploy/crds"],
        samples: &["deploy", "design", "test"],
    },
    Project {
        name: "gateway-api",
        module: "sigs.k8s.io/gateway-api@v1.6.3",
        crds: &["config/crd/standard"],
        samples: &["examples/standard"],
    },
    Project {
        name: "gateway-api-experimental",
        module: "sigs.k8s.io/gateway-api@v1.6.3",
        crds: &["config/crd/experimental"],
        samples: &["examples", "geps"],
    },
    Project {
        name: "cluster-api",
        module: "sigs.k8s.io/cluster-api@v1.14.2",
        crds: &[
            "core/config/crd/bases",
            "bootstrap/kubeadm/config/crd/bases",
            "controlplane/kubeadm/config/crd/bases",
            "cmd/clusterctl/config/crd/bases",
        ],
        samples: &["docs"],
    },
    Project {
        name: "prometheus-operator",
        module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        crds: &["example/prometheus-operator-crd-full"],
        samples: &["Documentation", "example"],
    },
];

/// Counts of one project.
#[derive(Debug, Default)]
struct Counts {
    types: usize,
    compiled: usize,
    equal: usize,
    /// Types with differences that their files list.
    listed: usize,
    differences: usize,
    samples: usize,
    round_tripped: usize,
    /// Samples that the schema of their own CRD does not accept.
    invalid: usize,
}

/// Generates, compiles and checks the types of all projects. Returns whether there was no failure.
pub(super) fn run(root: &Path, target: &Path, only: Option<&str>) -> Result<bool> {
    let command = super::build(root, target, "dev")?;
    let directory = target.join("compat/types");
    let mut is_success = true;
    let is_chosen = |project: &&Project| only.is_none_or(|only| project.name.contains(only));
    for project in PROJECTS.iter().filter(is_chosen) {
        let package = Package {
            name: project.name,
            directory: directory.join(project.name),
            root,
            target,
        };
        is_success &= check(project, &package, &command)
            .with_context(|| format!("cannot check the types of {}", project.name))?;
    }
    Ok(is_success)
}

/// Type of one version of a kind, and what it is compared with.
#[derive(Debug)]
struct Generated {
    version: Version,
    /// Rust module of the type.
    module: String,
    notes: Notes,
    samples: Vec<Sample>,
}

/// Checks one project, and prints its line and failures. Returns whether there was no failure.
fn check(project: &Project, package: &Package<'_>, command: &Path) -> Result<bool> {
    let source = package.directory.join("module");
    module::copy(project.module, &source)?;
    let mut crds = Vec::new();
    for folder in project.crds {
        crds.extend(crds::read(&source.join(folder))?);
    }
    let folders: Vec<PathBuf> = project.samples.iter().map(|it| source.join(it)).collect();
    let mut samples = samples::find(&folders)?;
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    let mut generated = Vec::new();
    package.clear()?;
    for crd in &crds {
        for version in crd.versions() {
            let (own, rest) = samples.into_iter().partition(|it| it.is_of(&version));
            samples = rest;
            let own: Vec<Sample> = own;
            counts.types += 1;
            match generate(crd, version, own, package, command) {
                Ok(types) => generated.push(types),
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
    }
    let broken = package.write(&generated).and_then(|()| package.compile())?;
    counts.compiled = generated.len().saturating_sub(broken.modules.len());
    failures.extend(broken.errors);
    if broken.modules.is_empty() {
        for types in &mut generated {
            let of_crd = types.version.schema();
            for mut sample in std::mem::take(&mut types.samples) {
                match samples::admit(of_crd, &mut sample.object)? {
                    Some(_) => counts.invalid += 1,
                    None => types.samples.push(sample),
                }
            }
        }
        let answers = package.run(&generated)?;
        for types in &generated {
            let answer = answers.get(&types.module);
            let answer = answer.with_context(|| format!("no answer about {}", types.module))?;
            compare_crd(types, answer, &mut counts, &mut failures);
            compare_samples(types, answer, &mut counts, &mut failures)?;
        }
    }
    print(project, crds.len(), &counts);
    for failure in &failures {
        println!("    {failure}");
    }
    Ok(failures.is_empty())
}

/// Runs the command for one version of a CRD.
fn generate(
    crd: &Crd,
    version: Version,
    samples: Vec<Sample>,
    package: &Package<'_>,
    command: &Path,
) -> Result<Generated> {
    let module = version.module();
    let path = package.module_path(&module);
    crds::generate(command, crd, &version, &path)?;
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Generated {
        notes: Notes::read(&text),
        version,
        module,
        samples,
    })
}

fn compare_crd(
    types: &Generated,
    answer: &Answer,
    counts: &mut Counts,
    failures: &mut Vec<String>,
) {
    let Some(crd) = &answer.crd else {
        // A type for clients: the file says so.
        match types.notes.is_without_crd() {
            true => counts.listed += 1,
            false => failures.push(format!("{}: the type has no CRD", types.module)),
        }
        return;
    };
    let found = compare::differences(&types.version.normal(), &compare::normal(crd));
    let schema = types.version.schema();
    let (listed, others): (Vec<_>, Vec<_>) =
        (found.into_iter()).partition(|it| types.notes.cover(schema, &it.path, &it.keyword));
    match (listed.is_empty(), others.is_empty()) {
        (true, true) => counts.equal += 1,
        (false, true) => counts.listed += 1,
        _ => {}
    }
    counts.differences += listed.len();
    let others = others.iter();
    failures.extend(others.map(|it| format!("{}: {it}", types.module)));
}

fn compare_samples(
    types: &Generated,
    answer: &Answer,
    counts: &mut Counts,
    failures: &mut Vec<String>,
) -> Result<()> {
    let schema = types.version.schema();
    counts.samples += types.samples.len();
    for (sample, answer) in types.samples.iter().zip(&answer.samples) {
        let failure = match answer {
            Err(error) => Some(error.clone()),
            Ok(encoded) => {
                let normal = |object: &Value| samples::normal(schema, object);
                compare::first_difference(&normal(&sample.object)?, &normal(encoded)?)
            }
        };
        match failure {
            None => counts.round_tripped += 1,
            Some(failure) => {
                failures.push(format!("{}: {}: {failure}", types.module, sample.origin));
            }
        }
    }
    Ok(())
}

fn print(project: &Project, crds: usize, counts: &Counts) {
    println!(
        "{}: {crds} CRDs, {} types: {} compiled, {} equal, {} with {} listed differences; {} samples: {} round-tripped; {} that their CRD refuses",
        project.name,
        counts.types,
        counts.compiled,
        counts.equal,
        counts.listed,
        counts.differences,
        counts.samples,
        counts.round_tripped,
        counts.invalid
    );
}

/// Answers of the program of a package, by the modules of the types.
type Answers = BTreeMap<String, Answer>;
