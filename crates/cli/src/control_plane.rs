//! The embedded control plane as this command starts it: on loopback, with a kubeconfig in a file.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, anyhow};
use opkit_apiserver::{Endpoint, Options, Server, StartError};

use crate::{ControlPlaneArgs, kubeconfig::KubeconfigFile};

/// A control plane that listens. Its kubeconfig is written by [`ControlPlane::write_kubeconfig`],
/// so that whoever waits for the file finds everything ready.
pub(crate) struct ControlPlane {
    pub(crate) server: Server,
    endpoint: Endpoint,
    pub(crate) kubeconfig: KubeconfigFile,
}

impl ControlPlane {
    /// Starts it. The port and the file are tried first: nothing is worth waiting for if they fail.
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

    /// Where clients find the API.
    pub(crate) fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// Writes the kubeconfig.
    pub(crate) fn write_kubeconfig(&mut self) -> Result<()> {
        self.kubeconfig.write(self.endpoint.kubeconfig())
    }

    /// Stops the server and takes the kubeconfig, which leads nowhere now, with it.
    pub(crate) async fn stop(self) {
        self.server.shutdown().await;
        self.kubeconfig.remove();
    }
}
