//! The file `src/lib.rs`, with the function `operator()`.

use std::collections::BTreeSet;

use super::Output;
use super::kind::Functions;
use super::project::KubebuilderProject;
use super::rbac::{self, Covered};
use super::target::{self, Of, Target};
use crate::{Result, plural, render};

/// Adds `src/lib.rs`, with the function `operator()`.
pub(super) fn write(
    project: &KubebuilderProject,
    targets: &[(&Target<'_>, &Functions)],
    output: &mut Output,
) -> Result<()> {
    let mut links = Vec::new();
    let has_cluster = |target: &Target<'_>| match &target.of {
        Of::Own(own) => !own.hub.is_namespaced(),
        Of::BuiltIn(found) => found.is_cluster,
        Of::Dynamic { .. } => false,
    };
    if project.is_namespaced {
        let mut watched = targets.iter().filter(|(_, it)| !it.controllers.is_empty());
        match watched.find(|(target, _)| has_cluster(target)) {
            None => links.push(".namespaced()".to_owned()),
            Some((target, _)) => output.unported.push(format!(
                "src/lib.rs: the operator is not `.namespaced()`, because {} is in no namespace",
                target.kind
            )),
        }
    }
    let mut imports = Vec::new();
    for (target, _) in targets.iter().filter(|(target, _)| target.has_crd()) {
        let is_same = |(it, _): &&(&Target<'_>, &Functions)| it.has_crd() && it.kind == target.kind;
        match targets.iter().filter(is_same).count() {
            1 => {
                imports.push(format!("use {}::{};\n", target.module, target.kind));
                links.push(format!(".crd::<{}>()", target.kind));
            }
            _ => links.push(format!(".crd::<{}::{}>()", target.module, target.kind)),
        }
    }
    for (target, functions) in targets {
        let functions = functions.controllers.iter();
        links.extend(functions.map(|it| format!(".controller({}::{it}())", target.module)));
    }
    let webhooks = targets.iter().filter(|(_, it)| it.has_webhook);
    links.extend(webhooks.map(|(target, _)| format!(".webhook({}::webhook())", target.module)));
    let permissions = rbac::permissions(project, &covered(project, targets))?;
    links.extend(permissions.links);
    let unported = permissions.unported.into_iter();
    output
        .unported
        .extend(unported.map(|it| format!("src/lib.rs: {it}")));

    let root = format!("Operator::new({:?})", project.name());
    let modules = targets.iter().map(|(target, _)| &target.module);
    let modules: BTreeSet<String> = modules.map(|it| format!("pub mod {it};\n")).collect();
    imports.sort();
    let mut text = "//! An operator, imported from a kubebuilder project.\n\n".to_owned();
    text.extend(modules);
    text += "\nuse opkit::prelude::*;\n\n";
    text.extend(imports.iter().map(String::as_str));
    text += &format!(
        "\n/// Returns the whole operator.\npub fn operator() -> Operator {{\n    {}\n}}\n",
        render::chain(&root, &links, 4)
    );
    let text = text.replace("\n\n\n", "\n\n");
    output.tree.insert("src/lib.rs", text);
    Ok(())
}

/// Returns the resources whose permissions follow from the controllers.
fn covered(project: &KubebuilderProject, targets: &[(&Target<'_>, &Functions)]) -> Covered {
    let mut covered = Covered::new();
    for (target, functions) in targets {
        if !functions.controllers.is_empty() {
            covered.insert(target.resource());
        }
        let controllers = target.controllers.iter().filter_map(|it| it.go.as_ref());
        for owned in controllers.flat_map(|go| &go.owns) {
            if let Some((group, _, kind)) = target::resolve(project, owned) {
                let own = targets
                    .iter()
                    .find(|(it, _)| it.group == group && it.kind == kind);
                covered.insert(match own {
                    Some((own, _)) => own.resource(),
                    None => (group, plural::regular(&kind)),
                });
            }
        }
    }
    covered
}
