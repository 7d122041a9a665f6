//! Application of objects from YAML to the control plane.

use std::{fs, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{GroupVersionKind, TypeMeta},
    discovery::{self, Scope},
};

/// Field manager of the objects that this command applies.
const MANAGER: &str = "opkit-dev";

/// Applies objects to one control plane.
pub(crate) struct Installer {
    client: Client,
}

impl Installer {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Installs the CRDs in an operator's manifests, waits until they are established, and returns
    /// them.
    pub(crate) async fn install_crds(&self, yaml: &str) -> Result<Vec<CustomResourceDefinition>> {
        let mut crds = Vec::new();
        for object in
            parse(yaml).context("cannot parse the output of the operator's command `manifests`")?
        {
            let is_crd = object
                .types
                .as_ref()
                .is_some_and(|t| t.kind == "CustomResourceDefinition");
            if is_crd {
                let name = self.apply(object).await?;
                let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
                crds.push(api.get(&name).await.map_err(|error| plain(&error))?);
            }
        }
        for crd in &crds {
            let name = crd.metadata.name.as_deref().unwrap_or_default();
            let conditions = crd
                .status
                .iter()
                .flat_map(|status| status.conditions.iter().flatten());
            if !conditions
                .clone()
                .any(|c| c.type_ == "Established" && c.status == "True")
            {
                bail!("the control plane does not establish {name}");
            }
        }
        Ok(crds)
    }

    /// Applies every object in a file; returns `kind/name` of each.
    pub(crate) async fn apply_file(&self, path: &Path) -> Result<Vec<String>> {
        let fail = || format!("cannot apply {}", path.display());
        let yaml = fs::read_to_string(path).with_context(fail)?;
        let mut applied = Vec::new();
        for object in parse(&yaml).with_context(fail)? {
            let kind = object
                .types
                .as_ref()
                .map(|t| t.kind.to_lowercase())
                .unwrap_or_default();
            let name = self.apply(object).await.with_context(fail)?;
            applied.push(format!("{kind}/{name}"));
        }
        Ok(applied)
    }

    async fn apply(&self, object: DynamicObject) -> Result<String> {
        let types = object
            .types
            .clone()
            .context("an object has no apiVersion and kind")?;
        let name = object
            .metadata
            .name
            .clone()
            .context("an object has no name")?;
        let gvk = GroupVersionKind::try_from(&types)
            .map_err(|_| anyhow!("{} is not a valid apiVersion", types.api_version))?;
        let (resource, capabilities) = discovery::pinned_kind(&self.client, &gvk)
            .await
            .map_err(|_| anyhow!("the control plane has no kind {}", describe(&types)))?;
        let client = self.client.clone();
        let api: Api<DynamicObject> = match (capabilities.scope, &object.metadata.namespace) {
            (Scope::Cluster, _) => Api::all_with(client, &resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client, namespace, &resource)
            }
            (Scope::Namespaced, None) => Api::default_namespaced_with(client, &resource),
        };
        let params = PatchParams::apply(MANAGER).force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .map_err(|error| plain(&error))?;
        Ok(name)
    }
}

/// Returns the server's message, without the text that the client adds.
fn plain(error: &kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("{}", status.message),
        other => anyhow!("{other}"),
    }
}

fn describe(types: &TypeMeta) -> String {
    format!("{} in {}", types.kind, types.api_version)
}

fn parse(yaml: &str) -> Result<Vec<DynamicObject>> {
    Ok(serde_saphyr::from_multiple(yaml)?)
}
