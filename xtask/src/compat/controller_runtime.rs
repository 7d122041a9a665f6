//! controller-runtime's own suites.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Outcome, Setup, ginkgo, module};

const MODULE: &str = "sigs.k8s.io/controller-runtime@v0.25.2";

/// Texts in the test files of a package that starts an API server.
const STARTS: [&str; 2] = ["envtest.Environment{", "&Environment{"];

/// Runs every package that starts an API server, and prints a line for each. Returns whether all
/// tests passed on the stand-ins.
pub(super) fn run(setup: &Setup) -> Result<bool> {
    let source = setup.directory.join("controller-runtime");
    module::copy(MODULE, &source)?;
    let reports = setup.directory.join("reports");
    fs::create_dir_all(&reports).context("cannot create the directory of the reports")?;
    println!("{MODULE}");
    let (mut total, mut total_real) = (Outcome::default(), Outcome::default());
    for package in packages(&source)? {
        if setup
            .only
            .as_ref()
            .is_some_and(|only| !package.contains(only))
        {
            continue;
        }
        let Some(executable) = ginkgo::build(&source, &package, &reports)? else {
            continue;
        };
        let directory = source.join(&package);
        let name = package.replace('/', "-");
        let log = reports.join(format!("{name}.log"));
        let outcome = ginkgo::run(&directory, &executable, &setup.assets, &log)?;
        let real = match &setup.real {
            Some(assets) => {
                let log = reports.join(format!("{name}-real.log"));
                Some(ginkgo::run(&directory, &executable, assets, &log)?)
            }
            None => None,
        };
        print(&package, &outcome, real.as_ref());
        for failed in &outcome.failed {
            println!("    {failed}");
        }
        add(&mut total, outcome);
        add(&mut total_real, real.unwrap_or_default());
    }
    print("all", &total, setup.real.as_ref().map(|_| &total_real));
    Ok(total.failed.is_empty())
}

/// Returns the packages whose tests start an API server, sorted by path.
fn packages(module: &Path) -> Result<Vec<String>> {
    let mut packages = Vec::new();
    let mut directories = vec![module.join("pkg")];
    while let Some(directory) = directories.pop() {
        let mut starts = false;
        let entries = fs::read_dir(&directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.to_string_lossy().ends_with("_test.go") {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                starts |= STARTS.iter().any(|start| text.contains(start));
            }
        }
        if starts {
            let package = directory.strip_prefix(module)?;
            packages.push(package.to_string_lossy().into_owned());
        }
    }
    packages.sort();
    Ok(packages)
}

fn print(package: &str, outcome: &Outcome, real: Option<&Outcome>) {
    let line = |outcome: &Outcome| {
        format!(
            "{:>4} passed {:>3} failed {:>3} skipped {:>6.1} s",
            outcome.passed,
            outcome.failed.len(),
            outcome.skipped,
            outcome.time.as_secs_f64()
        )
    };
    let real = real.map(|real| format!("   real: {}", line(real)));
    println!(
        "{package:<34} {}{}",
        line(outcome),
        real.unwrap_or_default()
    );
}

fn add(total: &mut Outcome, outcome: Outcome) {
    total.passed += outcome.passed;
    total.skipped += outcome.skipped;
    total.failed.extend(outcome.failed);
    total.time += outcome.time;
}
