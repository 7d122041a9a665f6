//! The tests that a mutant has to pass: those of its package, then the conformance suite.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;
use cargo_metadata::diagnostic::DiagnosticLevel;

use super::copy::Copy;
use super::find::Mutant;

/// Time for a suite that runs without a mutant.
const LIMIT: Duration = Duration::from_secs(600);
/// A suite that takes so many times as long as without a mutant, and `MOMENT`, has found the mutant.
const SLOWER: u32 = 3;
const MOMENT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);
const CONFORMANCE: &str = "conformance";

/// Which tests found a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    Unit,
    Conformance,
    Survived,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Found::Unit => "unit",
            Found::Conformance => "conform",
            Found::Survived => "SURVIVED",
        })
    }
}

/// Test binaries by package.
#[derive(Debug)]
pub(crate) struct Tests {
    suites: BTreeMap<String, Suite>,
}

#[derive(Debug)]
struct Suite {
    binary: PathBuf,
    /// The directory that it runs in.
    directory: PathBuf,
    limit: Duration,
}

impl Suite {
    /// Runs the suite. Returns the time that it took to pass; `None` if it fails or takes too long.
    fn run(&self, mutant: usize) -> Result<Option<Duration>> {
        let child = Command::new(&self.binary)
            .current_dir(&self.directory)
            .arg("--quiet")
            .env("OPKIT_MUTANT", mutant.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.with_context(|| format!("cannot run {}", self.binary.display()))?;
        let mut waited = Duration::ZERO;
        while waited < self.limit {
            if let Some(status) = child.try_wait()? {
                return Ok(status.success().then_some(waited));
            }
            #[allow(clippy::disallowed_methods, reason = "a command without a runtime")]
            std::thread::sleep(POLL);
            waited += POLL;
        }
        child.kill()?;
        child.wait()?;
        Ok(None)
    }
}

/// What became of a build.
#[derive(Debug)]
pub(crate) enum Built {
    Tests(Tests),
    /// The numbers of the mutants that the compiler names in its errors.
    Refused(Vec<usize>),
}

/// Returns the mutants that the compiler's errors name.
fn refused(messages: Vec<Message>) -> Result<Built> {
    let errors = messages.into_iter().filter_map(|message| match message {
        Message::CompilerMessage(it) if it.message.level == DiagnosticLevel::Error => {
            it.message.rendered
        }
        _ => None,
    });
    let errors: String = errors.collect();
    let named = errors.split("__mutant(").skip(1);
    let numbers = named.filter_map(|rest| rest.split(')').next()?.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    match numbers.is_empty() {
        true => bail!("the mutants do not compile:\n{errors}"),
        false => Ok(Built::Refused(numbers)),
    }
}

impl Tests {
    /// Builds the tests of the mutated packages, and sees that they pass while no mutant is on.
    pub(crate) fn build(copy: &Copy, mutants: &[Mutant]) -> Result<Built> {
        let mut packages: Vec<_> = mutants.iter().map(|mutant| mutant.package).collect();
        packages.push(CONFORMANCE);
        packages.dedup();
        let mut command = Command::new("cargo");
        command
            .current_dir(copy.root())
            .args(["test", "--no-run", "--message-format=json"]);
        for package in &packages {
            command.args(["--package", package]);
        }
        let output = command.args(["--lib", "--tests"]).stderr(Stdio::null());
        let output = output.output().context("cannot run cargo")?;
        let messages = Message::parse_stream(&*output.stdout);
        let messages: Vec<_> = messages.collect::<Result<_, _>>()?;
        if !output.status.success() {
            return refused(messages);
        }
        let mut suites = BTreeMap::new();
        for message in messages {
            let Message::CompilerArtifact(artifact) = message else {
                continue;
            };
            let package = artifact.target.name.replace('_', "-");
            let directory = artifact.manifest_path.parent().map(PathBuf::from);
            let (Some(executable), Some(directory)) = (artifact.executable, directory) else {
                continue;
            };
            if artifact.profile.test && packages.contains(&package.as_str()) {
                let suite = Suite {
                    binary: executable.into(),
                    directory,
                    limit: LIMIT,
                };
                suites.insert(package, suite);
            }
        }
        for (package, suite) in &mut suites {
            let Some(took) = suite.run(0)? else {
                bail!("the tests of {package} fail without a mutant");
            };
            suite.limit = took * SLOWER + MOMENT;
        }
        Ok(Built::Tests(Tests { suites }))
    }

    /// Runs the tests with one mutant on.
    pub(crate) fn run(&self, number: usize, mutant: &Mutant) -> Result<Found> {
        if !self.pass(mutant.package, number)? {
            return Ok(Found::Unit);
        }
        // The queue's promises are its own.
        if mutant.package == "opkit-workqueue" || self.pass(CONFORMANCE, number)? {
            return Ok(Found::Survived);
        }
        Ok(Found::Conformance)
    }

    fn pass(&self, package: &str, mutant: usize) -> Result<bool> {
        let suite = self.suites.get(package);
        let suite = suite.with_context(|| format!("{package} has no tests"))?;
        Ok(suite.run(mutant)?.is_some())
    }
}
