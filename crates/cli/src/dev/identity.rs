//! User that the operator acts as: its ServiceAccount, or the administrator.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;

use super::install::{Installer, ServiceAccountName};
use crate::control_plane::ControlPlane;
use crate::kubeconfig::KubeconfigFile;

/// Lifetime of the operator's token in seconds: a year, longer than any run of the command.
const TOKEN_SECONDS: u32 = 365 * 24 * 60 * 60;

/// ServiceAccount of the operator, and the kubeconfig with its token.
pub(crate) struct OperatorIdentity {
    /// Kubeconfig of the ServiceAccount; `None` if the operator acts as administrator.
    kubeconfig: Option<KubeconfigFile>,
    /// ServiceAccount in the manifests of the running operator.
    account: Option<ServiceAccountName>,
    /// Denied requests that were already shown.
    shown: HashSet<String>,
}

impl OperatorIdentity {
    /// Creates the identity of an operator, without a ServiceAccount yet. The kubeconfig is beside
    /// that of the control plane.
    pub(crate) fn new(operator: &str, plane: &ControlPlane, as_admin: bool) -> Result<Self> {
        let path = plane.kubeconfig.path();
        let path = path.with_file_name(format!("{operator}.kubeconfig"));
        let kubeconfig = (!as_admin).then(|| KubeconfigFile::prepare(&path));
        Ok(Self {
            kubeconfig: kubeconfig.transpose()?,
            account: None,
            shown: HashSet::new(),
        })
    }

    /// Installs the ServiceAccount, roles and role bindings among the manifests of the operator,
    /// removes those that only the manifests `before` contain, and writes the kubeconfig of the
    /// ServiceAccount.
    pub(crate) async fn install(
        &mut self,
        plane: &ControlPlane,
        installer: &Installer,
        manifests: &str,
        before: &str,
    ) -> Result<()> {
        let Some(kubeconfig) = &mut self.kubeconfig else {
            return Ok(());
        };
        let account = installer.install_permissions(manifests, before).await?;
        if let Some(account) = &account {
            let ServiceAccountName { namespace, name } = account;
            let server = &plane.server;
            let token = server.service_account_token(namespace, name, Some(TOKEN_SECONDS))?;
            kubeconfig.write(plane.kubeconfig_with_token(&token))?;
        }
        // Denials by an earlier role may be solved.
        self.shown.clear();
        self.account = account;
        Ok(())
    }

    /// Returns the path of the operator's kubeconfig: that of its ServiceAccount, or that of the
    /// administrator.
    pub(crate) fn kubeconfig<'a>(&'a self, plane: &'a ControlPlane) -> &'a Path {
        match (&self.kubeconfig, &self.account) {
            (Some(kubeconfig), Some(_)) => kubeconfig.path(),
            _ => plane.kubeconfig.path(),
        }
    }

    /// Returns the line about the operator's user, or `None` if the user requested the
    /// administrator.
    pub(crate) fn line(&self) -> Option<String> {
        self.kubeconfig.as_ref()?;
        Some(match &self.account {
            Some(ServiceAccountName { namespace, name }) => {
                format!("ServiceAccount {namespace}/{name}, with the roles that `manifests` prints")
            }
            None => "administrator: the manifests contain no ServiceAccount".to_owned(),
        })
    }

    /// Returns a line for each denied request of the operator that was not shown yet.
    pub(crate) fn new_denials(&mut self, plane: &ControlPlane) -> Vec<String> {
        let Some(account) = &self.account else {
            return Vec::new();
        };
        let denied = plane.server.denied(&account.user()).into_iter();
        let new = denied.filter(|sentence| self.shown.insert(sentence.clone()));
        let advice = "`manifests` prints the roles; add the permission with `Operator::rule`";
        new.map(|sentence| format!("{sentence} ({advice})"))
            .collect()
    }

    /// Removes the kubeconfig of the ServiceAccount.
    pub(crate) fn remove(&self) {
        if let Some(kubeconfig) = &self.kubeconfig {
            kubeconfig.remove();
        }
    }
}
