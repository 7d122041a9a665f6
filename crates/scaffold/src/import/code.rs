//! Controllers, webhooks and conversions in the Go code of a project.

use std::collections::BTreeMap;

use super::go::{self, Call, Function};
use super::project::{KubebuilderProject, Resource};

/// Body of a Go function, and its place.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// Name, such as `Reconcile`.
    pub(super) name: String,
    /// Path and line, such as `internal/controller/robot_controller.go:54`.
    pub(super) place: String,
    pub(super) text: String,
}

impl Body {
    fn of(path: &str, function: &Function<'_>) -> Self {
        Self {
            name: function.name.to_owned(),
            place: format!("{path}:{}", function.line),
            text: function.body.to_owned(),
        }
    }

    /// Reports whether the body has more than what kubebuilder writes.
    pub(super) fn has_code(&self) -> bool {
        !go::is_scaffold(&self.text)
    }

    /// Returns the body as a comment to port.
    pub(super) fn comment(&self, indent: &str) -> String {
        format!(
            "{indent}// {} in Go, {}:\n{indent}//\n{}",
            self.name,
            self.place,
            go::comment(&self.text, indent)
        )
    }
}

/// Go type, by the path of its package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GoType {
    pub(super) path: String,
    pub(super) kind: String,
}

/// Controller in Go.
#[derive(Clone, Debug)]
pub(super) struct GoController {
    pub(super) target: Option<GoType>,
    /// Name of the Go type, such as `RobotReconciler`.
    pub(super) reconciler: String,
    pub(super) name: Option<String>,
    pub(super) reconcile: Body,
    pub(super) owns: Vec<GoType>,
    /// Whether there is a `SetupWithManager`.
    pub(super) has_setup: bool,
    /// `SetupWithManager`, if it has more than what is imported.
    pub(super) setup: Option<Body>,
    /// Names of the other functions of the file.
    pub(super) functions: Vec<String>,
}

/// Methods of the builder of a controller that are imported.
const IMPORTED: [&str; 5] = ["NewControllerManagedBy", "For", "Named", "Owns", "Complete"];

/// Returns the controllers of a project, sorted by their files.
pub(super) fn controllers(project: &KubebuilderProject) -> Vec<GoController> {
    let mut found = Vec::new();
    for (path, text) in project.go_files() {
        let functions = go::functions(text);
        for reconcile in functions.iter().filter(|it| it.name == "Reconcile") {
            let Some(receiver) = reconcile.receiver else {
                continue;
            };
            let is_setup =
                |it: &&Function<'_>| it.receiver == Some(receiver) && it.name == "SetupWithManager";
            let setup = functions.iter().find(is_setup);
            let calls = setup.map(|it| go::calls(it.body)).unwrap_or_default();
            let resolve = |call: &Call<'_>| resolve(project, path, text, call.arguments);
            let named = |name: &'static str| calls.iter().filter(move |call| call.name == name);
            let is_imported = calls.iter().all(|call| {
                let is_type = || go::type_of(call.arguments).is_some_and(|_| !has_options(call));
                match call.name {
                    "For" | "Owns" => is_type(),
                    name => IMPORTED.contains(&name),
                }
            });
            let is_own = |it: &&Function<'_>| !["Reconcile", "SetupWithManager"].contains(&it.name);
            found.push(GoController {
                target: named("For").find_map(resolve),
                reconciler: receiver.to_owned(),
                name: named("Named")
                    .find_map(|it| go::string(it.arguments))
                    .map(str::to_owned),
                reconcile: Body::of(path, reconcile),
                owns: named("Owns").filter_map(resolve).collect(),
                has_setup: setup.is_some(),
                setup: setup.filter(|_| !is_imported).map(|it| Body::of(path, it)),
                functions: functions
                    .iter()
                    .filter(is_own)
                    .map(|it| it.name.to_owned())
                    .collect(),
            });
        }
    }
    found
}

/// Reports whether a call has arguments besides the type, such as predicates.
fn has_options(call: &Call<'_>) -> bool {
    call.arguments
        .trim_end()
        .trim_end_matches(',')
        .contains(',')
}

/// Returns the type that a call names.
fn resolve(
    project: &KubebuilderProject,
    path: &str,
    text: &str,
    arguments: &str,
) -> Option<GoType> {
    let (package, kind) = go::type_of(arguments)?;
    let path = match package {
        "" => package_path(project, path),
        package => (*go::imports(text).get(package)?).to_owned(),
    };
    Some(GoType {
        path,
        kind: kind.to_owned(),
    })
}

/// Returns the import path of the package with a file.
fn package_path(project: &KubebuilderProject, path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("{}/{folder}", project.repo),
        None => project.repo.clone(),
    }
}

/// Functions of a webhook in Go.
#[derive(Clone, Debug, Default)]
pub(super) struct GoWebhook {
    pub(super) default: Vec<Body>,
    pub(super) validate_create: Vec<Body>,
    pub(super) validate_update: Vec<Body>,
    pub(super) validate_delete: Vec<Body>,
    /// Other functions of a file, with its path.
    pub(super) functions: Vec<String>,
    /// Arguments of the markers, for mutating webhooks and for validating ones.
    pub(super) markers: Vec<BTreeMap<String, String>>,
}

/// Adds the functions of the webhook of a resource.
pub(super) fn webhook(project: &KubebuilderProject, resource: &Resource, found: &mut GoWebhook) {
    let name = format!("{}_webhook.go", resource.kind.to_lowercase());
    for (path, text) in project.go_files() {
        let is_file = path.rsplit('/').next() == Some(name.as_str());
        let is_of = || {
            package_path(project, path) == resource.path
                || go::imports(text).values().any(|it| *it == resource.path)
        };
        if !is_file || !is_of() {
            continue;
        }
        let mut others = Vec::new();
        for function in go::functions(text) {
            let is_of = function
                .receiver
                .is_some_and(|it| it.starts_with(&resource.kind));
            let bodies = match function.name {
                "Default" if is_of => &mut found.default,
                "ValidateCreate" if is_of => &mut found.validate_create,
                "ValidateUpdate" if is_of => &mut found.validate_update,
                "ValidateDelete" if is_of => &mut found.validate_delete,
                name if name.ends_with("WebhookWithManager") => continue,
                name => {
                    others.push(name);
                    continue;
                }
            };
            bodies.push(Body::of(path, &function));
        }
        if !others.is_empty() {
            found
                .functions
                .push(format!("{} of {path}", others.join(", ")));
        }
        found.markers.extend(markers(text, "webhook"));
    }
}

/// Returns the arguments of the markers `+kubebuilder:NAME:` in a file.
pub(super) fn markers(text: &str, name: &str) -> Vec<BTreeMap<String, String>> {
    let start = format!("+kubebuilder:{name}:");
    let lines = text.lines().filter_map(|line| {
        let comment = line.trim_start().strip_prefix("//")?;
        comment.trim_start().strip_prefix(&start)
    });
    lines.map(arguments).collect()
}

/// Returns the arguments of a marker. A value in quotes can contain a comma.
fn arguments(text: &str) -> BTreeMap<String, String> {
    let (mut found, mut is_quoted, mut part) = (Vec::new(), false, String::new());
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => found.push(std::mem::take(&mut part)),
            letter => part.push(letter),
        }
    }
    found.push(part);
    let pairs = found
        .iter()
        .map(|it| it.split_once('=').unwrap_or((it, "true")));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Returns the functions that convert a version in Go.
pub(super) fn conversions(project: &KubebuilderProject, path: &str, kind: &str) -> Vec<Body> {
    let mut found = Vec::new();
    for (file, text) in project.go_files() {
        if package_path(project, file) != path {
            continue;
        }
        let functions = go::functions(text).into_iter();
        let functions = functions.filter(|it| {
            it.receiver == Some(kind) && ["ConvertTo", "ConvertFrom"].contains(&it.name)
        });
        found.extend(functions.map(|it| Body::of(file, &it)));
    }
    found
}

/// Returns the name of the Lease for the leader election.
pub(super) fn lease(project: &KubebuilderProject) -> Option<String> {
    let texts = ["cmd/main.go", "main.go"]
        .into_iter()
        .filter_map(|it| project.files.get(it));
    let mut lines = texts.flat_map(str::lines).map(str::trim);
    lines.find_map(|line| {
        let value = line.strip_prefix("LeaderElectionID:")?;
        let value = value.trim().strip_suffix(',')?;
        go::string(value).map(str::to_owned)
    })
}
