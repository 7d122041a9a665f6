//! The embedded control plane of this command: listens on loopback, with a kubeconfig in a file.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, anyhow};
use opkit_apiserver::{Endpoint, Options, Server, StartError};

use crate::{ControlPlaneArgs, kubeconfig::KubeconfigFile};

/// Control plane that listens. [`ControlPlane::write_kubeconfig`] writes its kubeconfig, so that a
/// process that waits for the file finds the control plane ready.
pub(crate) struct ControlPlane {
    pub(crate) server: Server,
    endpoint: Endpoint,
    pub(crate) kubeconfig: KubeconfigFile,
}

impl ControlPlane {
    /// Starts the control plane. The port and the file are checked first, because the rest is
    /// useless if they fail.
    pub(crate) async fn start(args: &ControlPlaneArgs) -> Result<Self> {
        let kubeconfig = KubeconfigFile::prepare(&args.kubeconfig_out)?;
        let server = Server::start(Options::default())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let endpoint = server.listen(address).await.map_err(|error| match error {
            StartError::AddressInUse { .. } => {
                anyhow!("{error} (choose another with --port, or leave it out)")
            }
            error => error.into(),
        })?;
        Ok(Self {
            server,
            endpoint,
            kubeconfig,
        })
    }

    /// Returns the address of the API server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// Writes the kubeconfig.
    pub(crate) fn write_kubeconfig(&mut self) -> Result<()> {
        self.kubeconfig.write(self.endpoint.kubeconfig())
    }

    /// Stops the server and removes its kubeconfig.
    pub(crate) async fn stop(self) {
        self.server.shutdown().await;
        self.kubeconfig.remove();
    }
}
