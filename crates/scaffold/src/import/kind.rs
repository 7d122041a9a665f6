//! The module of a kind: its types, controllers and webhook.

use super::Output;
use super::controller::{self, Text};
use super::project::KubebuilderProject;
use super::target::{Of, Own, Target, Version};
use super::webhook;
use crate::types::print_imports;

/// Functions of a module that `operator()` calls.
#[derive(Debug, Default)]
pub(super) struct Functions {
    pub(super) controllers: Vec<String>,
    pub(super) has_webhook: bool,
}

/// Writes the module of a kind.
pub(super) fn write(
    project: &KubebuilderProject,
    target: &Target<'_>,
    targets: &[Target<'_>],
    output: &mut Output,
) -> Functions {
    let controllers = controller::text(project, target, targets);
    let webhook = target.webhook.as_ref().map(|it| webhook::text(target, it));
    let has_functions = !controllers.functions.is_empty() || webhook.is_some();
    let functions = Functions {
        controllers: controllers.functions.clone(),
        has_webhook: webhook.is_some(),
    };
    let mut imports: Vec<String> = controllers.imports.clone();
    if has_functions {
        imports.push("opkit::prelude::*".to_owned());
    }
    let kind = &target.kind;
    let mut text = match &target.of {
        Of::Own(own) => {
            let types = own.hub.imports().into_iter();
            let types = types.filter(|it| !has_functions || !it.starts_with("opkit::prelude::"));
            imports.extend(types.map(str::to_owned));
            let modules = own
                .versions
                .iter()
                .map(|it| format!("pub mod {};\n", it.name));
            let modules: String = modules.collect();
            let space = match modules.is_empty() {
                true => "",
                false => "\n",
            };
            let differences = own.hub.differences();
            for difference in &own.hub.notes {
                output
                    .unported
                    .push(format!("{}: {difference}", target.file()));
            }
            format!(
                "//! The kind `{kind}` of {}/{}{}.\n{differences}\n{modules}{space}",
                target.group,
                own.version,
                with(&functions)
            )
        }
        Of::BuiltIn(found) => {
            imports.push(format!("opkit::k8s_openapi::{}", found.path));
            format!("//! What the operator does with the kind `{kind}`.\n\n")
        }
        Of::Dynamic { version, .. } => {
            imports.push("opkit::client::Kind".to_owned());
            let what = "it has no Rust type here, which `opkit types from-crd` generates; its plural and scope in `kind()` are guesses";
            output.unported.push(format!(
                "{}: {}/{version} {kind}: {what}",
                target.file(),
                target.group
            ));
            format!(
                "//! What the operator does with the kind `{kind}`, whose Rust type it does not have.\n\n"
            )
        }
    };
    let imports: Vec<&str> = imports.iter().map(String::as_str).collect();
    let imports = print_imports(&imports);
    text += &imports;
    let mut code = match &target.of {
        Of::Own(own) => own.hub.code(),
        Of::BuiltIn(_) => String::new(),
        Of::Dynamic { version, plural } => dynamic(target, version, plural),
    };
    code += &controllers.code;
    code += webhook.as_ref().map_or("", |it| &it.code);
    if !imports.is_empty() {
        text.push('\n');
    }
    text += code.trim_start_matches('\n');
    output.tree.insert(target.file(), text);
    for Text { unported, .. } in std::iter::once(controllers).chain(webhook) {
        output.unported.extend(unported);
    }
    if let Of::Own(own) = &target.of {
        for version in &own.versions {
            write_version(target, own, version, output);
        }
        if !target.has_crd() {
            let what = "objects without a spec have only a type for clients: their CRD is not that of the operator";
            output.unported.push(format!("{}: {what}", target.file()));
        }
    }
    functions
}

/// Returns what a module has besides its kind.
fn with(functions: &Functions) -> &'static str {
    match (functions.controllers.len(), functions.has_webhook) {
        (0, false) => "",
        (0, true) => ", with its webhook",
        (1, false) => ", with its controller",
        (1, true) => ", with its controller and webhook",
        (_, false) => ", with its controllers",
        (_, true) => ", with its controllers and webhook",
    }
}

/// Returns the function that describes a kind without a Rust type.
fn dynamic(target: &Target<'_>, version: &str, plural: &str) -> String {
    let fields = [
        ("group", target.group.as_str()),
        ("version", version),
        ("kind", &target.kind),
        ("plural", plural),
    ];
    let fields: String = fields
        .iter()
        .map(|(name, value)| format!("        {name}: {value:?}.to_owned(),\n"))
        .collect();
    format!(
        "/// Returns the kind.\nfn kind() -> Kind {{\n    Kind {{\n{fields}        namespaced: true,\n    }}\n}}\n"
    )
}

/// Writes the module of a version that is not the hub.
fn write_version(target: &Target<'_>, own: &Own<'_>, version: &Version, output: &mut Output) {
    let path = format!("src/{}/{}.rs", target.module, version.name);
    let types = &version.types;
    let mut text = format!(
        "//! The version `{}` of the kind `{}`.\n{}\n",
        version.name, target.kind, types.differences
    );
    let imports = print_imports(&types.imports);
    if !imports.is_empty() {
        text += &imports;
        text.push('\n');
    }
    match types.shared.as_slice() {
        [] => {}
        [name] => text += &format!("use super::{name};\n\n"),
        names => text += &format!("use super::{{{}}};\n\n", names.join(", ")),
    }
    text += &types.code;
    for body in &version.conversions {
        text.push('\n');
        text += &body.comment("");
    }
    output.tree.insert(&path, text);
    let mut unported = Vec::new();
    if !types.unported.is_empty() {
        unported.push(format!(
            "what becomes of {} in {}, where they are only `removed`, `added` or `lossy`",
            types.unported.join(", "),
            own.version
        ));
    }
    let code = version.conversions.iter().filter(|body| body.has_code());
    unported.extend(code.map(|body| {
        format!(
            "{} at {}, beyond fields of the same name and type",
            body.name, body.place
        )
    }));
    output
        .unported
        .extend(unported.into_iter().map(|it| format!("{path}: {it}")));
}
