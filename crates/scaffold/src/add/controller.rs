//! `opkit add controller`: a controller of a kind of this project or of another owner.

use super::{Target, Workshop, append, function};
use crate::operator;
use crate::render::{article, chain, fill};
use crate::tree::Tree;
use crate::{Error, Outcome, Result, items, names, parse};

/// Adds a controller to a project.
#[derive(Clone, Debug)]
pub struct AddController {
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Group; `core` for Pods and the like.
    pub group: Option<String>,
    /// Version of a kind of Kubernetes; by default the newest stable one.
    pub version: Option<String>,
    /// Name, for a second controller of a kind.
    pub name: Option<String>,
    /// Path of the type, for a kind that another crate defines.
    pub path: Option<String>,
}

impl AddController {
    /// Returns the options for the controller of a kind.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            group: None,
            version: None,
            name: None,
            path: None,
        }
    }

    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If an option is not valid, or a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let mut shop = Workshop::open(tree)?;
        let (group, version) = (self.group.as_deref(), self.version.as_deref());
        let target = Target::find(&shop, &self.kind, group, version, self.path.as_deref())?;
        let name = function_name(self.name.as_deref())?;
        target.ensure_module(&mut shop)?;
        let source = parse(&shop.tree, &target.file)?;
        if function(&source.file.items, &name).is_none() {
            let text = self.text(&shop, &target, &name, &items::imported(&source.file.items))?;
            if let Some(existing) = function(&source.file.items, &reconcile_name(&name)) {
                let reason = format!(
                    "there is a function `{}` already, but no `{name}`: write `pub fn {name}()` by hand",
                    existing.sig.ident
                );
                return Err(source.refuse(existing.sig.ident.span(), reason));
            }
            shop.edit(&target.file, |source, edits| {
                append(source, &text, edits);
                Ok(())
            })?;
        }
        shop.add_call("controller", &target.module, &name)?;
        let next = format!("write {} in {}", reconcile_name(&name), target.file);
        Ok(Outcome::new(tree, &shop.tree).with_next(next))
    }

    fn text(
        &self,
        shop: &Workshop,
        target: &Target,
        function: &str,
        imported: &[String],
    ) -> Result<String> {
        let calls = operator::calls(&shop.tree, &shop.place)?;
        let own = format!("{}::", target.module);
        let has_other = calls
            .iter()
            .any(|it| it.method == "controller" && it.arguments.contains(&own));
        let name = self
            .name
            .as_deref()
            .filter(|_| has_other || function != "controller");
        let mut links = Vec::new();
        links.extend(name.map(|name| format!(".named(\"{name}\")")));
        links.push(".into()".to_owned());
        let reconcile = reconcile_name(function);
        let words = names::words(&target.kind);
        let root = format!("Controller::new({reconcile})");
        let body = chain(&root, &links, 4);
        let template = include_str!("../templates/controller.rs.txt");
        let template = template.replace("Controller::new({{reconcile}}){{links}}", &body);
        let template = match imported.iter().any(|it| it == "AnyController") {
            true => template,
            false => template.replace("-> AnyController", "-> opkit::controller::AnyController"),
        };
        let named = name.map(|name| format!(" `{name}`")).unwrap_or_default();
        let meant = named.replacen(' ', " for the controller ", 1);
        let text = fill(
            &template,
            &[
                ("named", &named),
                ("meant", &meant),
                ("a", article(&words)),
                ("words", &words),
                ("function", function),
                ("reconcile", &reconcile),
                ("var", &names::variable(&target.kind)),
                ("Kind", &target.kind),
                ("annotation", &format!("{}/note", shop.manifest.domain)),
                ("reason", "Noted"),
            ],
        );
        Ok(text)
    }
}

/// Returns the name of the function that returns a controller.
pub(crate) fn function_name(name: Option<&str>) -> Result<String> {
    let Some(name) = name else {
        return Ok("controller".to_owned());
    };
    let function = name.replace('-', "_");
    let is_label = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_free = ![
        "reconcile",
        "webhook",
        "check",
        "set_defaults",
        "desired_deployment",
    ]
    .contains(&function.as_str());
    match is_label && is_free && syn::parse_str::<syn::Ident>(&function).is_ok() {
        true => Ok(function),
        false => {
            let reason =
                "a controller is named by lower-case letters, digits and `-`, such as scaler";
            Err(Error::argument("--name", name, reason))
        }
    }
}

/// Returns the name of the reconcile function of a controller.
pub(crate) fn reconcile_name(function: &str) -> String {
    match function {
        "controller" => "reconcile".to_owned(),
        function => format!("reconcile_{function}"),
    }
}
