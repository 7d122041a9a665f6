//! The embedded control plane of this command: listens on loopback, with a kubeconfig in a file.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, anyhow};
use opkit_apiserver::{Endpoint, Options, Server, StartError};
use opkit_client::DiskCache;

use crate::ControlPlaneArgs;
use crate::kubeconfig::KubeconfigFile;

/// Control plane that listens for requests. The kubeconfig is written later, by
/// [`ControlPlane::write_kubeconfig`], so that a process that waits for the file finds the control
/// plane ready.
pub(crate) struct ControlPlane {
    pub(crate) server: Server,
    endpoint: Endpoint,
    pub(crate) kubeconfig: KubeconfigFile,
    /// Whether the user chose the port, so that the next run has the same address.
    has_fixed_port: bool,
}

impl ControlPlane {
    /// Starts the control plane. Fails at once if the kubeconfig cannot be written or the port is
    /// in use.
    pub(crate) async fn start(args: &ControlPlaneArgs, mut options: Options) -> Result<Self> {
        let kubeconfig = KubeconfigFile::prepare(&args.kubeconfig_out)?;
        options.service_addresses.clone_from(&args.service_address);
        let server = Server::start(options)?;
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
            has_fixed_port: args.port != 0,
        })
    }

    /// Returns the address of the API server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// Returns the cache of discovery between runs, which is in kubectl's cache directory. Returns
    /// `None` if the system chose the port, because another server may have the same port later.
    pub(crate) fn discovery_cache(&self) -> Option<DiskCache> {
        let url = format!("https://{}", self.address());
        self.has_fixed_port
            .then(|| DiskCache::for_server(&url))
            .flatten()
    }

    /// Writes the kubeconfig.
    pub(crate) fn write_kubeconfig(&mut self) -> Result<()> {
        self.kubeconfig.write(self.endpoint.kubeconfig())
    }

    /// Returns a kubeconfig for the user of a bearer token.
    pub(crate) fn kubeconfig_with_token(&self, token: &str) -> String {
        self.endpoint.kubeconfig_with_token(token)
    }

    /// Stops the server and removes its kubeconfig.
    pub(crate) async fn stop(self) {
        self.server.shutdown().await;
        self.kubeconfig.remove();
    }
}
