//! Where the operator of `opkit dev` works: the embedded control plane, or a cluster.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::{Client, ClientOptions, Discovery, SelectedCluster};

use super::identity::OperatorIdentity;
use super::install::{Installer, parse};
use super::view::View;
use super::webhooks::DevWebhooks;
use crate::connection::ClusterArgs;
use crate::control_plane::ControlPlane;
use crate::deploy::refuse_conversion;
use crate::output;

/// Directory of the operator's log and address while it works on a cluster.
const DIRECTORY: &str = ".opkit";

/// Where the operator works.
pub(crate) enum Target {
    /// The control plane of this command. The operator acts as its ServiceAccount.
    Embedded(Box<Embedded>),
    /// The cluster of a kubeconfig. The operator acts as the user of the kubeconfig.
    Cluster(Box<OnCluster>),
}

/// The control plane of this command.
pub(crate) struct Embedded {
    pub(crate) plane: ControlPlane,
    pub(crate) identity: OperatorIdentity,
}

/// A cluster, and the flags that selected it.
pub(crate) struct OnCluster {
    pub(crate) cluster: SelectedCluster,
    pub(crate) args: ClusterArgs,
}

/// How the operator's process reaches the API server.
pub(crate) struct Connection {
    /// Flags of the operator.
    pub(crate) arguments: Vec<OsString>,
    /// Value of `KUBECONFIG`, if it must be set.
    pub(crate) kubeconfig: Option<OsString>,
    /// Directory for the operator's log and address.
    pub(crate) directory: PathBuf,
}

impl Target {
    /// Returns a client of the user of this command, and the discovery of the API server.
    pub(crate) fn clients(&self) -> (kube::Client, Discovery) {
        let (kube, disk) = match self {
            Self::Embedded(embedded) => {
                let plane = &embedded.plane;
                let options = ClientOptions::default();
                let kube = options.in_process(plane.server.service(), "default");
                (kube, plane.discovery_cache())
            }
            Self::Cluster(on) => (on.cluster.client.clone(), None),
        };
        let discovery = match disk {
            Some(disk) => Discovery::with_disk(kube.clone(), disk),
            None => Discovery::new(kube.clone()),
        };
        (kube, discovery)
    }

    /// Reports that webhooks are not called, or prepares their address and certificate. Returns
    /// `None` if the operator has no webhooks that the API server can call.
    pub(crate) fn prepare_webhooks(
        &self,
        operator: &str,
        manifests: &str,
        arguments: &[OsString],
    ) -> Result<Option<DevWebhooks>> {
        match self {
            Self::Embedded(embedded) => {
                DevWebhooks::prepare(operator, &embedded.plane, manifests, arguments)
            }
            Self::Cluster(_) => Ok(None),
        }
    }

    /// Checks, before anything is applied, that no CRD among the manifests needs its conversion
    /// webhook, which a cluster cannot reach on this machine.
    pub(crate) async fn check_crds(&self, manifests: &str) -> Result<()> {
        let Self::Cluster(on) = self else {
            return Ok(());
        };
        let client = Client::new(on.cluster.client.clone());
        let crds = parse(manifests)?.into_iter();
        for crd in crds.filter(|it| it.kind() == "CustomResourceDefinition") {
            let name = crd.name().to_owned();
            let crd: CustomResourceDefinition = serde_json::from_value(crd.into())
                .with_context(|| format!("the CRD {name} is not valid"))?;
            let installed = match client.get::<CustomResourceDefinition>(&name).await {
                Err(error) if error.is_not_found() => None,
                installed => Some(installed?),
            };
            let status = installed.and_then(|installed| installed.status);
            let hub = crd.spec.versions.first().map(|hub| hub.name.clone());
            let crd = CustomResourceDefinition { status, ..crd };
            refuse_conversion(&hub.unwrap_or_default(), &crd)?;
        }
        Ok(())
    }

    /// Installs the ServiceAccount of the operator, unless it acts as the user of a kubeconfig.
    pub(crate) async fn install_permissions(
        &mut self,
        installer: &Installer,
        manifests: &str,
        before: &str,
    ) -> Result<()> {
        match self {
            Self::Embedded(embedded) => {
                let Embedded { plane, identity } = &mut **embedded;
                identity.install(plane, installer, manifests, before).await
            }
            Self::Cluster(_) => Ok(()),
        }
    }

    /// Reports whether admission webhooks, policies and samples are installed. In a cluster they
    /// could affect others, and stay after the command has ended.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }

    /// Returns the interval at which the view is refreshed. In a cluster, each refresh is a load
    /// for others.
    pub(crate) fn refresh(&self) -> Duration {
        match self {
            Self::Embedded(_) => Duration::from_millis(250),
            Self::Cluster(_) => Duration::from_secs(2),
        }
    }

    /// Prints the API server, and the user that the operator acts as.
    pub(crate) fn announce(
        &mut self,
        view: &mut View,
        crds: &[CustomResourceDefinition],
    ) -> Result<()> {
        match self {
            Self::Embedded(embedded) => {
                embedded.plane.write_kubeconfig()?;
                view.banner(&embedded.plane, crds);
                if let Some(line) = embedded.identity.line() {
                    view.line("acts as", &output::plain(&line));
                }
            }
            Self::Cluster(on) => {
                let context = on.cluster.context.as_deref().unwrap_or("in this pod");
                let server = on.cluster.server.trim_end_matches('/');
                view.line("cluster", &format!("{context}   {server}"));
                view.on(server, &format!("context {context}"));
                view.crds(crds);
                view.line("acts as", "the user of the kubeconfig");
            }
        }
        Ok(())
    }

    /// Returns how the operator's process reaches the API server.
    pub(crate) fn connection(&self) -> Result<Connection> {
        match self {
            Self::Embedded(embedded) => {
                // A debugger may start the operator in another directory.
                let kubeconfig = embedded.identity.kubeconfig(&embedded.plane);
                let kubeconfig = std::path::absolute(kubeconfig)?;
                let directory = kubeconfig.parent().unwrap_or(Path::new("."));
                Ok(Connection {
                    directory: directory.to_owned(),
                    arguments: vec!["--kubeconfig".into(), kubeconfig.into()],
                    kubeconfig: None,
                })
            }
            Self::Cluster(on) => {
                std::fs::create_dir_all(DIRECTORY)?;
                let (mut arguments, kubeconfig) = on.args.environment()?;
                // The API server cannot reach webhooks on this machine.
                arguments.extend(["--webhook-port".into(), "0".into()]);
                Ok(Connection {
                    arguments,
                    kubeconfig,
                    directory: std::path::absolute(DIRECTORY)?,
                })
            }
        }
    }

    /// Returns the sentences about the operator's requests that were not shown yet: features that
    /// the control plane does not have, and denied requests.
    pub(crate) fn warnings(&mut self) -> Vec<(&'static str, String)> {
        let Self::Embedded(embedded) = self else {
            return Vec::new();
        };
        let Embedded { plane, identity } = &mut **embedded;
        let missing = plane.server.unmodelled().into_iter();
        let mut warnings: Vec<_> = missing.map(|missing| ("warning", missing)).collect();
        let denied = identity.new_denials(plane).into_iter();
        warnings.extend(denied.map(|denied| ("denied", denied)));
        warnings
    }

    /// Stops what this command has started.
    pub(crate) async fn stop(self) {
        if let Self::Embedded(embedded) = self {
            embedded.identity.remove();
            embedded.plane.stop().await;
        }
    }
}
