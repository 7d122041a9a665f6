//! A new project: eight files that an operator author would write by hand.

use crate::dependency::Dependency;
use crate::render::{self, ImageOptions, ImageText, KindText, fill};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, manifest, names, plural};

#[cfg(test)]
mod tests;

/// Version of a kind whose version is not given.
pub(crate) const DEFAULT_VERSION: &str = "v1alpha1";

/// License of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum License {
    /// Apache-2.0.
    Apache2,
    /// MIT.
    Mit,
    /// No license.
    #[default]
    None,
}

/// Options of a new project.
#[derive(Clone, Debug)]
pub struct NewProject {
    /// Name of the package and of the operator.
    pub name: String,
    /// Domain of the groups of its kinds; `my.domain` if there is none.
    pub domain: Option<String>,
    /// License.
    pub license: License,
    /// Owner of the copyright.
    pub owner: Option<String>,
    /// Kind; by default it follows from the name.
    pub kind: Option<String>,
    /// Group of the kind without the domain; by default the kind in lower case.
    pub group: Option<String>,
    /// Version of the kind; `v1alpha1` if there is none.
    pub version: Option<String>,
    /// Image that the objects of the kind run; the controller is written for it.
    pub image: Option<String>,
    /// How the container of the image runs.
    pub image_options: ImageOptions,
    /// Whether the operator watches one namespace.
    pub namespaced: bool,
    /// Source of the library.
    pub opkit: Dependency,
    /// Whether the project is a workspace of its own, because a directory above it is one.
    pub is_workspace: bool,
    /// Year of the copyright.
    pub year: i16,
    /// Text of a `Cargo.lock` with the versions that the library is tested with.
    pub lock_file: Option<String>,
}

impl NewProject {
    /// Returns the options with the defaults of each.
    pub fn new(name: impl Into<String>, opkit: Dependency, year: i16) -> Self {
        Self {
            name: name.into(),
            domain: None,
            license: License::None,
            owner: None,
            kind: None,
            group: None,
            version: None,
            image: None,
            image_options: ImageOptions::default(),
            namespaced: false,
            opkit,
            is_workspace: false,
            year,
            lock_file: None,
        }
    }

    /// Returns the creation of the files of the project, except those that exist already and stay
    /// as they are.
    ///
    /// # Errors
    /// If an option is not valid.
    pub fn apply(&self, is_kept: impl Fn(&str) -> bool) -> Result<Outcome> {
        let mut tree = Tree::default();
        for (path, text) in self.tree()?.files().filter(|(path, _)| !is_kept(path)) {
            tree.insert(path, text);
        }
        Ok(Outcome::new(&Tree::default(), &tree))
    }

    /// Returns the files of the project.
    ///
    /// # Errors
    /// If an option is not valid.
    pub fn tree(&self) -> Result<Tree> {
        names::check_project(&self.name)?;
        let domain = self.domain.as_deref().unwrap_or(manifest::DEFAULT_DOMAIN);
        names::check_domain(domain)?;
        let text = self.kind_text(domain)?;
        let module = text.module();
        let mut tree = Tree::default();
        tree.insert("Cargo.toml", self.manifest(domain)?);
        tree.insert(".gitignore", include_str!("templates/gitignore.txt"));
        tree.insert("README.md", self.readme(&text));
        tree.insert(format!("config/samples/{module}.yaml"), text.sample());
        tree.insert(
            "src/main.rs",
            text.fill(include_str!("templates/main.rs.txt")),
        );
        tree.insert("src/lib.rs", self.library(&text));
        tree.insert(format!("src/{module}.rs"), text.source());
        let sound = include_str!("templates/sound.rs.txt");
        tree.insert(format!("tests/{module}.rs"), text.test() + sound);
        if let Some(lock_file) = &self.lock_file {
            tree.insert("Cargo.lock", lock_file);
        }
        if let Some(license) = self.license_text()? {
            tree.insert("LICENSE", license);
        }
        Ok(tree)
    }

    fn kind_text(&self, domain: &str) -> Result<KindText> {
        let kind = match &self.kind {
            Some(kind) => kind.clone(),
            None => names::kind_of_project(&self.name),
        };
        names::check_kind(&kind).map_err(|error| match self.kind {
            Some(_) => error,
            None => {
                let reason =
                    format!("the kind {kind} does not work as a name: choose one with --kind");
                Error::argument("NAME", &self.name, reason)
            }
        })?;
        let version = self
            .version
            .clone()
            .unwrap_or_else(|| DEFAULT_VERSION.to_owned());
        names::check_version(&version)?;
        let group = self.group.clone().unwrap_or_else(|| kind.to_lowercase());
        Ok(KindText {
            group: names::group(&group, domain)?,
            version,
            plural: plural::plural(&kind),
            kind,
            is_cluster: false,
            has_controller: true,
            image: ImageText::of(self.image.as_deref(), &self.image_options)?,
            library: self.name.replace('-', "_"),
        })
    }

    pub(crate) fn manifest(&self, domain: &str) -> Result<String> {
        let license = match self.license {
            License::Apache2 => "license = \"Apache-2.0\"\n",
            License::Mit => "license = \"MIT\"\n",
            License::None => "",
        };
        let workspace = match self.is_workspace {
            true => "\n# Not a member of the workspace in a directory above.\n[workspace]\n",
            false => "",
        };
        Ok(fill(
            include_str!("templates/Cargo.toml.txt"),
            &[
                ("name", &self.name),
                ("license", license),
                ("domain", domain),
                ("opkit", &self.opkit.text()),
                ("workspace", workspace),
            ],
        ))
    }

    fn readme(&self, text: &KindText) -> String {
        let owner = self.owner.as_deref();
        let copyright = owner.map(|owner| format!("Copyright {} {owner}. ", self.year));
        let copyright = copyright.unwrap_or_default();
        let notice = match self.license {
            License::Apache2 => format!("\n{copyright}Licence: Apache-2.0, see LICENSE.\n"),
            License::Mit => format!("\n{copyright}Licence: MIT, see LICENSE.\n"),
            License::None if copyright.is_empty() => String::new(),
            License::None => format!("\n{}\n", copyright.trim_end()),
        };
        let readme = include_str!("templates/README.md.txt").replace("{{notice}}", &notice);
        text.fill(&readme.replace("{{name}}", &self.name))
    }

    fn library(&self, text: &KindText) -> String {
        let mut links = Vec::new();
        if self.namespaced {
            links.push(".namespaced()".to_owned());
        }
        links.push(format!(".crd::<{}>()", text.kind));
        links.push(format!(".controller({}::controller())", text.module()));
        let root = format!("Operator::new(\"{}\")", self.name);
        let chain = render::chain(&root, &links, 4);
        text.fill(&include_str!("templates/lib.rs.txt").replace("{{chain}}", &chain))
    }

    fn license_text(&self) -> Result<Option<String>> {
        match (self.license, self.owner.as_deref()) {
            (License::None, _) => Ok(None),
            (License::Apache2, _) => Ok(Some(include_str!("templates/apache2.txt").to_owned())),
            (License::Mit, Some(owner)) => {
                let year = self.year.to_string();
                let values = [("year", year.as_str()), ("owner", owner)];
                Ok(Some(fill(include_str!("templates/mit.txt"), &values)))
            }
            (License::Mit, None) => {
                let reason = "this license names the owner of the copyright: add --owner NAME";
                Err(Error::argument("--license", "mit", reason))
            }
        }
    }
}
