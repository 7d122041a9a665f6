//! Protection against escalation: a user can write a role or a binding only if the user's own rules
//! cover the rules that the role or the binding grants.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Registry, Write, rbac};
use crate::authentication::{Identity, SYSTEM_MASTERS};
use crate::authorization::{Attributes, Rule, describe_missing, rules_for, uncovered};
use crate::gotext::quoted_list;
use crate::kinds::Kind;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether a write of a role or binding is checked for escalation.
#[derive(Clone, Debug, Default)]
pub(crate) enum Escalation {
    /// The writer is the control plane itself, or may escalate.
    #[default]
    Allowed,
    /// The rules that this user grants must be covered by the rules of the user.
    Checked(Arc<Identity>),
}

/// Returns the resource `roles` or `clusterroles` that the binding refers to.
fn role_resource(role: &Value) -> Option<&'static str> {
    match object::text(role, &["kind"]) {
        "Role" => Some("roles"),
        "ClusterRole" => Some("clusterroles"),
        _ => None,
    }
}

fn is_binding(kind: &Kind) -> bool {
    matches!(kind.kind.as_str(), "RoleBinding" | "ClusterRoleBinding")
}

impl Registry {
    /// Asks the authorizers whether the user may escalate by a write to `target`. `body` is the
    /// object in the request, if the request has one.
    pub(crate) async fn escalation(
        &self,
        target: &Target,
        body: Option<&Value>,
        identity: &Identity,
    ) -> Escalation {
        let kind = &target.kind;
        if !rbac::is_rbac(kind) || identity.is_member(SYSTEM_MASTERS) {
            return Escalation::Allowed;
        }
        let checked = || Escalation::Checked(Arc::new(identity.clone()));
        let live = self.store.get(&target.storage(), &target.key());
        let role;
        let attributes = if is_binding(kind) {
            // A patch need not name the role, which cannot be changed.
            let given = body.filter(|body| !object::at(body, &["roleRef"]).is_null());
            let Some(binding) = given.or(live.as_deref()) else {
                return checked();
            };
            role = object::at(binding, &["roleRef"]).clone();
            let Some(resource) = role_resource(&role) else {
                return checked();
            };
            let group = match object::text(&role, &["apiGroup"]) {
                "" => GROUP,
                group => group,
            };
            Attributes::of_resource("bind", group, resource).named(object::text(&role, &["name"]))
        } else {
            Attributes::of_resource("escalate", GROUP, &kind.plural).named(&target.name)
        };
        let mut attributes = attributes.in_namespace(&target.namespace);
        attributes.version = "*".into();
        let decision = self
            .authorizer
            .authorize(&self.store, identity, &attributes)
            .await;
        match decision.is_allowed() {
            true => Escalation::Allowed,
            false => checked(),
        }
    }

    /// Checks that the writer's own rules cover the rules that `new` grants.
    pub(super) fn check_escalation(
        &self,
        target: &Target,
        live: Option<&Value>,
        new: &Value,
        write: &Write,
    ) -> ApiResult<()> {
        let kind = &target.kind;
        let Escalation::Checked(user) = &write.escalation else {
            return Ok(());
        };
        if !rbac::is_rbac(kind) || live.is_some_and(|live| is_only_for_garbage(live, new)) {
            return Ok(());
        }
        let policy = self.authorizer.policy(&self.store);
        let granted = match is_binding(kind) {
            false => Rule::of_role(new),
            true => {
                let role = object::at(new, &["roleRef"]);
                let (of, name) = (object::text(role, &["kind"]), object::text(role, &["name"]));
                let rules = policy.role_rules(of, name, &target.namespace);
                match (rules, role_resource(role)) {
                    (Ok(rules), _) => rules.to_vec(),
                    // As in Kubernetes, the error names the resource of the binding.
                    (Err(_), Some(_)) => return Err(ApiError::not_found(kind, name)),
                    (Err(error), None) => return Err(ApiError::without_reason(500, error)),
                }
            }
        };
        let name = object::name(new);
        let refuse = |why: &str| ApiError::forbidden_named(GROUP, &kind.plural, name, why);
        let check = |granted: &[Rule]| {
            let (owned, errors) = rules_for(&policy, user, &target.namespace);
            let missing = uncovered(&owned, granted);
            if missing.is_empty() {
                return Ok(());
            }
            let mut why = format!(
                "user {:?} (groups={}) is attempting to grant RBAC permissions not currently \
                 held:\n{}",
                user.user,
                quoted_list(&user.groups),
                describe_missing(&missing)
            );
            if let Some(errors) = errors {
                why.push_str(&format!("; resolution errors: [{errors}]"));
            }
            Err(refuse(&why))
        };
        check(&granted)?;
        let aggregates = |role: &Value| {
            !object::items(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty()
        };
        if (aggregates(new) || live.is_some_and(aggregates))
            && check(&Rule::of_full_authority()).is_err()
        {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(refuse(why));
        }
        Ok(())
    }
}

/// Reports whether `new` differs from `live` only in fields that the garbage collector changes.
fn is_only_for_garbage(live: &Value, new: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            object::set_meta(&mut object, field, Value::Null);
        }
        object
    };
    let mut rest_of_new = rest(new);
    for field in ["apiVersion", "kind"] {
        object::set_field(&mut rest_of_new, field, json!(object::text(live, &[field])));
    }
    rest(live) == rest_of_new
}
