//! CRD upgrades: the table that the unit tests of `opkit-crds` check, through the Go code that OLM
//! v1 uses.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use opkit_apimachinery::patch::merge_patch;
use serde::Deserialize;
use serde_json::{Value, json};

/// Folder with the Go module.
const FOLDER: &str = "tests/crd-upgrades";
/// Folder with the table.
const DATA: &str = "crates/crds/data";
/// Path of the field whose schema a case changes.
const FIELD: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/value";

/// A row of the table. Its header explains the fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    old: Option<Value>,
    new: Option<Value>,
    old_crd: Option<Value>,
    new_crd: Option<Value>,
    refused: Vec<String>,
}

/// Runs the table. Returns whether the Go code refuses exactly the changes in it.
pub(super) fn run(root: &Path, target: &Path) -> Result<bool> {
    let read = |file: &str| {
        let path = root.join(DATA).join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let table: Vec<Case> = serde_saphyr::from_str(&read("upgrades.yaml")?)?;
    let template: Value = serde_json::from_str(&read("crd.json")?)?;
    let upgrades = table.iter().map(|case| {
        Ok(json!({
            "name": case.name,
            "old": crd(&template, case.old.as_ref(), case.old_crd.as_ref())?,
            "new": crd(&template, case.new.as_ref(), case.new_crd.as_ref())?,
        }))
    });
    let upgrades: Vec<Value> = upgrades.collect::<Result<_>>()?;
    let found = refused(root, target, &Value::from(upgrades))?;
    let mut is_same = true;
    for case in &table {
        let found = found.get(&case.name).cloned().unwrap_or_default();
        if found != case.refused {
            is_same = false;
            println!(
                "crd-upgrades: {}: OLM v1 refuses {found:?}, the table has {:?}",
                case.name, case.refused
            );
        }
    }
    if is_same {
        println!(
            "crd-upgrades: OLM v1 has the verdict of the table about all {} changes",
            table.len()
        );
    }
    Ok(is_same)
}

/// Returns the CRD of a case.
fn crd(template: &Value, schema: Option<&Value>, patch: Option<&Value>) -> Result<Value> {
    let mut crd = template.clone();
    if let Some(schema) = schema {
        let field = crd.pointer_mut(FIELD);
        *field.with_context(|| format!("the CRD of the table has no {FIELD}"))? = schema.clone();
    }
    if let Some(patch) = patch {
        merge_patch(&mut crd, patch);
    }
    Ok(crd)
}

/// Returns the changes that the Go code refuses, by the names of the upgrades.
fn refused(root: &Path, target: &Path, upgrades: &Value) -> Result<BTreeMap<String, Vec<String>>> {
    let program = target.join("compat/crd-upgrades");
    let built = super::module::go(&root.join(FOLDER))
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg(".")
        .status()
        .context("cannot run go build")?;
    ensure!(built.success(), "go build of {FOLDER} failed");
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut stdin = child.stdin.take().context("the program has no input")?;
    stdin.write_all(&serde_json::to_vec(upgrades)?)?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{} failed", program.display());
    Ok(serde_json::from_slice(&output.stdout)?)
}
