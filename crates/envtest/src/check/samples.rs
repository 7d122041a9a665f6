//! The objects in `config/samples`, checked as an API server would when they are created.

use std::fs;
use std::path::{Path, PathBuf};

use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use opkit_apimachinery::structural::{apply_defaults, unknown_fields, validate};
use opkit_cel::{Budget, RUNTIME_COST_BUDGET, Rules};
use opkit_controller::{Error, Result};
use serde_json::Value;

/// Folder with the samples, relative to the package of the test.
const FOLDER: &str = "config/samples";

/// Returns the problems of the sample objects whose kinds the CRDs define, one text each. Objects
/// of other kinds are not checked.
pub(super) fn problems(crds: &[Value]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in files(Path::new(FOLDER)) {
        let text = fs::read_to_string(&file)
            .map_err(|cause| Error::msg(format!("cannot read {}: {cause}", file.display())))?;
        let objects: Vec<Value> = documents(&text)
            .map_err(|cause| Error::msg(format!("{} is not valid: {cause}", file.display())))?;
        for object in objects {
            let found = of_object(&object, crds)?;
            let name = file.display();
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("{name}: {problem}")),
            );
        }
    }
    Ok(problems)
}

/// Returns the YAML files of a folder, sorted by name. A folder that does not exist has none.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_yaml = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default();
        let is_list = path.file_stem().is_some_and(|name| name == "kustomization");
        (extension == "yaml" || extension == "yml") && !is_list
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_yaml).collect();
    paths.sort();
    paths
}

fn documents(text: &str) -> Result<Vec<Value>, String> {
    let documents: Vec<Option<Value>> =
        serde_saphyr::from_multiple(text).map_err(|cause| cause.to_string())?;
    Ok(documents.into_iter().flatten().collect())
}

/// Returns the problems of an object. An object whose kind no CRD defines has none.
pub(super) fn of_object(object: &Value, crds: &[Value]) -> Result<Vec<String>> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = text("/kind").unwrap_or_default();
    let is_of_crd = |crd: &&Value| {
        crd.pointer("/spec/group").and_then(Value::as_str) == Some(group)
            && crd.pointer("/spec/names/kind").and_then(Value::as_str) == Some(kind)
    };
    let Some(crd) = crds.iter().find(is_of_crd) else {
        return Ok(Vec::new());
    };
    let name = text("/metadata/name").unwrap_or_default();
    let shown = format!("{kind} {name:?}");
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let mut versions = versions.into_iter().flatten();
    let found = versions.find(|it| it.get("name").and_then(Value::as_str) == Some(version));
    let Some(schema) = found.and_then(|version| version.pointer("/schema/openAPIV3Schema")) else {
        return Ok(vec![format!("{shown}: {kind} has no version {version:?}")]);
    };
    // The errors of the schema itself are reported with the CRD.
    let Ok(schema) = Schema::parse(schema) else {
        return Ok(Vec::new());
    };
    Ok(problems_of(object, &schema)
        .into_iter()
        .map(|problem| format!("{shown}: {problem}"))
        .collect())
}

fn problems_of(object: &Value, schema: &Schema) -> Vec<String> {
    let typed = Typed::new(schema, &NoDefinitions);
    let mut object = object.clone();
    let unknown = unknown_fields(&object, &typed);
    apply_defaults(&mut object, &typed);
    let mut problems: Vec<String> = unknown
        .iter()
        .map(|field| format!("unknown field {field:?}"))
        .collect();
    let errors = validate(&object, &typed);
    let is_valid = errors.is_empty();
    problems.extend(errors.iter().map(ToString::to_string));
    if is_valid {
        let rules = Rules::new(schema);
        let outcome = rules.validate(&object, None, &mut Budget::new(RUNTIME_COST_BUDGET));
        problems.extend(outcome.errors.iter().map(ToString::to_string));
    }
    problems
}
