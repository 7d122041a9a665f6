//! Controller of aggregated ClusterRoles: copies the rules of the selected ClusterRoles into a
//! ClusterRole with an `aggregationRule`.

use std::sync::Arc;

use opkit_apimachinery::selector::LabelSelector;
use serde_json::{Value, json};

use crate::object;
use crate::registry::{Patch, PatchType, Registry, Write};
use crate::status::ApiResult;
use crate::target::Target;

/// The resource name of ClusterRoles in the store.
pub(super) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
/// The field manager of the controller in Kubernetes.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Updates the rules of all ClusterRoles that aggregate other ClusterRoles.
pub(crate) async fn step(registry: &Registry) -> ApiResult<()> {
    let (roles, _) = registry.store.list(CLUSTER_ROLES, None);
    let kind = registry.builtin("rbac.authorization.k8s.io", "clusterroles")?;
    for role in &roles {
        let selectors = object::items(role, &["aggregationRule", "clusterRoleSelectors"]);
        if selectors.is_empty() || object::is_deleting(role) {
            continue;
        }
        let name = object::name(role);
        let rules = aggregate(name, selectors, &roles);
        if rules == object::items(role, &["rules"]) {
            continue;
        }
        let body = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": {"name": name}, "rules": rules,
        });
        let patch = Patch {
            type_: PatchType::Apply,
            body,
        };
        let mut write = Write::by(MANAGER);
        write.force = true;
        registry
            .patch(&Target::new(&kind, "", name), &patch, &mut write)
            .await?;
    }
    Ok(())
}

/// Returns the rules of the roles that the selectors select, in the order of the selectors and of
/// the names, each rule once.
fn aggregate(name: &str, selectors: &[Value], roles: &[Arc<Value>]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        let Ok(selector) = LabelSelector::from_object(selector) else {
            continue;
        };
        let selected = roles
            .iter()
            .filter(|role| object::name(role) != name && selector.matches(object::labels(role)));
        for rule in selected.flat_map(|role| object::items(role, &["rules"])) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}
