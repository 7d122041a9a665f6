//! `opkit manifests`: prints the manifests of an operator, writes them to files, or checks files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use opkit_manifests::{HEADER, ManifestFile, Settings, files, kustomize, yaml};
use serde_json::json;

use super::operator::{BuiltOperator, OperatorArgs, RenderArgs};
use super::progress::Printer;
use super::{OutputFormat, image, print};
use crate::files::Files;
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
        let built = self.operator.build_for(&self.render, &printer).await?;
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
                let mut files = Files::new(directory, "yaml", HEADER);
                for file in self.files(&built, &settings, directory)? {
                    files.add(file.path, file.text);
                }
                match self.check {
                    true => Files::check(&[files], "manifests"),
                    false => files.write("manifests", &printer),
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
