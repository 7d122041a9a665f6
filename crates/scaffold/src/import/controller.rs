//! The functions of controllers: they compile, and have the Go code as a comment.

use std::collections::BTreeSet;

use super::code::GoType;
use super::project::KubebuilderProject;
use super::target::{self, Of, Planned, Target};
use crate::add::{function_name, reconcile_name};
use crate::names;
use crate::render::{article, chain};

/// Greatest width of a line, as rustfmt has it by default.
const COLUMNS: usize = 100;

/// Text of a module, and what it needs.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) code: String,
    /// Paths to import.
    pub(super) imports: Vec<String>,
    pub(super) unported: Vec<String>,
    /// Names of the functions that `operator()` calls.
    pub(super) functions: Vec<String>,
}

/// Returns the functions of the controllers of a kind.
pub(super) fn text(
    project: &KubebuilderProject,
    target: &Target<'_>,
    targets: &[Target<'_>],
) -> Text {
    let mut text = Text::default();
    let mut used = BTreeSet::new();
    for planned in &target.controllers {
        let function = match used.is_empty() {
            true => "controller".to_owned(),
            false => free_name(planned, &used),
        };
        used.insert(function.clone());
        one(project, target, targets, planned, &function, &mut text);
        text.functions.push(function);
    }
    if !text.functions.is_empty() {
        text.imports
            .push("opkit::controller::AnyController".to_owned());
        if target.is_dynamic() {
            text.imports.push("opkit::cache::DynamicObject".to_owned());
        }
    }
    text
}

/// Returns a name for the function of a further controller.
fn free_name(planned: &Planned, used: &BTreeSet<String>) -> String {
    let name = planned
        .name
        .as_deref()
        .unwrap_or_default()
        .replace(['.', '_'], "-");
    let name = function_name(Some(&name)).ok();
    let free = name.filter(|name| !used.contains(name));
    free.unwrap_or_else(|| format!("controller_{}", used.len() + 1))
}

fn one(
    project: &KubebuilderProject,
    target: &Target<'_>,
    targets: &[Target<'_>],
    planned: &Planned,
    function: &str,
    text: &mut Text,
) {
    let (kind, words) = (&target.kind, names::words(&target.kind));
    let reconcile = reconcile_name(function);
    let name = controller_name(target, targets, planned, function);
    let mut links: Vec<String> = name
        .iter()
        .map(|name| format!(".named({name:?})"))
        .collect();
    let mut seen = BTreeSet::new();
    for owned in planned.go.iter().flat_map(|go| &go.owns) {
        if !seen.insert(owned) {
            continue;
        }
        match owned_type(project, target, targets, owned, text) {
            Some(name) => links.push(format!(".owns::<{name}>()")),
            None => text.unported.push(format!(
                "{}: `Owns` of {} {}, a type that is not known here",
                target.file(),
                owned.path,
                owned.kind
            )),
        }
    }
    if planned.go.as_ref().is_some_and(|go| !go.has_setup) {
        text.unported.push(format!(
            "{}: what {function} watches and owns: its SetupWithManager was not found",
            target.file()
        ));
    }
    links.push(".into()".to_owned());
    let root = match target.is_dynamic() {
        true => format!("Controller::dynamic(kind(), {reconcile})"),
        false => format!("Controller::new({reconcile})"),
    };
    let named = name.map(|name| format!(" `{name}`"));
    let named = named.unwrap_or_default();
    text.code += &format!(
        "\n/// Returns the controller{named}: {} {words} is reconciled when it changes.\npub fn {function}() -> AnyController {{\n",
        article(&words)
    );
    if let Some(setup) = planned.go.as_ref().and_then(|go| go.setup.as_ref()) {
        text.code += &setup.comment("    ");
        let what = "parts of SetupWithManager besides For, Named and Owns";
        text.unported
            .push(format!("{}: {what}, {}", target.file(), setup.place));
    }
    text.code += &format!("    {}\n}}\n", chain(&root, &links, 4));
    let meant = named.replacen(' ', " for the controller ", 1);
    let object = match target.is_dynamic() {
        true => "DynamicObject",
        false => kind,
    };
    text.code += &format!("\n/// Reconciles one {words}{meant}. Safe to repeat.\n");
    let parameters = [
        format!("_{}: Arc<{object}>", names::variable(kind)),
        "_cx: Context".to_owned(),
    ];
    text.code += &signature(
        &format!("async fn {reconcile}"),
        &parameters,
        "Result<Action>",
    );
    if let Some(go) = &planned.go {
        text.code += &go.reconcile.comment("    ");
        if go.reconcile.has_code() {
            let mut what = format!(
                "{}: {reconcile}, from {}",
                target.file(),
                go.reconcile.place
            );
            if !go.functions.is_empty() {
                what += &format!(" with {}", go.functions.join(", "));
            }
            text.unported.push(what);
        }
    }
    text.code += "    Ok(Action::await_change())\n}\n";
}

/// Returns the name of a controller, unless it is that of the kind and no other controller has it.
fn controller_name(
    target: &Target<'_>,
    targets: &[Target<'_>],
    planned: &Planned,
    function: &str,
) -> Option<String> {
    let default = target.kind.to_lowercase();
    let is_first = function == "controller";
    let is_alone = targets.iter().filter(|it| it.kind == target.kind).count() == 1;
    match &planned.name {
        Some(name) if *name == default && is_first && is_alone => None,
        Some(name) if *name != default => Some(name.clone()),
        _ if !is_first => Some(format!("{default}-{}", function.replace('_', "-"))),
        _ if !is_alone => Some(target.module.replace('_', "-")),
        _ => None,
    }
}

/// Returns the name of an owned type in the module, and adds its import.
fn owned_type(
    project: &KubebuilderProject,
    target: &Target<'_>,
    targets: &[Target<'_>],
    owned: &GoType,
    text: &mut Text,
) -> Option<String> {
    let (group, version, kind) = target::resolve(project, owned)?;
    let built_in = |path: &str| format!("opkit::k8s_openapi::{path}");
    let path = match target::find(targets, &group, &kind).and_then(|index| targets.get(index)) {
        Some(other) => match &other.of {
            Of::Own(_) if other.module == target.module => return Some(kind),
            Of::Own(_) => format!("crate::{}::{kind}", other.module),
            Of::BuiltIn(found) => built_in(found.path),
            Of::Dynamic { .. } => return None,
        },
        None => {
            let group = match group.as_str() {
                "" => "core",
                group => group,
            };
            let found = crate::built_in::find(&kind, Some(group), Some(&version));
            built_in(found.ok()??.path)
        }
    };
    let is_taken = match &target.of {
        Of::Own(own) => own.hub.names().contains(&kind.as_str()) || kind == target.kind,
        _ => kind == target.kind && path.starts_with("crate::"),
    };
    let is_imported = |it: &String| it.ends_with(&format!("::{kind}")) && *it != path;
    if is_taken || path.starts_with("crate::") || text.imports.iter().any(is_imported) {
        return Some(path);
    }
    if !text.imports.contains(&path) {
        text.imports.push(path);
    }
    Some(kind)
}

/// Returns the start of a function, as rustfmt formats it.
pub(super) fn signature(start: &str, parameters: &[String], result: &str) -> String {
    let arrow = match result {
        "" => String::new(),
        result => format!(" -> {result}"),
    };
    let line = format!("{start}({}){arrow} {{", parameters.join(", "));
    match line.len() <= COLUMNS {
        true => format!("{line}\n"),
        false => format!(
            "{start}(\n    {},\n){arrow} {{\n",
            parameters.join(",\n    ")
        ),
    }
}
