//! The endpoints of the Service `kubernetes` in the namespace `default`, which is the API server
//! itself.

use std::net::{IpAddr, SocketAddr};

use serde_json::json;

use super::MANAGER;
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::target::Target;

impl Registry {
    /// Publishes the address at which the API server listens, as Endpoints and EndpointSlice of the
    /// Service `kubernetes`.
    pub(crate) async fn publish_address(&self, address: SocketAddr) -> ApiResult<()> {
        let (ip, port) = (address.ip().to_string(), address.port());
        let endpoints = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            },
            "subsets": [{
                "addresses": [{"ip": ip}],
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            }],
        });
        self.ensure("", "endpoints", &endpoints, MANAGER).await?;
        let family = match address.ip() {
            IpAddr::V4(_) => "IPv4",
            IpAddr::V6(_) => "IPv6",
        };
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"},
            },
            "addressType": family,
            "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        });
        self.ensure("discovery.k8s.io", "endpointslices", &slice, MANAGER)
            .await?;
        let kind = self.builtin("", "services")?;
        let service = Target::new(&kind, "default", "kubernetes");
        self.modify(&service, &mut Write::by(MANAGER), |live| {
            let mut new = live.clone();
            let ports = json!([{
                "name": "https", "port": 443, "protocol": "TCP", "targetPort": port,
            }]);
            object::set(&mut new, &["spec", "ports"], ports);
            Ok(new)
        })
        .await?;
        Ok(())
    }
}
