//! `opkit types`: Rust types of kinds that other projects define.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::{DynamicClient, Kind, ListOptions};
use opkit_scaffold::{CrdTypes, GeneratedTypes};
use serde_json::Value;

use crate::connection::ClusterArgs;
use crate::crd;
use crate::deploy::Printer;
use crate::exit::WrongUsage;
use crate::output;

/// Commands that generate types.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TypesCommand {
    /// Generate the Rust types of a CRD: structs with the docs, limits, defaults and CEL rules of
    /// the schema
    FromCrd(FromCrdArgs),
}

/// The CRD, and where its types are written.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit types from-crd certificates.yaml --out src/certificate.rs
  opkit types from-crd crds.yaml Issuer --version v1
  opkit types from-crd config/crd --out src/kinds/        # a module for each kind
  opkit types from-crd cluster certificates.cert-manager.io
  kubectl get crd certificates.cert-manager.io -o yaml | opkit types from-crd -")]
pub(crate) struct FromCrdArgs {
    /// File or directory with CRDs, `-` for standard input, or `cluster`
    source: String,
    /// Kinds, or names of CRDs [default: all]
    kinds: Vec<String>,
    /// Version of the kind [default: the version that is stored]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// File to write; for several kinds, a directory [default: print the types]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Replace files that this command did not write
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl TypesCommand {
    pub(crate) async fn run(&self) -> Result<()> {
        let Self::FromCrd(args) = self;
        args.run().await
    }
}

impl FromCrdArgs {
    async fn run(&self) -> Result<()> {
        let crds = self.chosen(self.crds().await?)?;
        let types = crds.iter().map(|crd| {
            let types = CrdTypes::new(crd);
            let types = match &self.version {
                Some(version) => types.version(version),
                None => types,
            };
            types.generate()
        });
        let types: Vec<GeneratedTypes> = types.collect::<opkit_scaffold::Result<_>>()?;
        let Some(out) = &self.out else {
            return match types.as_slice() {
                [types] => {
                    output::write(&types.source);
                    Ok(())
                }
                types => {
                    let kinds: Vec<&str> = types.iter().map(|it| it.kind.as_str()).collect();
                    bail!(
                        "{} has several kinds, {}: name one of them, or write them to a directory with --out",
                        self.source,
                        kinds.join(", ")
                    )
                }
            };
        };
        let files = files(out, types)?;
        for path in files.keys() {
            self.check(path)?;
        }
        let printer = Printer::new(false);
        for (path, source) in &files {
            let parent = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(path, source))
                .with_context(|| format!("cannot write {}", path.display()))?;
            printer.end(&format!("written: {}", path.display()));
        }
        Ok(())
    }

    /// Fails if a file would be lost.
    fn check(&self, path: &Path) -> Result<()> {
        match fs::read_to_string(path) {
            Ok(text) if !self.force && !GeneratedTypes::is_generated(&text) => bail!(
                "{} was not written by this command: choose another path, or replace it with --force (nothing was written)",
                path.display()
            ),
            _ => Ok(()),
        }
    }

    async fn crds(&self) -> Result<Vec<Value>> {
        match self.source.as_str() {
            "cluster" => self.of_cluster().await,
            "-" => {
                let mut text = String::new();
                std::io::stdin()
                    .read_to_string(&mut text)
                    .context("cannot read standard input")?;
                let crds = crd::parse(&text).context("standard input is not valid YAML")?;
                if crds.is_empty() {
                    bail!("standard input has no CustomResourceDefinition");
                }
                Ok(crds)
            }
            path => crd::read(Path::new(path)),
        }
    }

    async fn of_cluster(&self) -> Result<Vec<Value>> {
        if self.kinds.is_empty() {
            let usage =
                "name the kinds or CRDs of the cluster, such as certificates.cert-manager.io";
            return Err(WrongUsage(usage).into());
        }
        let cluster = self.cluster.connect().await?;
        let client = DynamicClient::new(cluster.client);
        let crds = client.resource(Kind::of::<CustomResourceDefinition>());
        let crds = crds.list_all(&ListOptions::new()).await?;
        Ok(crds.items.into_iter().map(typed).collect())
    }

    /// Returns the CRDs that are named, each with its name or its kind.
    fn chosen(&self, crds: Vec<Value>) -> Result<Vec<Value>> {
        if self.kinds.is_empty() {
            return Ok(crds);
        }
        let mut chosen = Vec::new();
        for wanted in &self.kinds {
            let is_wanted = |crd: &&Value| {
                let text = |path: &str| crd.pointer(path).and_then(Value::as_str);
                text("/metadata/name") == Some(wanted)
                    || text("/spec/names/kind")
                        .is_some_and(|kind| kind.eq_ignore_ascii_case(wanted))
            };
            let found: Vec<&Value> = crds.iter().filter(is_wanted).collect();
            match found.as_slice() {
                [found] => chosen.push((*found).clone()),
                [] => bail!("{} has no CRD of the kind {wanted}", self.source),
                found => {
                    let names = found
                        .iter()
                        .filter_map(|crd| crd.pointer("/metadata/name")?.as_str());
                    let names: Vec<&str> = names.collect();
                    bail!(
                        "several CRDs have the kind {wanted}: name one of {}",
                        names.join(", ")
                    )
                }
            }
        }
        Ok(chosen)
    }
}

/// Returns an item of a list with its kind, which lists leave out.
fn typed(item: impl Into<Value>) -> Value {
    let mut crd: Value = item.into();
    if let Some(fields) = crd.as_object_mut() {
        let kind = Value::from("CustomResourceDefinition");
        fields.insert("kind".to_owned(), kind);
    }
    crd
}

/// Returns the files for the types, by their paths.
fn files(out: &Path, types: Vec<GeneratedTypes>) -> Result<BTreeMap<PathBuf, String>> {
    let is_file = out.extension().is_some_and(|extension| extension == "rs");
    let mut files = BTreeMap::new();
    if is_file && types.len() > 1 {
        bail!(
            "--out {} is one file, but there are {} kinds: name one of them, or give a directory",
            out.display(),
            types.len()
        );
    }
    for types in types {
        let path = match is_file {
            true => out.to_owned(),
            false => out.join(format!("{}.rs", types.module)),
        };
        if files.insert(path.clone(), types.source).is_some() {
            bail!(
                "two kinds would be written to {}: write {} on its own",
                path.display(),
                types.crd
            );
        }
    }
    Ok(files)
}
