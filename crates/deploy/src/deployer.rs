//! Deploys a release: applies its objects, prunes those of the release before, and waits for the
//! rollout.

use std::time::Duration;

use opkit_client::Unstructured;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::progress::Report;
use crate::{
    ApplySet, Change, DeployError, ObjectReference, PART_OF_LABEL, Progress, Release, Revision,
    Rollout, revision, rollout,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        let crds = self.install(&release.crds, report).await?;
        let mut deployed = Deployed::new(release);
        for ((_, change), crd) in crds.iter().zip(&release.crds) {
            deployed.count(*change, ObjectReference::of(crd));
        }
        self.apply_members(release, members, &mut deployed, report)
            .await?;
        Ok(deployed)
    }

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

    /// Reads the objects of a release in the cluster, before anything is changed. Returns the
    /// objects that this set may have, with the state of each. A namespace that exists and is not a
    /// member is left out: it was there before the operator, and stays after it.
    async fn members(&self, release: &Release) -> Result<Vec<Member>, DeployError> {
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

    async fn apply_members(
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
            self.apply_member(member, deployed, report).await?;
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
            self.apply_member(member, deployed, report).await?;
        }
        if earlier.is_some() {
            let kept = |member: &ObjectReference| references.contains(member);
            deployed.deleted = self.delete_members(&both, kept, report).await?;
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
        member: Member,
        deployed: &mut Deployed,
        report: Report<'_>,
    ) -> Result<(), DeployError> {
        let Member { object, before } = member;
        let reference = ObjectReference::of(&object);
        let change = match self.is_in_future(&reference).await? {
            true => Change::Created,
            false => self.cluster.apply(&object, before.as_ref()).await?.1,
        };
        deployed.count(change, reference.clone());
        report(Progress::Applied {
            object: reference,
            change,
        });
        Ok(())
    }

    /// Reports whether the namespace of an object exists only after this dry run, so that the
    /// server cannot validate the object.
    async fn is_in_future(&self, object: &ObjectReference) -> Result<bool, DeployError> {
        let (true, Some(namespace)) = (self.cluster.dry_run, &object.namespace) else {
            return Ok(false);
        };
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        Ok(self.cluster.get(&namespace).await?.is_none())
    }

    /// Deletes the members of the set that are not kept, in the reverse order of creation.
    pub(crate) async fn delete_members(
        &self,
        set: &ApplySet,
        kept: impl Fn(&ObjectReference) -> bool,
        report: Report<'_>,
    ) -> Result<Vec<ObjectReference>, DeployError> {
        let labels = format!("{PART_OF_LABEL}={}", set.id());
        let mut members = Vec::new();
        for group_kind in &set.kinds {
            // Without the kind there are no objects of it.
            let Some(resource) = self.cluster.group_kind(group_kind).await? else {
                continue;
            };
            if resource.kind().namespaced {
                for namespace in &set.namespaces {
                    let namespace = Some(namespace.as_str());
                    let found = self.cluster.list(&resource, namespace, &labels);
                    members.extend(found.await?);
                }
            } else {
                members.extend(self.cluster.list(&resource, None, &labels).await?);
            }
        }
        let members = members.into_iter().map(Value::from);
        let mut members: Vec<_> = members
            .map(|member| (ObjectReference::of(&member), member))
            .filter(|(reference, _)| !kept(reference))
            .collect();
        members.sort_by_key(|(reference, _)| deletion_order(&reference.kind));
        let mut deleted = Vec::new();
        for (reference, member) in members {
            if self.cluster.delete(&member).await? {
                report(Progress::Deleted {
                    object: reference.clone(),
                });
                deleted.push(reference);
            }
        }
        Ok(deleted)
    }

    /// Reads the inventory; `None` if there is none.
    pub(crate) async fn set(
        &self,
        operator: &str,
        namespace: &str,
    ) -> Result<Option<ApplySet>, DeployError> {
        let parent = ApplySet::new(operator, namespace).parent();
        let found = self.cluster.get(&parent).await?;
        Ok(found.map(|parent| ApplySet::read(operator, namespace, &parent.into())))
    }

    async fn write_parent(&self, set: &ApplySet) -> Result<(), DeployError> {
        if !self.cluster.dry_run {
            self.cluster.apply(&set.parent(), None).await?;
        }
        Ok(())
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
    async fn add_revision(&self, release: &Release) -> Result<u64, DeployError> {
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

/// Object of a release, and its state before.
struct Member {
    object: Value,
    before: Option<Unstructured>,
}

impl Deployed {
    fn new(release: &Release) -> Self {
        Self {
            operator: release.operator.clone(),
            version: release.version.clone(),
            namespace: release.namespace.clone(),
            revision: 0,
            created: Vec::new(),
            changed: Vec::new(),
            deleted: Vec::new(),
            unchanged: 0,
            rollouts: Vec::new(),
        }
    }

    fn count(&mut self, change: Change, object: ObjectReference) {
        match change {
            Change::Created => self.created.push(object),
            Change::Changed => self.changed.push(object),
            Change::Unchanged => self.unchanged = self.unchanged.saturating_add(1),
        }
    }
}

/// Returns the position of a kind in the order of deletion: webhooks, which would refuse writes
/// without their operator, come first, and a namespace last.
fn deletion_order(kind: &str) -> usize {
    const ORDER: [&str; 10] = [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicyBinding",
        "PodDisruptionBudget",
        "Deployment",
        "",
        "RoleBinding",
        "ClusterRoleBinding",
        "Namespace",
    ];
    let position = |wanted: &str| ORDER.iter().position(|kind| *kind == wanted);
    position(kind).or_else(|| position("")).unwrap_or_default()
}

fn set_label(object: &mut Value, label: &str, value: &str) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let labels = metadata.map(|it| it.entry("labels").or_insert_with(|| json!({})));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert(label.to_owned(), json!(value));
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
