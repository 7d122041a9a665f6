//! Reads and writes of objects of any kind, by their identity.

use std::time::Duration;

use opkit_apimachinery::differences::differences;
use opkit_client::{
    ApiResource, DeleteOptions, Deleted, DynamicClient, DynamicResource, GroupVersion, ListOptions,
    ObjectKey, RequestError, RestMapper, Unstructured, WriteOptions,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::{Change, DeployError, ObjectChange, ObjectReference};

/// Field manager of all applied objects.
const MANAGER: &str = "opkit";
/// Time between two reads of an object that is waited for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A cluster.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    dynamic: DynamicClient,
    mapper: RestMapper,
    pub(crate) dry_run: bool,
}

impl Cluster {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self {
            mapper: RestMapper::new(client.clone()),
            dynamic: DynamicClient::new(client).with(options(false)),
            dry_run: false,
        }
    }

    /// Sets whether the server only validates writes.
    pub(crate) fn set_dry_run(&mut self, dry_run: bool) {
        self.dry_run = dry_run;
        self.dynamic = self.dynamic.clone().with(options(dry_run));
    }

    /// Returns the client of the kind of an object, or `None` if the cluster does not have the
    /// kind.
    pub(crate) async fn resource(
        &self,
        object: &Value,
    ) -> Result<Option<DynamicResource>, DeployError> {
        let reference = ObjectReference::of(object);
        let api_version = object.get("apiVersion").and_then(Value::as_str);
        let api_version: Result<GroupVersion, _> = api_version.unwrap_or_default().parse();
        let Ok(GroupVersion { group, version }) = api_version else {
            return Ok(None);
        };
        let found = self.find(&group, &reference.kind, Some(&version)).await?;
        Ok(found.map(|resource| self.dynamic.resource(resource)))
    }

    /// Returns the client of a kind in its preferred version, or `None` if the cluster does not
    /// have the kind. `group_kind` is as in an ApplySet, such as `Deployment.apps`.
    pub(crate) async fn group_kind(
        &self,
        group_kind: &str,
    ) -> Result<Option<DynamicResource>, DeployError> {
        let (kind, group) = group_kind.split_once('.').unwrap_or((group_kind, ""));
        let found = self.find(group, kind, None).await?;
        Ok(found.map(|resource| self.dynamic.resource(resource)))
    }

    async fn find(
        &self,
        group: &str,
        kind: &str,
        version: Option<&str>,
    ) -> Result<Option<ApiResource>, DeployError> {
        match self.mapper.kind(group, kind, version).await {
            Ok(resource) => Ok(Some(resource)),
            Err(error) if error.is_no_match() => Ok(None),
            Err(error) => Err(DeployError::Discovery(error)),
        }
    }

    /// Returns the client of the kind of an object.
    pub(crate) async fn known(&self, object: &Value) -> Result<DynamicResource, DeployError> {
        let api_version = object.get("apiVersion").and_then(Value::as_str);
        let unknown = || DeployError::UnknownKind {
            object: Box::new(ObjectReference::of(object)),
            api_version: api_version.unwrap_or_default().to_owned(),
        };
        self.resource(object).await?.ok_or_else(unknown)
    }

    /// Reads an object; `None` if it does not exist.
    pub(crate) async fn get(&self, object: &Value) -> Result<Option<Unstructured>, DeployError> {
        let Some(resource) = self.resource(object).await? else {
            return Ok(None);
        };
        found(resource.get(key(object)).await)
    }

    /// Applies an object. `before` is the object before. Returns what changed, or `None` if the
    /// object was as it should be. A dry run has the same result.
    pub(crate) async fn apply(
        &self,
        object: &Value,
        before: Option<&Unstructured>,
    ) -> Result<Option<ObjectChange>, DeployError> {
        let resource = self.known(object).await?;
        let applied = resource.apply(&Unstructured::from(object.clone())).await?;
        let Some(before) = before else {
            let created = ObjectChange::new(Change::Created, ObjectReference::of(object));
            return Ok(Some(created));
        };
        let (before, after) = (before.clone().into(), applied.into());
        match differences(&before, &after) {
            fields if fields.is_empty() => Ok(None),
            fields => ObjectChange::of_fields(&before, &after, fields).map(Some),
        }
    }

    /// Deletes an object with its dependents. Returns whether it existed.
    pub(crate) async fn delete(&self, object: &Value) -> Result<bool, DeployError> {
        let Some(resource) = self.resource(object).await? else {
            return Ok(false);
        };
        let options = DeleteOptions::background();
        match resource.delete(key(object), &options).await {
            Ok(Deleted::Gone | Deleted::Terminating(_)) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until an object does not exist.
    pub(crate) async fn wait_until_gone(
        &self,
        object: &Value,
        timeout: Duration,
    ) -> Result<(), DeployError> {
        if self.dry_run {
            return Ok(());
        }
        let start = Instant::now();
        while let Some(object) = self.get(object).await? {
            if start.elapsed() >= timeout {
                let value = Value::from(object.clone());
                let finalizers = object.finalizers().into_iter().map(str::to_owned);
                return Err(DeployError::NotRemoved {
                    object: Box::new(ObjectReference::of(&value)),
                    seconds: timeout.as_secs(),
                    finalizers: finalizers.collect(),
                    problem: problem_of_deletion(&object),
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Lists the objects of a kind with a label selector, in a namespace or, for a cluster-scoped
    /// kind, in the cluster.
    pub(crate) async fn list(
        &self,
        resource: &DynamicResource,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Unstructured>, DeployError> {
        let mut options = ListOptions::new().labels(labels);
        if let Some(namespace) = namespace {
            options = options.in_namespace(namespace);
        }
        Ok(resource.list_all(&options).await?.items)
    }
}

/// Returns why the deletion of a namespace or of a CRD does not end, as the server reports it.
fn problem_of_deletion(object: &Unstructured) -> Option<String> {
    let conditions = object.conditions().into_iter();
    let is_problem = |type_: &str, status: &str| match type_ {
        "NamespaceDeletionDiscoveryFailure"
        | "NamespaceDeletionGroupVersionParsingFailure"
        | "NamespaceDeletionContentFailure"
        | "NamespaceContentRemaining"
        | "NamespaceFinalizersRemaining" => status == "True",
        "Terminating" => status == "False",
        _ => false,
    };
    let problems = conditions.filter(|it| is_problem(&it.type_, &it.status));
    let mut messages = problems.map(|condition| condition.message);
    messages.find(|message| !message.is_empty())
}

fn options(dry_run: bool) -> WriteOptions {
    let mut options = WriteOptions::for_manager(MANAGER).force();
    options.dry_run = dry_run;
    options
}

/// Returns the key of an object.
pub(crate) fn key(object: &Value) -> ObjectKey {
    let ObjectReference {
        namespace, name, ..
    } = ObjectReference::of(object);
    ObjectKey { namespace, name }
}

/// Returns the object, or `None` if it does not exist.
fn found(result: Result<Unstructured, RequestError>) -> Result<Option<Unstructured>, DeployError> {
    match result {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
