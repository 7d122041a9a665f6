//! A kubebuilder project: its `PROJECT` file, its CRDs, and the files that are read besides.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Error, Result, Tree};

/// Folders whose files are read.
const FOLDERS: [&str; 8] = [
    "api",
    "apis",
    "cmd",
    "config/crd/bases",
    "config/rbac",
    "config/samples",
    "controllers",
    "internal",
];

/// A kubebuilder project.
///
/// # Examples
/// ```
/// use opkit_scaffold::{KubebuilderProject, Tree};
///
/// let mut files = Tree::default();
/// files.insert("PROJECT", "version: \"3\"\nprojectName: robot-operator\n");
/// let project = KubebuilderProject::of(files, "go")?;
/// assert_eq!(project.name(), "robot-operator");
/// # Ok::<(), opkit_scaffold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KubebuilderProject {
    pub(super) files: Tree,
    name: String,
    pub(super) domain: Option<String>,
    pub(super) repo: String,
    pub(super) is_namespaced: bool,
    pub(super) resources: Vec<Resource>,
    pub(super) crds: Vec<Crd>,
}

/// Resource of a `PROJECT` file: one version of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resource {
    /// Whole group, such as `robot.example.com`; empty for the core group.
    pub(super) group: String,
    /// Group as it is written, without the domain.
    pub(super) short_group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: Option<String>,
    /// Import path of the Go package with the type.
    pub(super) path: String,
    /// Whether the project defines the kind.
    pub(super) has_api: bool,
    /// Names of its controllers; an unnamed one has the name of the kind.
    pub(super) controllers: Vec<String>,
    pub(super) is_core: bool,
    pub(super) is_external: bool,
    pub(super) defaulting: bool,
    pub(super) validation: bool,
    pub(super) conversion: bool,
    pub(super) paths: Vec<String>,
}

/// CRD of a project.
#[derive(Clone, Debug)]
pub(super) struct Crd {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) value: Value,
}

impl KubebuilderProject {
    /// Reads the project in a directory.
    ///
    /// # Errors
    /// If there is no `PROJECT` file of version 3, if a file cannot be read, or if the CRDs of the
    /// project are missing.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join("PROJECT");
        if !path.is_file() {
            let reason =
                "there is no such file, so this is not the directory of a kubebuilder project";
            return Err(Error::import(&path.to_string_lossy(), reason));
        }
        let mut files = Tree::default();
        for name in ["PROJECT", "main.go"] {
            let path = directory.join(name);
            if path.is_file() {
                files.insert(name, read(&path)?);
            }
        }
        for folder in FOLDERS {
            if directory.join(folder).is_dir() {
                read_folder(directory, folder, &mut files)?;
            }
        }
        let here = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let name = here.file_name().unwrap_or_default().to_string_lossy();
        Self::of(files, &name)
    }

    /// Returns the project with these files. A project without a name has that of its directory.
    ///
    /// # Errors
    /// As [`KubebuilderProject::read`].
    pub fn of(files: Tree, directory: &str) -> Result<Self> {
        let project = yaml("PROJECT", files.get("PROJECT").unwrap_or_default())?;
        let [Value::Object(_)] = project.as_slice() else {
            return Err(Error::import("PROJECT", "this is not one YAML object"));
        };
        let project = project.into_iter().next().unwrap_or_default();
        let version = text(&project, "version");
        if !matches!(version.as_str(), "3" | "3-alpha") {
            let reason = format!(
                "the version of the file is {version:?}, and only \"3\" can be imported: `kubebuilder alpha generate` moves a project to it"
            );
            return Err(Error::import("PROJECT", reason));
        }
        let resources = project.get("resources").and_then(Value::as_array);
        let resources: Vec<Resource> = resources.into_iter().flatten().map(Resource::of).collect();
        let name = match text(&project, "projectName") {
            name if name.is_empty() => directory.to_lowercase(),
            name => name,
        };
        let mut crds = Vec::new();
        for (path, text) in files
            .files()
            .filter(|(path, _)| path.starts_with("config/crd/bases/"))
        {
            let documents = yaml(path, text)?;
            crds.extend(documents.into_iter().filter_map(Crd::of));
        }
        let missing = resources.iter().find(|it| {
            let mut crds = crds.iter();
            it.has_api && !crds.any(|crd| crd.kind == it.kind && crd.group == it.group)
        });
        if let Some(missing) = missing {
            let reason = format!(
                "there is no CRD of the kind {} of {}: run `make manifests` in the project first",
                missing.kind, missing.group
            );
            return Err(Error::import("config/crd/bases", reason));
        }
        Ok(Self {
            name,
            domain: Some(text(&project, "domain")).filter(|domain| !domain.is_empty()),
            repo: text(&project, "repo"),
            is_namespaced: is(&project, "namespaced"),
            resources,
            crds,
            files,
        })
    }

    /// Returns the name of the project.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns paths and texts of the Go files, without generated code and tests.
    pub(super) fn go_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.files().filter(|(path, _)| path.ends_with(".go"))
    }

    /// Returns the resource of a type of a Go package.
    pub(super) fn resource(&self, path: &str, kind: &str) -> Option<&Resource> {
        let mut resources = self.resources.iter();
        resources.find(|it| it.path == path && it.kind == kind)
    }
}

impl Resource {
    fn of(value: &Value) -> Self {
        let none = Value::Null;
        let webhooks = value.get("webhooks").unwrap_or(&none);
        let (short_group, domain) = (text(value, "group"), text(value, "domain"));
        let is_core = is(value, "core") || text(value, "path").starts_with("k8s.io/api/");
        let group = match (short_group.as_str(), domain.as_str()) {
            ("core", _) if is_core => String::new(),
            (group, "") => group.to_owned(),
            ("", domain) => domain.to_owned(),
            (group, domain) => format!("{group}.{domain}"),
        };
        let kind = text(value, "kind");
        let controllers = value.get("controllers").and_then(Value::as_array);
        let names = controllers.into_iter().flatten().map(|it| text(it, "name"));
        let mut controllers: Vec<String> = names.collect();
        if controllers.is_empty() && is(value, "controller") {
            controllers.push(kind.to_lowercase());
        }
        let paths = ["defaultingPath", "validationPath"].map(|name| text(webhooks, name));
        Self {
            group,
            version: text(value, "version"),
            plural: Some(text(value, "plural")).filter(|plural| !plural.is_empty()),
            path: text(value, "path"),
            has_api: value.get("api").is_some_and(|api| !api.is_null()),
            controllers,
            is_core,
            is_external: is(value, "external"),
            defaulting: is(webhooks, "defaulting"),
            validation: is(webhooks, "validation"),
            conversion: is(webhooks, "conversion"),
            paths: paths.into_iter().filter(|path| !path.is_empty()).collect(),
            short_group,
            kind,
        }
    }
}

impl Crd {
    fn of(value: Value) -> Option<Self> {
        let at = |path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        if at("/kind")? != "CustomResourceDefinition" {
            return None;
        }
        Some(Self {
            group: at("/spec/group").unwrap_or_default(),
            kind: at("/spec/names/kind").unwrap_or_default(),
            value,
        })
    }

    /// Returns the names of the versions, and that of the stored one.
    pub(super) fn versions(&self) -> (Vec<&str>, Option<&str>) {
        let versions = self
            .value
            .pointer("/spec/versions")
            .and_then(Value::as_array);
        let versions = versions.map(Vec::as_slice).unwrap_or_default();
        let names = versions.iter().filter_map(name).collect();
        let stored = versions.iter().find(|it| is(it, "storage"));
        (names, stored.and_then(name))
    }
}

fn name(version: &Value) -> Option<&str> {
    version.get("name")?.as_str()
}

/// Returns the documents of a YAML file.
pub(super) fn yaml(path: &str, text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Option<Value>> = serde_saphyr::from_multiple(text).map_err(|cause| {
        let cause = cause.to_string();
        let first = cause.lines().next().unwrap_or_default();
        Error::import(path, format!("this is not valid YAML: {first}"))
    })?;
    Ok(documents.into_iter().flatten().collect())
}

fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn is(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|cause| Error::Read {
        path: path.to_owned(),
        cause,
    })
}

/// Reads the YAML and Go files of a folder, except generated code and tests.
fn read_folder(directory: &Path, folder: &str, files: &mut Tree) -> Result<()> {
    let path = directory.join(folder);
    let failed = |cause| Error::Read {
        path: path.clone(),
        cause,
    };
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let name = format!("{folder}/{file}");
        if entry.file_type().map_err(failed)?.is_dir() {
            if !file.starts_with('.') && file != "vendor" && file != "applyconfiguration" {
                read_folder(directory, &name, files)?;
            }
            continue;
        }
        let is_go = file.ends_with(".go")
            && !file.ends_with("_test.go")
            && !file.starts_with("zz_generated");
        if is_go || file.ends_with(".yaml") || file.ends_with(".yml") {
            files.insert(name, read(&entry.path())?);
        }
    }
    Ok(())
}
