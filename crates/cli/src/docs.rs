//! `opkit docs`: the reference of kinds in Markdown, and their JSON Schemas.

use std::path::PathBuf;

use anyhow::Result;
use opkit_crds::{json_schemas, reference};

use crate::crd::CrdArgs;
use crate::deploy::Printer;
use crate::files::Files;

/// Start of each page, by which pages that are no longer written are found.
const MARK: &str = "<!-- Written by opkit docs. -->\n";
/// Start of each JSON Schema, for the same purpose.
const SCHEMA_MARK: &str = "{\n  \"$comment\": \"Generated from the CRD ";

/// CRDs to describe, and the directories of the files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit docs                                     # docs/api and schemas, of the operator
  opkit docs config/crd --out site/api --schemas site/schemas
  opkit docs --check                             # in CI: exits 1 if a file is not up to date
  kubeconform -schema-location default \\
    -schema-location 'schemas/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json' config/samples")]
pub(crate) struct DocsArgs {
    #[command(flatten)]
    crds: CrdArgs,
    /// Directory for the pages: one for each kind, and a list
    #[arg(long, default_value = "docs/api", value_name = "DIR")]
    out: PathBuf,
    /// Directory for the JSON Schemas, GROUP/KIND_VERSION.json, for editors and kubeconform
    #[arg(long, default_value = "schemas", value_name = "DIR")]
    schemas: PathBuf,
    /// Write nothing; exit 1 if a file differs, and name it
    #[arg(long)]
    check: bool,
}

impl DocsArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let crds = self.crds.crds().await?;
        let mut pages = Files::new(&self.out, "md", MARK);
        for page in reference(&crds)? {
            pages.add(page.path, format!("{MARK}\n{}", page.text));
        }
        let mut schemas = Files::new(&self.schemas, "json", SCHEMA_MARK);
        for schema in json_schemas(&crds)? {
            schemas.add(schema.path, schema.text);
        }
        if self.check {
            return Files::check(&[pages, schemas], "files of the reference");
        }
        let printer = Printer::new(false);
        pages.write("pages", &printer)?;
        schemas.write("schemas", &printer)
    }
}
