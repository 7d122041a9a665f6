//! Test suites for a mutant: that of its package, then the conformance suite.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
#[allow(clippy::disallowed_types, reason = "a command without a runtime")]
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;
use cargo_metadata::diagnostic::DiagnosticLevel;

use super::copy::Copy;
use super::find::Mutant;

/// Time limit of a suite without a mutant.
const LIMIT: Duration = Duration::from_secs(600);
/// Factor of a suite's time without a mutant, beyond which (plus `MOMENT`) the suite is considered
/// to hang.
const SLOWER: u32 = 6;
/// Constant part of a suite's time limit.
const MOMENT: Duration = Duration::from_secs(5);
const CONFORMANCE: &str = "conformance";

/// Suite that found a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    Unit,
    Conformance,
    /// A suite exceeded its time limit: the mutant hangs, or the machine was busy.
    Hangs,
    Survived,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unit => "unit",
            Self::Conformance => "conform",
            Self::Hangs => "hangs",
            Self::Survived => "SURVIVED",
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
    /// Directory that the suite runs in.
    directory: PathBuf,
    limit: Duration,
}

/// Result of a run of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// All tests passed, in this time.
    Passed(Duration),
    Failed,
    Hung,
}

impl Suite {
    /// Runs the suite with one mutant enabled; 0 enables none.
    #[allow(clippy::disallowed_types, reason = "a command without a runtime")]
    fn run(&self, mutant: usize) -> Result<Ran> {
        let child = Command::new(&self.binary)
            .current_dir(&self.directory)
            .env("OPKIT_MUTANT", mutant.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.with_context(|| format!("cannot run {}", self.binary.display()))?;
        let output = child.stdout.take().context("the suite has no output")?;
        let began = Instant::now();
        // The first failure is enough: the rest of the suite need not run.
        let (sender, failure) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(io::Result::ok);
            if lines.any(|line| line.ends_with("... FAILED")) {
                let _ = sender.send(());
            }
        });
        let ran = match failure.recv_timeout(self.limit) {
            Ok(()) => Ran::Failed,
            Err(mpsc::RecvTimeoutError::Timeout) => Ran::Hung,
            // The output has ended, so the suite has ended.
            Err(mpsc::RecvTimeoutError::Disconnected) => match child.wait()?.success() {
                true => Ran::Passed(began.elapsed()),
                false => Ran::Failed,
            },
        };
        child.kill()?;
        child.wait()?;
        Ok(ran)
    }
}

/// Result of a build.
#[derive(Debug)]
pub(crate) enum Built {
    Tests(Tests),
    /// Numbers of the mutants that the compiler names in its errors.
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
    /// Builds the tests of the mutated packages, and checks that they pass without a mutant.
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
            let Ran::Passed(took) = suite.run(0)? else {
                bail!("the tests of {package} fail without a mutant");
            };
            suite.limit = took * SLOWER + MOMENT;
        }
        Ok(Built::Tests(Self { suites }))
    }

    /// Runs the tests with one mutant enabled.
    pub(crate) fn run(&self, number: usize, mutant: &Mutant) -> Result<Found> {
        // The guarantees of the queue are tested by its own suite.
        let suites: &[_] = match mutant.package {
            "opkit-workqueue" => &[(mutant.package, Found::Unit)],
            package => &[(package, Found::Unit), (CONFORMANCE, Found::Conformance)],
        };
        for (package, found) in suites {
            let suite = self.suites.get(*package);
            let suite = suite.with_context(|| format!("{package} has no tests"))?;
            match suite.run(number)? {
                Ran::Passed(_) => {}
                Ran::Failed => return Ok(*found),
                Ran::Hung => return Ok(Found::Hangs),
            }
        }
        Ok(Found::Survived)
    }
}
