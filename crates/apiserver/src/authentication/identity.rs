//! Users and their groups.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use opkit_apimachinery::names;
use serde_json::{Value, json};

/// The group whose members may do everything.
pub(crate) const SYSTEM_MASTERS: &str = "system:masters";
/// The group of all users that are authenticated.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of all requests without credentials.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user of all requests without credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// The group of all ServiceAccounts, and the prefix of the group of a namespace's ServiceAccounts.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// Prefix of the user names of ServiceAccounts.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A user: the result of authentication.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// Returns a user with these groups and the group `system:authenticated`.
    pub(crate) fn authenticated(user: impl Into<String>, groups: Vec<String>) -> Self {
        let mut identity = Self {
            user: user.into(),
            groups,
            ..Self::default()
        };
        identity.add_authenticated();
        identity
    }

    /// Returns the administrator. Callers in this process act as the administrator, and so do
    /// clients with the certificate or the token of the kubeconfig.
    pub(crate) fn admin() -> Self {
        Self::authenticated("kubernetes-admin", vec![SYSTEM_MASTERS.to_owned()])
    }

    /// Returns the user of a request without credentials.
    pub(crate) fn anonymous() -> Arc<Self> {
        static IDENTITY: LazyLock<Arc<Identity>> = LazyLock::new(|| {
            Arc::new(Identity {
                user: ANONYMOUS.to_owned(),
                groups: vec![UNAUTHENTICATED.to_owned()],
                ..Identity::default()
            })
        });
        IDENTITY.clone()
    }

    /// Returns a ServiceAccount as a user, with the groups that Kubernetes gives it.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        let groups = service_account_groups(namespace);
        Self::authenticated(service_account_user(namespace, name), groups)
    }

    /// Adds the group `system:authenticated`, as Kubernetes does after authentication.
    pub(crate) fn add_authenticated(&mut self) {
        let is_known = |group: &str| matches!(group, AUTHENTICATED | UNAUTHENTICATED);
        if self.user != ANONYMOUS && !self.groups.iter().any(|group| is_known(group)) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
    }

    pub(crate) fn is_member(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// Returns the user as a `UserInfo` of the group `authentication.k8s.io`.
    pub(crate) fn to_user_info(&self) -> Value {
        let mut info = json!({"username": self.user, "groups": self.groups});
        if !self.uid.is_empty() {
            crate::object::set_field(&mut info, "uid", json!(self.uid));
        }
        if self.groups.is_empty() {
            crate::object::set(&mut info, &["groups"], Value::Null);
        }
        if !self.extra.is_empty() {
            crate::object::set_field(&mut info, "extra", json!(self.extra));
        }
        info
    }
}

/// Returns the user name of a ServiceAccount.
pub(crate) fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// Returns the groups of a ServiceAccount.
pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        SERVICE_ACCOUNTS.to_owned(),
        format!("{SERVICE_ACCOUNTS}:{namespace}"),
    ]
}

/// Returns the namespace and the name of the ServiceAccount with this user name, or `None` if the
/// user is not a ServiceAccount.
pub(crate) fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_valid =
        names::check_dns_label(namespace).is_ok() && names::check_dns_subdomain(name).is_ok();
    is_valid.then_some((namespace, name))
}
