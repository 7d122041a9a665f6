//! Whether the operator's ServiceAccount has the permissions of the build.
//!
//! The rules of all roles that bindings grant to the ServiceAccount are compared with those of the
//! manifests, so that a role with another name is as good.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::value::{items, kind, name, namespace, text, texts};
use crate::{Facts, Finding};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let kinds = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    // Without the operator, the missing Deployment says enough.
    if facts.deployment().is_none() || !kinds.iter().all(|kind| facts.is_read(kind)) {
        return Vec::new();
    }
    let Some(account) = Account::of(facts) else {
        return Vec::new();
    };
    let mut missing = BTreeSet::new();
    for binding in bindings(&facts.manifests.objects) {
        if !account.is_subject(binding) {
            continue;
        }
        let scope = namespace(binding);
        let granted = account.rules(&facts.objects, scope);
        for rule in rules(&facts.manifests.objects, binding) {
            for needed in permissions(rule) {
                if !granted.iter().any(|rule| covers(rule, &needed)) {
                    missing.insert((needed.resource(), scope.unwrap_or_default(), needed.verb));
                }
            }
        }
    }
    let mut resources: Vec<((String, &str), Vec<&str>)> = Vec::new();
    for (resource, scope, verb) in missing {
        match resources.last_mut() {
            Some((last, verbs)) if *last == (resource.clone(), scope) => verbs.push(verb),
            _ => resources.push(((resource, scope), vec![verb])),
        }
    }
    let findings = resources.into_iter().map(|((resource, scope), verbs)| {
        let (user, first) = (account.user(), verbs.first().copied().unwrap_or_default());
        let (place, flag) = match scope {
            "" => (String::new(), " -A".to_owned()),
            scope => (format!(" in the namespace {scope}"), format!(" -n {scope}")),
        };
        let message = format!(
            "serviceaccount/{} may not {} {resource}{place}, which this build needs",
            account.name,
            verbs.join(", ")
        );
        Finding::fail("rbac", message).command(format!(
            "opkit deploy   # shown by: kubectl auth can-i {first} {resource} --as {user}{flag}"
        ))
    });
    super::limited("rbac", findings.collect())
}

/// ServiceAccount of the operator.
struct Account {
    namespace: String,
    name: String,
}

impl Account {
    fn of(facts: &Facts) -> Option<Self> {
        let deployment = facts.expected_deployment()?;
        let name = text(deployment, "/spec/template/spec/serviceAccountName");
        Some(Self {
            namespace: namespace(deployment)?.to_owned(),
            name: name.to_owned(),
        })
    }

    fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn is_subject(&self, binding: &Value) -> bool {
        let mut subjects = items(binding, "/subjects").iter();
        subjects.any(|subject| {
            let name = text(subject, "/name");
            match kind(subject) {
                "ServiceAccount" => {
                    name == self.name && text(subject, "/namespace") == self.namespace
                }
                "User" => name == self.user(),
                "Group" => {
                    let own = format!("system:serviceaccounts:{}", self.namespace);
                    name == own || matches!(name, "system:serviceaccounts" | "system:authenticated")
                }
                _ => false,
            }
        })
    }

    /// Returns the rules that apply to the account in a namespace, or in the whole cluster.
    fn rules<'a>(&self, objects: &'a [Value], scope: Option<&str>) -> Vec<&'a Value> {
        let bindings = bindings(objects);
        let bindings = bindings.filter(|it| namespace(it).is_none() || namespace(it) == scope);
        let bindings = bindings.filter(|it| self.is_subject(it));
        bindings.flat_map(|it| rules(objects, it)).collect()
    }
}

fn bindings(objects: &[Value]) -> impl Iterator<Item = &Value> {
    let objects = objects.iter();
    objects.filter(|it| matches!(kind(it), "ClusterRoleBinding" | "RoleBinding"))
}

/// Returns the rules of the role that a binding refers to.
fn rules<'a>(objects: &'a [Value], binding: &Value) -> &'a [Value] {
    let (role_kind, role) = (
        text(binding, "/roleRef/kind"),
        text(binding, "/roleRef/name"),
    );
    let scope = namespace(binding).filter(|_| role_kind == "Role");
    let mut roles = objects.iter();
    let role = roles.find(|it| kind(it) == role_kind && name(it) == role && namespace(it) == scope);
    role.map_or(&[], |role| items(role, "/rules"))
}

/// One permission.
struct Permission<'a> {
    group: &'a str,
    resource: &'a str,
    verb: &'a str,
    names: Vec<&'a str>,
}

impl Permission<'_> {
    fn resource(&self) -> String {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, format!("/{subresource}")),
            None => (self.resource, String::new()),
        };
        match self.group {
            "" => format!("{resource}{subresource}"),
            group => format!("{resource}.{group}{subresource}"),
        }
    }
}

fn permissions(rule: &Value) -> Vec<Permission<'_>> {
    let mut all = Vec::new();
    for group in texts(rule, "/apiGroups") {
        for resource in texts(rule, "/resources") {
            for verb in texts(rule, "/verbs") {
                all.push(Permission {
                    group,
                    resource,
                    verb,
                    names: texts(rule, "/resourceNames"),
                });
            }
        }
    }
    all
}

/// Reports whether a rule grants a permission, as the RBAC authorizer decides.
fn covers(rule: &Value, needed: &Permission<'_>) -> bool {
    let has = |list: &str, wanted: &str| {
        let all = texts(rule, list);
        all.contains(&wanted) || all.contains(&"*")
    };
    let subresource = needed.resource.split_once('/');
    let is_resource = has("/resources", needed.resource)
        || subresource.is_some_and(|(_, sub)| {
            texts(rule, "/resources").contains(&format!("*/{sub}").as_str())
        });
    let names = texts(rule, "/resourceNames");
    let is_named = names.is_empty()
        || (!needed.names.is_empty() && needed.names.iter().all(|name| names.contains(name)));
    has("/apiGroups", needed.group) && is_resource && has("/verbs", needed.verb) && is_named
}
