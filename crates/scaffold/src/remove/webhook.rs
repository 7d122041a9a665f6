//! `opkit remove webhook`.

use super::{prune, refuse_use_of_function, remove_empty_module, remove_test};
use crate::add::{Target, Workshop, function};
use crate::operator::{self, Chain, remove_from_chain};
use crate::tree::Tree;
use crate::{Outcome, Result, parse};

/// Removes a webhook of a kind, or one of its functions.
#[derive(Clone, Debug)]
pub struct RemoveWebhook {
    /// Kind, such as `Robot`.
    pub kind: String,
    /// Group; `core` for Pods and the like.
    pub group: Option<String>,
    /// Whether the function that sets defaults is removed.
    pub defaulting: bool,
    /// Whether the function that validates objects is removed.
    pub validation: bool,
}

impl RemoveWebhook {
    /// Returns the changes of a project. Without a choice the whole webhook is removed.
    ///
    /// # Errors
    /// If a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let mut shop = Workshop::open(tree)?;
        let target = Target::find_or_module(&shop, &self.kind, self.group.as_deref())?;
        if shop.tree.get(&target.file).is_none() {
            return Ok(Outcome::default());
        }
        let source = parse(&shop.tree, &target.file)?;
        let Some(webhook) = function(&source.file.items, "webhook") else {
            return Ok(Outcome::default());
        };
        let all = self.defaulting == self.validation;
        let mut methods = Vec::new();
        if all || self.defaulting {
            methods.push("defaulting");
        }
        if all || self.validation {
            methods.push("validating");
        }
        let arguments = methods.iter().map(|it| Chain::arguments(webhook, it));
        let mut functions: Vec<String> = arguments.flatten().collect();
        let mut is_left = false;
        shop.edit(&target.file, |source, edits| {
            is_left = remove_from_chain(source, webhook, &methods, edits);
            Ok(())
        })?;
        if all || !is_left {
            let call = format!("{}::webhook()", target.module);
            let is_meant = |it: &operator::Call| it.passes("webhook", &call);
            operator::remove_links(&mut shop.tree, &shop.place, is_meant)?;
            refuse_use_of_function(tree, &shop, &target.module, "webhook")?;
            functions.push("webhook".to_owned());
        }
        if methods.contains(&"validating") {
            let name = target.module.rsplit("::").next().unwrap_or_default();
            remove_test(&mut shop, name, "check_allows_the_sample")?;
        }
        prune(&mut shop, &target.file, &functions)?;
        if target.import.is_some() {
            remove_empty_module(&mut shop, &target.file, &target.module)?;
        }
        Ok(Outcome::new(tree, &shop.tree))
    }
}
