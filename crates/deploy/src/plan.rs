//! What a deployment would change, without changing it.

use serde::Serialize;

use crate::{DeployError, Deployed, Deployer, ObjectChange, Release};

/// Changes that [`Deployer::deploy`] would make.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Plan {
    /// Name of the operator.
    pub operator: String,
    /// Version of the operator.
    pub version: String,
    /// Namespace of the operator.
    pub namespace: String,
    /// Objects that would be created, changed and deleted, in this order of time.
    pub changes: Vec<ObjectChange>,
    /// Number of objects that would stay as they are.
    pub unchanged: usize,
}

impl Deployer {
    /// Returns the changes that [`deploy`](Self::deploy) would make, without making them: the
    /// server receives the same requests as dry runs, validates them, and stores nothing.
    ///
    /// # Examples
    /// ```
    /// use opkit_deploy::{DeployError, Deployer, Release};
    ///
    /// async fn is_deployed(client: kube::Client, release: &Release) -> Result<bool, DeployError> {
    ///     let plan = Deployer::new(client).plan(release).await?;
    ///     Ok(plan.changes.is_empty())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`deploy`](Self::deploy).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn plan(&self, release: &Release) -> Result<Plan, DeployError> {
        let dry = self.clone().dry_run(true);
        let Deployed {
            operator,
            version,
            namespace,
            changes,
            unchanged,
            ..
        } = dry.deploy(release, &mut |_| {}).await?;
        Ok(Plan {
            operator,
            version,
            namespace,
            changes,
            unchanged,
        })
    }
}
