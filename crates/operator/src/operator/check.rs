//! Checks of an operator before anything is printed or sent.

use opkit_apimachinery::names::{DNS_LABEL_MAX, check_dns_label, check_dns_subdomain};
use opkit_manifests::Rbac;

use super::Operator;
use crate::OperatorError;

impl Operator {
    /// Checks the names that objects in the cluster contain (of the operator, its CRDs, Lease and
    /// namespaces), the controllers, and that the operator declares all flags that its states take.
    /// `watched` are the namespaces that were chosen at start.
    pub(super) fn check(&self, watched: &[String]) -> Result<(), OperatorError> {
        let own = &self.name;
        check_name("the operator's name", own, check_dns_label(own))?;
        let namespace = Rbac::new(own, Vec::new()).own_namespace();
        if namespace.len() > DNS_LABEL_MAX {
            let problem = format!(
                "its namespace would be {namespace:?}, which must be no more than {DNS_LABEL_MAX} bytes"
            );
            check_name("the operator's name", own, Err(problem))?;
        }
        for crd in &self.crds {
            let name = crd.metadata.name.as_deref().unwrap_or_default();
            check_name("the name of a CRD", name, check_dns_subdomain(name))?;
        }
        if let Some(election) = &self.leader_election {
            let lease = &election.lease_name;
            let checked = check_dns_subdomain(lease);
            check_name("the name of the leader election's lease", lease, checked)?;
        }
        for namespace in self.namespaces.iter().chain(watched) {
            check_name(
                "the watched namespace",
                namespace,
                check_dns_label(namespace),
            )?;
        }
        for state in self.states.iter().chain(&self.plan_states) {
            if let Some(args) = state.args.filter(|args| !self.args.contains(args)) {
                return Err(OperatorError::ArgsNotDeclared {
                    state: state.state,
                    args: args.name,
                });
            }
        }
        for controller in &self.controllers {
            controller.check(own).map_err(OperatorError::Manager)?;
        }
        self.webhooks.check()?;
        Ok(())
    }
}

fn check_name(
    what: &'static str,
    name: &str,
    checked: Result<(), String>,
) -> Result<(), OperatorError> {
    checked.map_err(|problem| OperatorError::Name {
        what,
        name: name.to_owned(),
        problem,
    })
}

#[cfg(test)]
mod tests;
