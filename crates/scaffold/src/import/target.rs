//! The kinds of a project that get a module: with their controllers and webhooks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::code::{self, Body, GoController, GoType, GoWebhook};
use super::project::{Crd, KubebuilderProject, Resource};
use crate::built_in::{self, BuiltIn};
use crate::types::{Model, Root, Spoke};
use crate::{CrdTypes, Result, names, plural};

/// Kind with a module of its own.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) module: String,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) of: Of<'a>,
    pub(super) controllers: Vec<Planned>,
    pub(super) webhook: Option<PlannedWebhook>,
}

/// Owner of a kind.
#[derive(Debug)]
pub(super) enum Of<'a> {
    /// The project, with the types of its versions.
    Own(Box<Own<'a>>),
    /// Kubernetes.
    BuiltIn(BuiltIn),
    /// Another project, whose Rust types are not known.
    Dynamic { version: String, plural: String },
}

/// Types of a kind that the project defines.
#[derive(Debug)]
pub(super) struct Own<'a> {
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) hub: Model<'a>,
    pub(super) versions: Vec<Version>,
}

/// Version of a kind that is not the hub.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) types: Spoke,
    /// Functions that convert it in Go.
    pub(super) conversions: Vec<Body>,
}

/// Controller to write.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) name: Option<String>,
    pub(super) go: Option<GoController>,
}

/// Webhook to write.
#[derive(Debug, Default)]
pub(super) struct PlannedWebhook {
    pub(super) defaulting: bool,
    pub(super) validation: bool,
    /// Paths that are not those of kubebuilder.
    pub(super) paths: Vec<String>,
    pub(super) go: GoWebhook,
}

impl Target<'_> {
    /// Returns group and plural.
    pub(super) fn resource(&self) -> (String, String) {
        let plural = match &self.of {
            Of::Own(own) => own.plural.clone(),
            Of::BuiltIn(built_in) => plural::regular(built_in.kind),
            Of::Dynamic { plural, .. } => plural.clone(),
        };
        (self.group.clone(), plural)
    }

    /// Reports whether the kind is registered with `Operator::crd`.
    pub(super) fn has_crd(&self) -> bool {
        match &self.of {
            Of::Own(own) => matches!(own.hub.root, Root::Kind { .. }),
            Of::BuiltIn(_) | Of::Dynamic { .. } => false,
        }
    }

    pub(super) fn is_dynamic(&self) -> bool {
        matches!(self.of, Of::Dynamic { .. })
    }

    /// Returns the path of its file.
    pub(super) fn file(&self) -> String {
        format!("src/{}.rs", self.module)
    }
}

/// Returns the kinds of a project. What cannot be imported is added to `unported`.
pub(super) fn all<'a>(
    project: &'a KubebuilderProject,
    unported: &mut Vec<String>,
) -> Result<Vec<Target<'a>>> {
    let mut targets = Vec::new();
    for crd in &project.crds {
        match own(project, crd, unported) {
            Ok(own) => targets.push(target(&crd.group, &crd.kind, Of::Own(Box::new(own)))),
            Err(error) => unported.push(format!("the kind {} of {}: {error}", crd.kind, crd.group)),
        }
    }
    for resource in &project.resources {
        if resource.has_api
            || resource.controllers.is_empty() && !resource.defaulting && !resource.validation
        {
            continue;
        }
        if find(&targets, &resource.group, &resource.kind).is_none() {
            let of = foreign(resource)?;
            targets.push(target(&resource.group, &resource.kind, of));
        }
    }
    controllers(project, &mut targets, unported);
    webhooks(project, &mut targets);
    name_modules(project, &mut targets);
    Ok(targets)
}

fn target<'a>(group: &str, kind: &str, of: Of<'a>) -> Target<'a> {
    Target {
        module: String::new(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        of,
        controllers: Vec::new(),
        webhook: None,
    }
}

/// Returns the position of a kind.
pub(super) fn find(targets: &[Target<'_>], group: &str, kind: &str) -> Option<usize> {
    let mut targets = targets.iter();
    targets.position(|it| it.group == group && it.kind == kind)
}

/// Returns the types of a kind of the project.
fn own<'a>(
    project: &'a KubebuilderProject,
    crd: &'a Crd,
    unported: &mut Vec<String>,
) -> Result<Own<'a>> {
    let (names, stored) = crd.versions();
    let of_kind = |it: &&Resource| it.kind == crd.kind && it.group == crd.group;
    let resources = || project.resources.iter().filter(of_kind);
    let hub = resources()
        .find(|it| it.conversion)
        .map(|it| it.version.as_str());
    let hub = hub
        .filter(|hub| names.contains(hub))
        .or(stored)
        .unwrap_or_default();
    let mut model = CrdTypes::new(&crd.value).version(hub).model()?;
    let mut versions = Vec::new();
    for name in names.iter().filter(|name| **name != hub) {
        let spoke = CrdTypes::new(&crd.value)
            .version(name)
            .model()?
            .spoke(&model);
        let Some(types) = spoke else {
            let what = format!(
                "the version {name} of the kind {}: only one of the versions has a spec, or a status",
                crd.kind
            );
            unported.push(what);
            continue;
        };
        let path = resources()
            .find(|it| it.version == **name)
            .map(|it| it.path.as_str());
        let conversions = path.map(|path| code::conversions(project, path, &crd.kind));
        versions.push(Version {
            name: (*name).to_owned(),
            types,
            conversions: conversions.unwrap_or_default(),
        });
    }
    let paths: Vec<String> = versions
        .iter()
        .map(|it| format!("{}::{}", it.name, crd.kind))
        .collect();
    let is_other = |stored: &&str| versions.iter().any(|it| it.name == **stored);
    model.set_versions(&paths, stored.filter(is_other));
    let plural = crd
        .value
        .pointer("/spec/names/plural")
        .and_then(Value::as_str);
    Ok(Own {
        version: hub.to_owned(),
        plural: plural.unwrap_or_default().to_owned(),
        hub: model,
        versions,
    })
}

/// Returns the owner of a kind that the project does not define.
fn foreign(resource: &Resource) -> Result<Of<'static>> {
    let group = match resource.group.as_str() {
        "" => "core",
        group => group,
    };
    let built_in = match resource.is_external {
        true => None,
        false => built_in::find(&resource.kind, Some(group), Some(&resource.version))?,
    };
    Ok(match built_in {
        Some(built_in) => Of::BuiltIn(built_in),
        None => Of::Dynamic {
            version: resource.version.clone(),
            plural: resource
                .plural
                .clone()
                .unwrap_or_else(|| plural::plural(&resource.kind)),
        },
    })
}

/// Returns group, version and kind of a Go type.
pub(super) fn resolve(
    project: &KubebuilderProject,
    go: &GoType,
) -> Option<(String, String, String)> {
    if let Some(it) = project.resource(&go.path, &go.kind) {
        return Some((it.group.clone(), it.version.clone(), it.kind.clone()));
    }
    if let Some(path) = go.path.strip_prefix("k8s.io/api/") {
        let (group, version) = path.split_once('/')?;
        let found = built_in::find(&go.kind, Some(group), Some(version)).ok()??;
        let group = match found.group {
            "core" => "",
            group => group,
        };
        return Some((
            group.to_owned(),
            found.version.to_owned(),
            found.kind.to_owned(),
        ));
    }
    // A kind that was written without kubebuilder's commands.
    let is_own = go.path.starts_with(&format!("{}/", project.repo));
    let mut crds = project
        .crds
        .iter()
        .filter(|crd| is_own && crd.kind == go.kind);
    let version = go.path.rsplit('/').next().unwrap_or_default();
    let crd = crds.next().filter(|_| crds.next().is_none())?;
    Some((crd.group.clone(), version.to_owned(), crd.kind.clone()))
}

/// Returns group, version and kind of a reconciler by its name, if one resource has that kind.
fn of_name(project: &KubebuilderProject, reconciler: &str) -> Option<(String, String, String)> {
    let kind = reconciler.strip_suffix("Reconciler")?;
    let is_meant = |it: &&Resource| it.kind == kind && !it.controllers.is_empty();
    let mut resources = project.resources.iter().filter(is_meant);
    let resource = resources.next().filter(|_| resources.next().is_none())?;
    Some((
        resource.group.clone(),
        resource.version.clone(),
        resource.kind.clone(),
    ))
}

/// Adds the controllers: those of the Go code, and those of the `PROJECT` file without code.
fn controllers(
    project: &KubebuilderProject,
    targets: &mut Vec<Target<'_>>,
    unported: &mut Vec<String>,
) {
    for go in code::controllers(project) {
        let key = go.target.as_ref().and_then(|it| resolve(project, it));
        let key = key.or_else(|| of_name(project, &go.reconciler));
        let Some((group, version, kind)) = key else {
            let what = format!(
                "{} at {}: its `For(...)` is not a kind that is known here",
                go.reconciler, go.reconcile.place
            );
            unported.push(what);
            continue;
        };
        let index = match find(targets, &group, &kind) {
            Some(index) => index,
            None => {
                let resource = Resource {
                    group,
                    version: version.clone(),
                    kind,
                    ..Resource::default()
                };
                let Ok(of) = foreign(&resource) else {
                    continue;
                };
                targets.push(target(&resource.group, &resource.kind, of));
                targets.len() - 1
            }
        };
        if let Some(target) = targets.get_mut(index) {
            let name = go.name.clone();
            if let Of::Own(own) = &target.of
                && own.version != version
            {
                unported.push(format!(
                    "{} at {} uses {version} of the kind {}, and its controller here {}",
                    go.reconciler, go.reconcile.place, target.kind, own.version
                ));
            }
            target.controllers.push(Planned { name, go: Some(go) });
        }
    }
    for resource in &project.resources {
        let index = find(targets, &resource.group, &resource.kind);
        let Some(target) = index.and_then(|index| targets.get_mut(index)) else {
            continue;
        };
        let missing = resource
            .controllers
            .len()
            .saturating_sub(target.controllers.len());
        let is_used = |name: &&String| {
            let mut known = target.controllers.iter();
            !known.any(|it| it.name.as_ref() == Some(name))
        };
        let names: Vec<String> = resource
            .controllers
            .iter()
            .filter(is_used)
            .take(missing)
            .cloned()
            .collect();
        for name in names {
            unported.push(format!(
                "the controller {name} of the kind {}: its Go code was not found",
                resource.kind
            ));
            let name = Some(name);
            target.controllers.push(Planned { name, go: None });
        }
    }
    for target in targets {
        // The one with the name of the kind is the first.
        let default = target.kind.to_lowercase();
        target
            .controllers
            .sort_by_key(|it| it.name.as_ref().is_some_and(|name| *name != default));
    }
}

/// Adds the webhooks.
fn webhooks(project: &KubebuilderProject, targets: &mut [Target<'_>]) {
    for resource in project
        .resources
        .iter()
        .filter(|it| it.defaulting || it.validation)
    {
        let index = find(targets, &resource.group, &resource.kind);
        let Some(target) = index.and_then(|index| targets.get_mut(index)) else {
            continue;
        };
        let webhook = target.webhook.get_or_insert_default();
        webhook.defaulting |= resource.defaulting;
        webhook.validation |= resource.validation;
        webhook.paths.extend(resource.paths.iter().cloned());
        code::webhook(project, resource, &mut webhook.go);
    }
}

/// Names the modules after the kinds. Kinds of the same name in several groups have that of their
/// group before it.
fn name_modules(project: &KubebuilderProject, targets: &mut [Target<'_>]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for target in targets.iter() {
        *counts.entry(names::module(&target.kind)).or_default() += 1;
    }
    for target in targets {
        let module = names::module(&target.kind);
        target.module = match counts.get(&module) {
            Some(1) => module,
            _ => {
                let of_kind =
                    |it: &&Resource| it.group == target.group && !it.short_group.is_empty();
                let short = project.resources.iter().find(of_kind);
                let group = short.map_or(target.group.as_str(), |it| it.short_group.as_str());
                let word = |letter: char| match letter.is_ascii_alphanumeric() {
                    true => letter,
                    false => '_',
                };
                let group: String = group.chars().map(word).collect();
                format!("{group}_{module}")
            }
        };
    }
}
