//! `opkit manifests`: prints the manifests of an operator, writes them to files, or checks files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use opkit_manifests::{HEADER, ManifestFile, Settings, files, kustomize, yaml};
use serde_json::json;

use super::operator::{BuiltOperator, OperatorArgs, RenderArgs};
use super::progress::Printer;
use super::{OutputFormat, image, print};
use crate::output;

/// What is printed, and where to.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit manifests | kubectl apply --server-side -f -
  opkit manifests --image ghcr.io/acme/robot-operator:1.0.0 --replicas 2 --out deploy
  opkit manifests --out config --kustomize          # kubebuilder's layout
  opkit manifests --out config --kustomize --check  # in CI: exits 1 if a file is not up to date")]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    render: RenderArgs,
    /// Directory to write files to, instead of standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write kustomizations like those of kubebuilder's config/
    #[arg(long, requires = "out")]
    kustomize: bool,
    /// Write nothing; exit 1 if a file in the directory differs, and name it
    #[arg(long, requires = "out")]
    check: bool,
    /// Print all objects as one document [default: YAML, one document for each object]
    #[arg(long, short, value_name = "FORMAT", conflicts_with = "out")]
    output: Option<OutputFormat>,
}

impl ManifestsArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let printer = Printer::new(true);
        let built = self
            .operator
            .build(&self.render.arguments, &printer)
            .await?;
        let settings = built.settings(&self.render)?;
        let chosen = settings.image.clone().unwrap_or_default();
        if !image::has_registry(&chosen) {
            let advice = "set --image, or image in [package.metadata.opkit]";
            printer.line(
                "note",
                &format!("the image {chosen} names no registry: {advice}"),
            );
        }
        match &self.out {
            Some(directory) => {
                let files = self.files(&built, &settings, directory)?;
                match self.check {
                    true => check(directory, &files),
                    false => write(directory, &files, &printer),
                }
            }
            None => self.print(&built, &settings),
        }
    }

    fn print(&self, built: &BuiltOperator, settings: &Settings) -> Result<()> {
        let objects = built.model.objects(settings).into_iter();
        let objects: Vec<_> = objects.map(|it| it.object).collect();
        match self.output {
            Some(format) => print(
                format,
                &json!({"apiVersion": "v1", "kind": "List", "items": objects}),
            ),
            None => {
                output::write(&yaml(&objects)?);
                Ok(())
            }
        }
    }

    /// Returns the files, and with kustomize the samples, unless they are in the directory already.
    fn files(
        &self,
        built: &BuiltOperator,
        settings: &Settings,
        directory: &Path,
    ) -> Result<Vec<ManifestFile>> {
        if !self.kustomize {
            return Ok(files(&built.model, settings)?);
        }
        let samples = match &built.package {
            Some(package) => package.samples()?,
            None => Vec::new(),
        };
        let mut texts = BTreeMap::new();
        for path in samples {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            texts.insert(name.into_owned(), (path, text));
        }
        let names: Vec<_> = texts.keys().cloned().collect();
        let mut files = kustomize(&built.model, settings, &names)?;
        for (name, (path, text)) in texts {
            let copy = directory.join("samples").join(&name);
            let is_same = fs::canonicalize(&copy).ok() == fs::canonicalize(&path).ok();
            if !is_same {
                files.push(ManifestFile::new(format!("samples/{name}"), text));
            }
        }
        Ok(files)
    }
}

/// Writes the files that differ, and removes those that an earlier call wrote and that are no
/// longer printed.
fn write(directory: &Path, files: &[ManifestFile], printer: &Printer) -> Result<()> {
    let (mut written, mut removed) = (0_usize, 0_usize);
    for file in files {
        let path = directory.join(&file.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == file.text) {
            continue;
        }
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, &file.text))
            .with_context(|| format!("cannot write {}", path.display()))?;
        written = written.saturating_add(1);
    }
    for path in outdated(directory, files)? {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        removed = removed.saturating_add(1);
    }
    let unchanged = files.len().saturating_sub(written);
    let counts = format!("{written} written, {removed} removed, {unchanged} unchanged");
    printer.end(&format!("manifests in {}: {counts}", directory.display()));
    Ok(())
}

/// Fails with the names of the files that differ.
fn check(directory: &Path, files: &[ManifestFile]) -> Result<()> {
    let mut different = Vec::new();
    for file in files {
        let path = directory.join(&file.path);
        match fs::read_to_string(&path) {
            Ok(text) if text == file.text => {}
            Ok(_) => different.push(format!("{} differs", path.display())),
            Err(_) => different.push(format!("{} is missing", path.display())),
        }
    }
    for path in outdated(directory, files)? {
        different.push(format!("{} is no longer printed", path.display()));
    }
    if different.is_empty() {
        return Ok(());
    }
    bail!(
        "the manifests are not up to date, run the same command without --check: {}",
        different.join(", ")
    )
}

/// Returns the files in the directory that this command wrote and that are not among `files`.
fn outdated(directory: &Path, files: &[ManifestFile]) -> Result<Vec<PathBuf>> {
    let mut outdated = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        // A directory that does not exist has no files.
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
            let path = entry.path();
            // Links are not followed: they may lead out of the directory.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
                continue;
            }
            let is_expected = files.iter().any(|file| directory.join(&file.path) == path);
            let is_yaml = path.extension().is_some_and(|it| it == "yaml");
            if !is_expected
                && is_yaml
                && fs::read_to_string(&path).is_ok_and(|text| text.starts_with(HEADER))
            {
                outdated.push(path);
            }
        }
    }
    outdated.sort();
    Ok(outdated)
}
