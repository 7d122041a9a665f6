//! The revisions of an operator: they are kept, listed, and gone back to.

use opkit_client::Unstructured;
use serde_json::{Value, json};

use crate::{DeployError, Deployed, Deployer, Progress, Release, Revision, revision};

impl Deployer {
    /// Applies an earlier revision as a new one; by default the one before the current one. CRDs
    /// stay as they are.
    ///
    /// # Errors
    /// If there is no such revision, or as [`deploy`](Self::deploy).
    ///
    /// # Cancel safety
    /// As [`deploy`](Self::deploy).
    pub async fn rollback(
        &self,
        operator: &str,
        namespace: &str,
        wanted: Option<u64>,
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Deployed, DeployError> {
        let secrets = self.revisions(operator, namespace).await?;
        let numbers: Vec<u64> = secrets.iter().filter_map(revision::number).collect();
        let Some(target) = revision::target(&numbers, wanted) else {
            return Err(no_revision(operator, namespace, wanted, numbers));
        };
        let found = secrets
            .iter()
            .find(|secret| revision::number(secret) == Some(target));
        let earlier = Revision::read(found.unwrap_or(&Value::Null))?;
        let mut release = Release::new(operator, &earlier.version, namespace);
        release.objects = earlier.objects;
        release.runtime_objects = earlier.runtime_objects;
        let members = self.members(&release).await?;
        let mut deployed = Deployed::new(&release);
        self.apply_members(&release, members, &mut deployed, report)
            .await?;
        Ok(deployed)
    }

    /// Returns the revisions of an operator that are kept, the newest first.
    ///
    /// # Errors
    /// If the Secrets cannot be read.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn history(
        &self,
        operator: &str,
        namespace: &str,
    ) -> Result<Vec<Revision>, DeployError> {
        let secrets = self.revisions(operator, namespace).await?;
        let mut revisions = Vec::new();
        for secret in &secrets {
            revisions.push(Revision::read(secret)?);
        }
        revisions.sort_by_key(|revision| std::cmp::Reverse(revision.number));
        Ok(revisions)
    }

    /// Returns the Secrets of the revisions.
    pub(crate) async fn revisions(
        &self,
        operator: &str,
        namespace: &str,
    ) -> Result<Vec<Value>, DeployError> {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": operator}});
        let resource = self.cluster.known(&secret).await?;
        let labels = revision::selector(operator);
        let secrets = self.cluster.list(&resource, Some(namespace), &labels);
        Ok(secrets.await?.into_iter().map(Value::from).collect())
    }

    /// Keeps the release as a revision, unless it is the last one, and deletes the oldest
    /// revisions. Returns the number of the revision.
    pub(crate) async fn add_revision(&self, release: &Release) -> Result<u64, DeployError> {
        let (operator, namespace) = (release.operator.as_str(), release.namespace.as_str());
        let secrets = self.revisions(operator, namespace).await?;
        let last = secrets.iter().max_by_key(|secret| revision::number(secret));
        let number = last.and_then(revision::number).unwrap_or_default();
        let next = number.saturating_add(1);
        let revision = Revision::of(release, next);
        if let Some(last) = last
            && Revision::read(last).is_ok_and(|last| last.has_content_of(&revision))
        {
            return Ok(number);
        }
        if self.cluster.dry_run {
            return Ok(next);
        }
        let secret = revision.secret(operator, namespace)?;
        let resource = self.cluster.known(&secret).await?;
        match resource.create(&Unstructured::from(secret)).await {
            Err(error) if error.is_already_exists() => {
                return Err(DeployError::Concurrent {
                    operator: operator.to_owned(),
                    revision: next,
                });
            }
            created => created?,
        };
        let numbers = secrets.iter().filter_map(revision::number);
        for outdated in revision::outdated(numbers.chain([next]).collect()) {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": revision::secret_name(operator, outdated), "namespace": namespace,
            }});
            self.cluster.delete(&secret).await?;
        }
        Ok(next)
    }
}

fn no_revision(
    operator: &str,
    namespace: &str,
    wanted: Option<u64>,
    mut numbers: Vec<u64>,
) -> DeployError {
    if numbers.is_empty() {
        return DeployError::NotDeployed {
            operator: operator.to_owned(),
            namespace: namespace.to_owned(),
        };
    }
    numbers.sort_unstable();
    let known: Vec<_> = numbers.iter().map(u64::to_string).collect();
    DeployError::NoRevision {
        operator: operator.to_owned(),
        namespace: namespace.to_owned(),
        wanted: wanted.map_or_else(
            || "revision before the current one".to_owned(),
            |number| format!("revision {number}"),
        ),
        known: format!("there is {}", known.join(", ")),
    }
}
