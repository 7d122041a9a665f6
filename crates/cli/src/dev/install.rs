//! Applies objects from YAML to the control plane.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::{
    ApiResource, Client, DeleteOptions, Discovery, DynamicClient, GroupVersion, GroupVersionKind,
    ObjectKey, RequestError, RestMapper, Unstructured, WriteOptions, one_line,
};

use tokio::time::Instant;

use super::webhooks::DevWebhooks;

/// Field manager of the objects that this command applies.
const MANAGER: &str = "opkit-dev";

/// Time in which a CRD must be established. The embedded control plane establishes it at once.
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks at the CRD.
const ESTABLISH_INTERVAL: Duration = Duration::from_millis(50);

/// Namespace and name of a ServiceAccount.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ServiceAccountName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ServiceAccountName {
    /// Returns the name of the user that a token of the ServiceAccount belongs to.
    pub(crate) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// Client that applies objects to one control plane.
pub(crate) struct Installer {
    client: Client,
    dynamic: DynamicClient,
    mapper: RestMapper,
}

impl Installer {
    /// Creates an installer that finds the resources of objects through `discovery`.
    pub(crate) fn new(kube: kube::Client, discovery: Discovery) -> Self {
        // The developer's files win over whatever changed these fields before.
        let options = WriteOptions::for_manager(MANAGER).force();
        Self {
            client: Client::new(kube.clone()),
            dynamic: DynamicClient::new(kube).with(options),
            mapper: RestMapper::of(discovery),
        }
    }

    /// Installs the CRDs among the manifests of an operator, and returns the CRDs with their
    /// status. Fails if a CRD is not established.
    pub(crate) async fn install_crds(
        &self,
        yaml: &str,
        webhooks: Option<&DevWebhooks>,
    ) -> Result<Vec<CustomResourceDefinition>> {
        let mut crds = Vec::new();
        let objects =
            parse(yaml).context("cannot parse the output of the operator's command `manifests`")?;
        for mut object in objects {
            if object.kind() == "CustomResourceDefinition" {
                if let Some(webhooks) = webhooks {
                    webhooks.trust(&mut object);
                }
                self.apply(&object).await?;
                crds.push(self.established(object.name()).await?);
            }
        }
        Ok(crds)
    }

    /// Waits until a CRD is established, and returns it.
    async fn established(&self, name: &str) -> Result<CustomResourceDefinition> {
        let started = Instant::now();
        loop {
            let crd = self.client.get::<CustomResourceDefinition>(name).await;
            let crd = crd.map_err(|error| message(&error))?;
            let conditions = crd.status.iter().flat_map(|status| &status.conditions);
            let is_established = conditions
                .flatten()
                .any(|it| it.type_ == "Established" && it.status == "True");
            if is_established {
                return Ok(crd);
            }
            if started.elapsed() > ESTABLISH_TIMEOUT {
                bail!("the control plane does not establish {name}");
            }
            tokio::time::sleep(ESTABLISH_INTERVAL).await;
        }
    }

    /// Installs the namespace, ServiceAccount, roles and role bindings among the manifests of an
    /// operator, and deletes the roles and role bindings that only the manifests `before` contain.
    /// Returns the ServiceAccount, or `None` if there is no ServiceAccount.
    pub(crate) async fn install_permissions(
        &self,
        yaml: &str,
        before: &str,
    ) -> Result<Option<ServiceAccountName>> {
        let (objects, before) = (permissions(yaml)?, permissions(before)?);
        for object in &objects {
            self.apply(object).await?;
        }
        let is = |one: &Unstructured, other: &Unstructured| {
            (one.kind(), one.namespace(), one.name())
                == (other.kind(), other.namespace(), other.name())
        };
        for object in before.iter().filter(|object| is_role(object)) {
            if !objects.iter().any(|kept| is(kept, object)) {
                self.delete(object).await?;
            }
        }
        let account = objects.iter().find(|it| it.kind() == "ServiceAccount");
        Ok(account.map(|account| ServiceAccountName {
            namespace: account.namespace().unwrap_or("default").to_owned(),
            name: account.name().to_owned(),
        }))
    }

    /// Installs the webhook configurations and admission policies among the manifests of an
    /// operator, and deletes those that only the manifests `before` contain. Returns the number of
    /// webhooks.
    pub(crate) async fn install_admission(
        &self,
        yaml: &str,
        before: &str,
        webhooks: Option<&DevWebhooks>,
    ) -> Result<usize> {
        let is_admission = |object: &Unstructured| {
            let group = "admissionregistration.k8s.io/";
            let is_reachable = webhooks.is_some() || !object.kind().ends_with("Configuration");
            object.api_version().starts_with(group) && is_reachable
        };
        let mut objects = parse(yaml)?;
        objects.retain(is_admission);
        let mut number = 0_usize;
        for object in &mut objects {
            if let Some(webhooks) = webhooks {
                webhooks.trust(object);
            }
            let all = object.get(&["webhooks"]).and_then(|it| it.as_array());
            number = number.saturating_add(all.map_or(0, Vec::len));
            self.apply(object).await?;
        }
        let is_kept = |old: &Unstructured| {
            let mut objects = objects.iter();
            objects.any(|it| (it.kind(), it.name()) == (old.kind(), old.name()))
        };
        for old in parse(before)?.iter().filter(|it| is_admission(it)) {
            if !is_kept(old) {
                self.delete(old).await?;
            }
        }
        Ok(number)
    }

    /// Applies every object in a file, and returns `kind/name` of each object.
    pub(crate) async fn apply_file(&self, path: &Path) -> Result<Vec<String>> {
        let context = || format!("cannot apply {}", path.display());
        let yaml = fs::read_to_string(path).with_context(context)?;
        let mut applied = Vec::new();
        for object in parse(&yaml).with_context(context)? {
            self.apply(&object).await.with_context(context)?;
            let (kind, name) = (object.kind().to_lowercase(), object.name());
            applied.push(format!("{kind}/{name}"));
        }
        Ok(applied)
    }

    async fn apply(&self, object: &Unstructured) -> Result<()> {
        if object.api_version().is_empty() || object.kind().is_empty() {
            bail!("an object has no apiVersion and kind");
        }
        if object.name().is_empty() {
            bail!("an object has no name");
        }
        match self.send(object).await? {
            // Discovery may be of an earlier run, whose CRD had another scope or plural.
            Err(error) if error.is_not_found() => {
                self.mapper.discovery().invalidate();
                self.send(object).await?
            }
            outcome => outcome,
        }
        .map_err(|error| message(&error))
    }

    /// Deletes an object, if it exists.
    async fn delete(&self, object: &Unstructured) -> Result<()> {
        let key = ObjectKey::from(object.name()).or_namespace(object.namespace());
        let resource = self.dynamic.resource(self.resource(object).await?);
        match resource.delete(key, &DeleteOptions::background()).await {
            Err(error) if !error.is_not_found() => Err(message(&error)),
            _ => Ok(()),
        }
    }

    /// Finds the resource of an object and applies the object.
    async fn send(&self, object: &Unstructured) -> Result<Result<(), RequestError>> {
        let resource = self.resource(object).await?;
        let applied = self.dynamic.resource(resource).apply(object).await;
        Ok(applied.map(drop))
    }

    async fn resource(&self, object: &Unstructured) -> Result<ApiResource> {
        let (api_version, kind) = (object.api_version(), object.kind());
        let GroupVersion { group, version } = api_version
            .parse()
            .map_err(|_| anyhow!("{api_version} is not an apiVersion"))?;
        let gvk = GroupVersionKind::new(group, version, kind);
        let resource = self.mapper.of_kind(&gvk).await;
        resource.map_err(|_| anyhow!("the control plane has no kind {kind} in {api_version}"))
    }
}

/// Returns the message of the server without the text of the client around it.
fn message(error: &RequestError) -> anyhow::Error {
    match error.status() {
        Some(status) => anyhow!("{}", status.message),
        None => anyhow!("{}", one_line(error)),
    }
}

/// Returns the objects among the manifests of an operator that concern its permissions.
fn permissions(yaml: &str) -> Result<Vec<Unstructured>> {
    let objects =
        parse(yaml).context("cannot parse the output of the operator's command `manifests`")?;
    let is_permission = |object: &Unstructured| {
        is_role(object) || matches!(object.kind(), "Namespace" | "ServiceAccount")
    };
    Ok(objects.into_iter().filter(is_permission).collect())
}

/// Reports whether an object is a role or a role binding.
fn is_role(object: &Unstructured) -> bool {
    object
        .api_version()
        .starts_with("rbac.authorization.k8s.io/")
}

pub(super) fn parse(yaml: &str) -> Result<Vec<Unstructured>> {
    Ok(serde_saphyr::from_multiple(yaml)?)
}

#[cfg(test)]
mod tests;
