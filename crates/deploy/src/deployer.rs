//! Deploys a release: applies its objects, prunes those of the release before, and waits for the
//! rollout.

use std::time::Duration;

use opkit_client::Unstructured;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::crds::effect;
use crate::progress::Report;
use crate::{
    ApplySet, Change, DeployError, ObjectChange, ObjectReference, PART_OF_LABEL, Progress, Release,
    Rollout, rollout,
};

/// Time limit of each wait if none is set.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Installs operators in one cluster.
///
/// # Examples
/// ```
/// use opkit_deploy::{DeployError, Deployer, Release};
///
/// async fn deploy(client: kube::Client, release: &Release) -> Result<(), DeployError> {
///     let deployed = Deployer::new(client)
///         .deploy(release, &mut |progress| println!("{progress:?}"))
///         .await?;
///     println!("revision {}", deployed.revision);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Deployer {
    pub(crate) cluster: Cluster,
    pub(crate) timeout: Duration,
}

/// Result of a deployment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Deployed {
    /// Name of the operator.
    pub operator: String,
    /// Version of the operator.
    pub version: String,
    /// Namespace of the operator.
    pub namespace: String,
    /// Number of the revision.
    pub revision: u64,
    /// Created objects.
    pub created: Vec<ObjectReference>,
    /// Changed objects.
    pub changed: Vec<ObjectReference>,
    /// Deleted objects, which only the release before had.
    pub deleted: Vec<ObjectReference>,
    /// What changed in each created, changed and deleted object, in the order of the writes.
    pub changes: Vec<ObjectChange>,
    /// Number of objects that were as they should be.
    pub unchanged: usize,
    /// Deployments whose rollout is complete.
    pub rollouts: Vec<Rollout>,
}

impl Deployer {
    /// Creates a deployer that sends through `client`.
    pub fn new(client: kube::Client) -> Self {
        Self {
            cluster: Cluster::new(client),
            timeout: TIMEOUT,
        }
    }

    /// Sets whether the server only validates the writes. Nothing is stored, and nothing is waited
    /// for.
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.cluster.set_dry_run(dry_run);
        self
    }

    /// Sets the time limit of each wait: for a CRD, for a rollout, for the end of an object; 5
    /// minutes by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Applies a release, deletes the objects that only the release before had, and waits for the
    /// rollout of its Deployments. The release is kept as a new revision, unless it is the same as
    /// the last one.
    ///
    /// # Errors
    /// If the cluster lacks the kind of an object, or an object belongs to another set; nothing is
    /// changed then. Also if the server refuses an object, or a wait takes too long.
    ///
    /// # Cancel safety
    /// Safe: the objects that were applied stay, and the inventory has them. The same call finishes
    /// the work.
    pub async fn deploy(
        &self,
        release: &Release,
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Deployed, DeployError> {
        release.check()?;
        let members = self.members(release).await?;
        let crds = self.apply_crds(&release.crds, report).await?;
        let mut deployed = Deployed::new(release);
        crds.into_iter().for_each(|crd| deployed.count(crd));
        self.apply_members(release, members, &mut deployed, report)
            .await?;
        Ok(deployed)
    }

    /// Reads the objects of a release in the cluster, before anything is changed. Returns the
    /// objects that this set may have, with the state of each. A namespace that exists and is not a
    /// member is left out: it was there before the operator, and stays after it.
    pub(crate) async fn members(&self, release: &Release) -> Result<Vec<Member>, DeployError> {
        let set = ApplySet::new(&release.operator, &release.namespace);
        let mut members = Vec::new();
        for object in &release.objects {
            // Kinds of the release's own CRDs are not there yet.
            let before = match self.cluster.resource(object).await? {
                Some(_) => self.cluster.get(object).await?,
                None if release.defines_kind_of(object) => None,
                None => {
                    self.cluster.known(object).await?;
                    None
                }
            };
            let labels = before.as_ref().map(Unstructured::labels);
            let owner =
                labels.and_then(|labels| labels.get(PART_OF_LABEL).map(|id| (*id).to_owned()));
            let is_namespace = ObjectReference::of(object).kind == "Namespace";
            match owner {
                Some(owner) if owner != set.id() && !is_namespace => {
                    return Err(DeployError::BelongsToAnotherSet {
                        object: Box::new(ObjectReference::of(object)),
                        set: owner,
                    });
                }
                Some(owner) if owner == set.id() => {}
                _ if is_namespace && before.is_some() => continue,
                _ => {}
            }
            let mut object = object.clone();
            set_label(&mut object, PART_OF_LABEL, set.id());
            members.push(Member { object, before });
        }
        Ok(members)
    }

    pub(crate) async fn apply_members(
        &self,
        release: &Release,
        members: Vec<Member>,
        deployed: &mut Deployed,
        report: Report<'_>,
    ) -> Result<(), DeployError> {
        let (operator, namespace) = (release.operator.as_str(), release.namespace.as_str());
        let mut set = ApplySet::new(operator, namespace);
        set.crds.extend(release.crd_names());
        set.runtime_objects.clone_from(&release.runtime_objects);
        let references: Vec<_> = (members.iter())
            .map(|member| ObjectReference::of(&member.object))
            .collect();
        references.iter().for_each(|member| set.add(member));
        let earlier = self.set(operator, namespace).await?;
        let (first, rest): (Vec<_>, Vec<_>) = (members.into_iter())
            .partition(|member| ObjectReference::of(&member.object).kind == "Namespace");

        for member in first {
            self.apply_member(release, member, deployed, report).await?;
        }
        // Until everything is applied and pruned, the inventory has the members of both releases.
        let mut both = set.clone();
        if let Some(earlier) = &earlier {
            both.add_all(earlier);
            // CRDs stay when they leave a release, so they are listed for ever.
            set.crds.extend(earlier.crds.iter().cloned());
        }
        self.write_parent(&both).await?;
        deployed.revision = self.add_revision(release).await?;
        for member in rest {
            self.apply_member(release, member, deployed, report).await?;
        }
        if earlier.is_some() {
            let kept = |member: &ObjectReference| references.contains(member);
            for object in self.delete_members(&both, kept, report).await? {
                deployed.count(Some(ObjectChange::new(Change::Deleted, object)));
            }
        }
        self.write_parent(&set).await?;
        if self.cluster.dry_run {
            return Ok(());
        }
        for object in &release.objects {
            if ObjectReference::of(object).kind == "Deployment" {
                let rollout = rollout::wait(&self.cluster, object, self.timeout, report);
                deployed.rollouts.push(rollout.await?);
            }
        }
        Ok(())
    }

    async fn apply_member(
        &self,
        release: &Release,
        member: Member,
        deployed: &mut Deployed,
        report: Report<'_>,
    ) -> Result<(), DeployError> {
        let Member { object, before } = member;
        let reference = ObjectReference::of(&object);
        let changed = match self.is_in_future(release, &object).await? {
            true => Some(ObjectChange::new(Change::Created, reference.clone())),
            false => self.cluster.apply(&object, before.as_ref()).await?,
        };
        report(Progress::Applied {
            object: reference,
            change: effect(&changed),
        });
        deployed.count(changed);
        Ok(())
    }

    /// Reports whether the kind or the namespace of an object would exist only after this dry run,
    /// so that the server cannot validate the object.
    async fn is_in_future(&self, release: &Release, object: &Value) -> Result<bool, DeployError> {
        if !self.cluster.dry_run {
            return Ok(false);
        }
        if release.defines_kind_of(object) && self.cluster.resource(object).await?.is_none() {
            return Ok(true);
        }
        let Some(namespace) = ObjectReference::of(object).namespace else {
            return Ok(false);
        };
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        Ok(self.cluster.get(&namespace).await?.is_none())
    }
}

/// Object of a release, and its state before.
pub(crate) struct Member {
    object: Value,
    before: Option<Unstructured>,
}

impl Deployed {
    pub(crate) fn new(release: &Release) -> Self {
        Self {
            operator: release.operator.clone(),
            version: release.version.clone(),
            namespace: release.namespace.clone(),
            revision: 0,
            created: Vec::new(),
            changed: Vec::new(),
            deleted: Vec::new(),
            changes: Vec::new(),
            unchanged: 0,
            rollouts: Vec::new(),
        }
    }

    /// Counts an object: its change, or `None` for an object that was as it should be.
    fn count(&mut self, changed: Option<ObjectChange>) {
        let Some(changed) = changed else {
            self.unchanged = self.unchanged.saturating_add(1);
            return;
        };
        let list = match changed.change {
            Change::Created => &mut self.created,
            Change::Deleted => &mut self.deleted,
            Change::Changed | Change::Unchanged => &mut self.changed,
        };
        list.push(changed.object.clone());
        self.changes.push(changed);
    }
}

fn set_label(object: &mut Value, label: &str, value: &str) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let labels = metadata.map(|it| it.entry("labels").or_insert_with(|| json!({})));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert(label.to_owned(), json!(value));
    }
}
