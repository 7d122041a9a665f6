//! The crate with the types of a project, in the target directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answers, Generated};

/// Start of the program, which gets samples by their modules and prints what became of them.
const PROGRAM: &str = include_str!("program.rs.txt");

/// Crate with the types of a project.
#[derive(Debug)]
pub(super) struct Package<'a> {
    pub(super) name: &'a str,
    /// Folder of the project in the target directory.
    pub(super) directory: PathBuf,
    /// Folder of this repository.
    pub(super) root: &'a Path,
    pub(super) target: &'a Path,
}

/// What the program prints about one type.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) crd: Option<Value>,
    /// Samples after they were decoded and encoded.
    pub(super) samples: Vec<Result<Value, String>>,
}

/// Modules that did not compile, and the messages of the compiler.
#[derive(Debug, Default)]
pub(super) struct Broken {
    pub(super) modules: BTreeSet<String>,
    pub(super) errors: Vec<String>,
}

impl Package<'_> {
    fn folder(&self) -> PathBuf {
        self.directory.join("crate")
    }

    /// Returns the path of the file of a module.
    pub(super) fn module_path(&self, module: &str) -> PathBuf {
        self.folder().join(format!("src/{module}.rs"))
    }

    /// Removes the files of an earlier run.
    pub(super) fn clear(&self) -> Result<()> {
        let folder = self.folder();
        match folder.exists() {
            true => fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display())),
            false => Ok(()),
        }
    }

    /// Writes everything but the generated modules.
    pub(super) fn write(&self, types: &[Generated]) -> Result<()> {
        let folder = self.folder();
        fs::create_dir_all(folder.join("src"))?;
        let manifest = format!(
            "[package]\nname = \"types-{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
             [lib]\nname = \"types\"\n\n\
             [workspace]\n\n\
             [dependencies]\nopkit = {{ path = {:?}, features = [\"v1_36\"] }}\n\n\
             [profile.dev]\ndebug = false\n\n[profile.dev.package.\"*\"]\ndebug = false\n",
            self.name,
            self.root.join("crates/opkit")
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::copy(self.root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let (mut library, mut program) =
            ("//! Generated types.\n\n".to_owned(), PROGRAM.to_owned());
        for types in types {
            let (module, kind) = (&types.module, types.version.kind());
            writeln!(library, "pub mod {module};")?;
            let crd = match types.notes.is_without_crd() {
                true => "None".to_owned(),
                false => format!("crd::<types::{module}::{kind}>()"),
            };
            writeln!(
                program,
                "    let found = answer::<types::{module}::{kind}>({module:?}, {crd}, &samples);\n    \
                 answers.insert({module:?}.to_owned(), found);"
            )?;
        }
        program += "    println!(\"{}\", Value::from(answers));\n}\n";
        fs::write(folder.join("src/lib.rs"), library)?;
        fs::write(folder.join("src/main.rs"), program)?;
        Ok(())
    }

    /// Compiles the crate: first only its types, which is fast, and then its program. Returns the
    /// modules with errors.
    pub(super) fn compile(&self) -> Result<Broken> {
        let mut broken = Broken::default();
        for arguments in [&["check", "--lib"][..], &["build"]] {
            let output = Command::new("cargo")
                .args(arguments)
                .args(["--quiet", "--message-format", "short", "--target-dir"])
                .arg(self.target)
                .current_dir(self.folder())
                .output()
                .context("cannot run cargo")?;
            if output.status.success() {
                continue;
            }
            let text = String::from_utf8_lossy(&output.stderr);
            for line in text.lines().filter(|line| line.contains("error")) {
                if let Some((module, _)) = line
                    .strip_prefix("src/")
                    .and_then(|line| line.split_once(".rs:"))
                {
                    broken.modules.insert(module.to_owned());
                }
                broken.errors.push(line.to_owned());
            }
            ensure!(!broken.modules.is_empty(), "cargo failed: {text}");
            break;
        }
        Ok(broken)
    }

    /// Runs the program.
    pub(super) fn run(&self, types: &[Generated]) -> Result<Answers> {
        let samples: BTreeMap<&str, Vec<&Value>> = types
            .iter()
            .map(|it| {
                let samples = it.samples.iter().map(|sample| &sample.object);
                (it.module.as_str(), samples.collect())
            })
            .collect();
        let program = self.target.join(format!("debug/types-{}", self.name));
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let mut stdin = child.stdin.take().context("the program has no input")?;
        stdin.write_all(json!(samples).to_string().as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "{} failed", program.display());
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
