//! `opkit add webhook`: defaults and validation by functions, for any kind.

use super::{Target, Workshop, append, function};
use crate::operator::{Chain, append_to_chain};
use crate::render::{article, chain, fill};
use crate::source::Source;
use crate::tree::Tree;
use crate::{Error, Outcome, Result, kinds, names, parse};

/// Adds a webhook to a project.
#[derive(Clone, Debug)]
pub struct AddWebhook {
    /// Kind, such as `Robot`.
    pub kind: String,
    /// Group; `core` for Pods and the like.
    pub group: Option<String>,
    /// Version of a kind of Kubernetes; by default the newest stable one.
    pub version: Option<String>,
    /// Path of the type, for a kind that another crate defines.
    pub path: Option<String>,
    /// Whether a function sets defaults.
    pub defaulting: bool,
    /// Whether a function validates objects.
    pub validation: bool,
    /// Whether the conversion between the versions of the kind is served.
    pub conversion: bool,
}

/// Function of a webhook.
struct Part {
    method: &'static str,
    function: &'static str,
    template: &'static str,
}

const DEFAULTING: Part = Part {
    method: "defaulting",
    function: "set_defaults",
    template: include_str!("../templates/defaulting.rs.txt"),
};

const VALIDATION: Part = Part {
    method: "validating",
    function: "check",
    template: include_str!("../templates/validation.rs.txt"),
};

impl AddWebhook {
    /// Returns the options without a function.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            group: None,
            version: None,
            path: None,
            defaulting: false,
            validation: false,
            conversion: false,
        }
    }

    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If an option is not valid, or a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        if !self.defaulting && !self.validation && !self.conversion {
            let reason = "add --defaulting, --validation or --conversion";
            return Err(Error::argument("--kind", &self.kind, reason));
        }
        let mut shop = Workshop::open(tree)?;
        if self.conversion {
            self.check_versions(&shop)?;
        }
        let wanted = [(self.defaulting, DEFAULTING), (self.validation, VALIDATION)];
        let wanted: Vec<Part> = wanted
            .into_iter()
            .filter_map(|(is, part)| is.then_some(part))
            .collect();
        if wanted.is_empty() {
            return Ok(Outcome::default());
        }
        let (group, version) = (self.group.as_deref(), self.version.as_deref());
        let target = Target::find(&shop, &self.kind, group, version, self.path.as_deref())?;
        target.ensure_module(&mut shop)?;
        let source = parse(&shop.tree, &target.file)?;
        let parts = missing(&source, wanted)?;
        self.write(&mut shop, &target, &parts)?;
        if parts
            .iter()
            .any(|part| part.function == VALIDATION.function)
        {
            add_test(&mut shop, &target)?;
        }
        shop.add_call("webhook", &target.module, "webhook")?;
        let functions: Vec<_> = parts.iter().map(|part| part.function).collect();
        let next = format!("write {} in {}", functions.join(" and "), target.file);
        Ok(Outcome::new(tree, &shop.tree).with_next(next))
    }

    /// Fails if there is no conversion to serve. An operator serves that of its kinds by itself.
    fn check_versions(&self, shop: &Workshop) -> Result<()> {
        let kind = kinds::find(&shop.tree, &shop.manifest, &self.kind)?;
        match kind.versions().is_empty() {
            false => Ok(()),
            true => {
                let reason = format!(
                    "this kind has one version; `opkit add version VERSION --kind {}` adds another one, and the operator then serves the conversion",
                    self.kind
                );
                Err(Error::argument("--conversion", &self.kind, reason))
            }
        }
    }

    /// Adds the functions to the file of the kind.
    fn write(&self, shop: &mut Workshop, target: &Target, parts: &[Part]) -> Result<()> {
        let links: Vec<String> = (parts.iter())
            .map(|part| format!(".{}({})", part.method, part.function))
            .collect();
        if links.is_empty() {
            return Ok(());
        }
        let name = shop.manifest.package.clone();
        let text = |template: &str| {
            let words = names::words(&target.kind);
            let values = [
                ("a", article(&words)),
                ("words", &words),
                ("Kind", &target.kind),
                ("var", &names::variable(&target.kind)),
                ("name", &name),
            ];
            fill(template, &values)
        };
        shop.edit(&target.file, |source, edits| {
            let mut added = String::new();
            match function(&source.file.items, "webhook") {
                Some(webhook) => append_to_chain(source, webhook, &links, edits)?,
                None => {
                    let body = chain("Webhook::new()", &links, 4);
                    let template = include_str!("../templates/webhook.rs.txt");
                    added += &text(&template.replace("{{chain}}", &body));
                }
            }
            for part in parts {
                added += &text(part.template);
            }
            append(source, &added, edits);
            Ok(())
        })
    }
}

/// Returns the parts that the webhook of a file does not have yet.
fn missing(source: &Source, wanted: Vec<Part>) -> Result<Vec<Part>> {
    let items = &source.file.items;
    let webhook = function(items, "webhook");
    let mut parts = Vec::new();
    for part in wanted {
        let has_method = webhook.is_some_and(|it| Chain::has_method(it, part.method));
        if has_method {
            continue;
        }
        if let Some(other) = function(items, part.function) {
            let reason = format!(
                "there is a function `{}` already: add `.{}({})` to `pub fn webhook()` by hand",
                part.function, part.method, part.function
            );
            return Err(source.refuse(other.sig.ident.span(), reason));
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Adds a test of `check` with the sample, if there is a test file and a sample.
fn add_test(shop: &mut Workshop, target: &Target) -> Result<()> {
    let name = target.module.rsplit("::").next().unwrap_or_default();
    let path = format!("tests/{name}.rs");
    let sample = format!("config/samples/{name}.yaml");
    let has_sample = shop.tree.get(&sample).is_some();
    if !has_sample || target.import.is_some() || shop.tree.get(&path).is_none() {
        return Ok(());
    }
    let library = shop.manifest.library.clone();
    shop.edit(&path, |source, edits| {
        if function(&source.file.items, "check_allows_the_sample").is_some() {
            return Ok(());
        }
        let values = [
            ("library", library.as_str()),
            ("module", &target.module),
            ("names", &format!("{{{}, check}}", target.kind)),
            ("sample", name),
            ("var", &names::variable(&target.kind)),
            ("Kind", &target.kind),
        ];
        let text = fill(include_str!("../templates/test-check.rs.txt"), &values);
        let end = if source.text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        edits.insert(source.text.len(), format!("{end}{text}"));
        Ok(())
    })
}
