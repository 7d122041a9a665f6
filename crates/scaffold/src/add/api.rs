//! `opkit add api`: a kind with its controller, test and sample.

use super::{AddController, Workshop};
use crate::kinds::{self, Kind};
use crate::new::DEFAULT_VERSION;
use crate::operator;
use crate::render::{ImageOptions, ImageText, KindText};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, names, parse, plural};

/// Adds a kind to a project.
#[derive(Clone, Debug)]
pub struct AddApi {
    /// Kind, such as `Arm`.
    pub kind: String,
    /// Group without the domain; by default the group of the project's kinds.
    pub group: Option<String>,
    /// Version; `v1alpha1` if there is none.
    pub version: Option<String>,
    /// Plural; by default as kubebuilder chooses it.
    pub plural: Option<String>,
    /// Whether its objects are in no namespace.
    pub cluster_scoped: bool,
    /// Whether the kind itself is added.
    pub resource: bool,
    /// Whether a controller is added.
    pub controller: bool,
    /// Image that the objects of the kind run; the controller is written for it.
    pub image: Option<String>,
    /// How the container of the image runs.
    pub image_options: ImageOptions,
}

impl AddApi {
    /// Returns the options for a namespaced kind with a controller.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            group: None,
            version: None,
            plural: None,
            cluster_scoped: false,
            resource: true,
            controller: true,
            image: None,
            image_options: ImageOptions::default(),
        }
    }

    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If an option is not valid, or a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let image = ImageText::of(self.image.as_deref(), &self.image_options)?;
        if let Some(image) = image.filter(|_| !self.resource || !self.controller) {
            let reason = "an image needs both the kind and its controller";
            return Err(Error::argument("--image", image.image, reason));
        }
        match (self.resource, self.controller) {
            (true, _) => {}
            (false, true) => {
                let mut command = AddController::new(&self.kind);
                command.group = self.group.clone();
                command.version = self.version.clone();
                return command.apply(tree);
            }
            (false, false) => {
                let reason = "with neither the kind nor a controller there is nothing to add";
                return Err(Error::argument("--no-resource", "--no-controller", reason));
            }
        }
        names::check_kind(&self.kind)?;
        let mut shop = Workshop::open(tree)?;
        let existing = shop.own_kind(&self.kind, None)?;
        let module = match &existing {
            Some(existing) => self.existing(&shop, existing)?,
            None => self.create(&mut shop)?,
        };
        // The function first, so that a refusal names its line as it is now.
        let calls = operator::calls(&shop.tree, &shop.place)?;
        let is_registered = calls.iter().any(|call| call.is_crd(&self.kind));
        if !is_registered {
            let link = format!(".crd::<{}>()", self.kind);
            operator::add_link(&mut shop.tree, &shop.place, "crd", &link)?;
        }
        if self.controller {
            shop.add_call("controller", &module, "controller")?;
        }
        if existing.is_none() {
            shop.add_module(&module)?;
        }
        if !is_registered {
            shop.add_use(&module, &self.kind)?;
        }
        let next = format!(
            "change {}Spec in src/{module}.rs, and run `opkit dev`",
            self.kind
        );
        Ok(Outcome::new(tree, &shop.tree).with_next(next))
    }

    /// Checks that the kind that exists is the one to add, and returns its module.
    fn existing(&self, shop: &Workshop, kind: &Kind) -> Result<String> {
        let line = parse(&shop.tree, &kind.file)?;
        let line = line.text.get(..kind.attribute.start).unwrap_or_default();
        let line = line.matches('\n').count() + 1;
        if let Some(group) = &self.group
            && names::group(group, &shop.manifest.domain)? != kind.group()
        {
            let reason = format!(
                "the kind {} exists in the group {}",
                kind.name,
                kind.group()
            );
            return Err(Error::source(&kind.file, line, reason));
        }
        let version = self.version.clone().unwrap_or_else(|| kind.version());
        if version != kind.version() && !kind.other_versions().contains(&version) {
            let reason = format!(
                "the kind {} exists in the version {}: `opkit add version {version} --kind {}` adds another one",
                kind.name,
                kind.version(),
                kind.name
            );
            return Err(Error::source(&kind.file, line, reason));
        }
        if self.controller && !self.has_controller(shop, kind)? {
            let reason = format!(
                "the kind {0} exists without a controller: `opkit add controller --kind {0}` adds one",
                kind.name
            );
            return Err(Error::source(&kind.file, line, reason));
        }
        Ok(kind.path())
    }

    fn has_controller(&self, shop: &Workshop, kind: &Kind) -> Result<bool> {
        let file = shop.manifest.operator_file(&shop.tree, &kind.file);
        if shop.tree.get(&file).is_none() {
            return Ok(false);
        }
        let source = parse(&shop.tree, &file)?;
        Ok(super::function(kind.items(&source), "controller").is_some())
    }

    /// Creates the files of the kind, and returns its module.
    fn create(&self, shop: &mut Workshop) -> Result<String> {
        let version = self
            .version
            .clone()
            .unwrap_or_else(|| DEFAULT_VERSION.to_owned());
        names::check_version(&version)?;
        if let Some(plural) = &self.plural {
            names::check_plural(plural)?;
        }
        let calls = operator::calls(&shop.tree, &shop.place)?;
        if self.cluster_scoped && calls.iter().any(|call| call.method == "namespaced") {
            let reason = "the operator watches one namespace, and cannot watch a kind without one";
            return Err(Error::argument("--cluster-scoped", &self.kind, reason));
        }
        let plural = self
            .plural
            .clone()
            .unwrap_or_else(|| plural::plural(&self.kind));
        let text = KindText {
            kind: self.kind.clone(),
            group: self.group_in(shop)?,
            version,
            plural,
            is_cluster: self.cluster_scoped,
            has_controller: self.controller,
            image: ImageText::of(self.image.as_deref(), &self.image_options)?,
            library: shop.manifest.library.clone(),
        };
        let module = text.module();
        shop.check_free(&module)?;
        shop.check_unused(&self.kind)?;
        let files = [
            (
                shop.manifest.beside_root(&format!("{module}.rs")),
                text.source(),
            ),
            (format!("tests/{module}.rs"), text.test()),
            (format!("config/samples/{module}.yaml"), text.sample()),
        ];
        for (path, text) in files {
            if shop.tree.get(&path).is_some() {
                let reason = "this file exists: rename it, or choose another kind";
                return Err(Error::source(&path, 1, reason));
            }
            shop.tree.insert(path, text);
        }
        Ok(module)
    }

    /// Returns the whole group: the given one, or that of the project's kinds, if all have one.
    fn group_in(&self, shop: &Workshop) -> Result<String> {
        let domain = &shop.manifest.domain;
        if let Some(group) = &self.group {
            return names::group(group, domain);
        }
        let mut groups: Vec<_> = (kinds::all(&shop.tree, &shop.manifest).iter())
            .map(Kind::group)
            .collect();
        groups.sort();
        groups.dedup();
        match groups.as_slice() {
            [] => names::group(&self.kind.to_lowercase(), domain),
            [group] => Ok(group.clone()),
            several => {
                let reason = format!(
                    "the kinds here are in the groups {}: add --group",
                    several.join(" and ")
                );
                Err(Error::argument("--kind", &self.kind, reason))
            }
        }
    }
}
