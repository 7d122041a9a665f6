//! `opkit remove controller`.

use super::{prune, refuse_use_of_function, remove_empty_module};
use crate::add::{Target, Workshop, function, function_name, reconcile_name};
use crate::operator;
use crate::tree::Tree;
use crate::{Outcome, Result, parse};

/// Removes a controller of a kind.
#[derive(Clone, Debug)]
pub struct RemoveController {
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Group; `core` for Pods and the like.
    pub group: Option<String>,
    /// Name of a second controller.
    pub name: Option<String>,
}

impl RemoveController {
    /// Returns the changes of a project.
    ///
    /// # Errors
    /// If a file is not as expected.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        let mut shop = Workshop::open(tree)?;
        let target = Target::find_or_module(&shop, &self.kind, self.group.as_deref())?;
        let name = function_name(self.name.as_deref())?;
        if shop.tree.get(&target.file).is_none() {
            return Ok(Outcome::default());
        }
        let call = format!("{}::{name}()", target.module);
        let is_meant = |it: &operator::Call| it.passes("controller", &call);
        operator::remove_links(&mut shop.tree, &shop.place, is_meant)?;
        refuse_use_of_function(tree, &shop, &target.module, &name)?;
        let source = parse(&shop.tree, &target.file)?;
        if function(&source.file.items, &name).is_some() {
            let reconcile = reconcile_name(&name);
            prune(&mut shop, &target.file, &[reconcile, name])?;
        }
        if target.import.is_some() {
            remove_empty_module(&mut shop, &target.file, &target.module)?;
        }
        Ok(Outcome::new(tree, &shop.tree))
    }
}
