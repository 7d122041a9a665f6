//! Addresses of Services, for requests that the API server itself sends to them.
//!
//! The Pods of the embedded control plane run no containers, so nothing listens at a cluster IP.
//! The address of a program that serves in place of the Pods is given in the options. A Service of
//! type `ExternalName` needs no option, as in Kubernetes.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::uri::Authority;
use http::{Request, Response};
use parking_lot::RwLock;

use crate::object;
use crate::store::{Key, Store};

/// The address at which a program serves the requests for a Service.
///
/// # Examples
/// ```
/// use opkit_apiserver::ServiceAddress;
///
/// let address: ServiceAddress = "kube-system/metrics-server=127.0.0.1:4443".parse().unwrap();
/// assert_eq!(address.name, "metrics-server");
/// let one_port: ServiceAddress = "shop/api:8443=localhost:4444".parse().unwrap();
/// assert_eq!(one_port.port, Some(8443));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServiceAddress {
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub name: String,
    /// The port of the Service. `None` means all ports that have no address of their own.
    pub port: Option<u16>,
    /// Host and port of the program.
    pub address: Authority,
}

impl FromStr for ServiceAddress {
    type Err = String;

    /// Parses `NAMESPACE/NAME[:PORT]=HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| format!("{text:?} {why}");
        let form = "is not of the form NAMESPACE/NAME[:PORT]=HOST:PORT";
        let (service, address) = text.split_once('=').ok_or_else(|| refuse(form))?;
        let (service, port) = match service.split_once(':') {
            Some((service, port)) => {
                let port = port.parse().map_err(|_| refuse("has no valid port"))?;
                (service, Some(port))
            }
            None => (service, None),
        };
        let (namespace, name) = service.split_once('/').ok_or_else(|| refuse(form))?;
        if namespace.is_empty() || name.is_empty() {
            return Err(refuse(form));
        }
        let address: Authority = address
            .parse()
            .map_err(|_| refuse("has no valid address after the equals sign"))?;
        if address.port_u16().is_none() || address.host().is_empty() {
            return Err(refuse("has no host and port after the equals sign"));
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
            address,
        })
    }
}

/// A program in this process that serves the requests of the API server to a Service, such as the
/// webhooks of an operator under test. No socket is needed.
pub trait LocalService: Send + Sync + 'static {
    /// Returns the response to a request. The URI of the request is its path and query.
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>>;
}

impl<F> LocalService for F
where
    F: Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync + 'static,
{
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> {
        self(request)
    }
}

/// The program behind a Service.
#[derive(Clone)]
pub(crate) enum Backend {
    /// A program that listens at an address.
    Address(Authority),
    /// A program in this process.
    Local(Arc<dyn LocalService>),
}

/// Programs in this process, by the namespace and the name of their Service.
type LocalServices = HashMap<(String, String), Arc<dyn LocalService>>;

/// The addresses of all Services.
#[derive(Default)]
pub(crate) struct ServiceResolver {
    given: RwLock<Vec<ServiceAddress>>,
    local: RwLock<LocalServices>,
    /// The address of the API server itself, which is the Service `default/kubernetes`.
    own: OnceLock<SocketAddr>,
}

impl ServiceResolver {
    pub(crate) fn new(given: Vec<ServiceAddress>) -> Self {
        Self {
            given: RwLock::new(given),
            local: RwLock::default(),
            own: OnceLock::new(),
        }
    }

    /// Sets the address of a Service, in place of an earlier one.
    pub(crate) fn set_given(&self, address: ServiceAddress) {
        let is_same = |it: &ServiceAddress| {
            (&it.namespace, &it.name, it.port) == (&address.namespace, &address.name, address.port)
        };
        let mut given = self.given.write();
        given.retain(|it| !is_same(it));
        given.push(address);
    }

    /// Sets the program in this process that serves a Service. `None` removes it.
    pub(crate) fn set_local(
        &self,
        namespace: &str,
        name: &str,
        service: Option<Arc<dyn LocalService>>,
    ) {
        let key = (namespace.to_owned(), name.to_owned());
        let mut local = self.local.write();
        match service {
            Some(service) => local.insert(key, service),
            None => local.remove(&key),
        };
    }

    /// Returns the program behind a Service: one in this process, or else the address of the
    /// Service.
    ///
    /// # Errors
    /// A sentence with the reason why the Service has no address.
    pub(crate) fn backend(
        &self,
        store: &Store,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<Backend, String> {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(service) = self.local.read().get(&key) {
            return Ok(Backend::Local(service.clone()));
        }
        let address = self.resolve(store, namespace, name, port)?;
        Ok(Backend::Address(address))
    }

    /// Sets the address at which the API server listens. Only the first call has an effect.
    pub(crate) fn set_own_address(&self, address: SocketAddr) {
        self.own.get_or_init(|| address);
    }

    /// Returns the address that the options give for a Service.
    pub(crate) fn given(&self, namespace: &str, name: &str, port: u16) -> Option<Authority> {
        let is_same =
            |service: &&ServiceAddress| service.namespace == namespace && service.name == name;
        let given = self.given.read();
        let mut services = given.iter().filter(is_same);
        let exact = services.clone().find(|service| service.port == Some(port));
        let found = exact.or_else(|| services.find(|service| service.port.is_none()));
        found.map(|service| service.address.clone())
    }

    /// Returns the address of a Service.
    ///
    /// # Errors
    /// A sentence with the reason why the Service has no address.
    pub(crate) fn resolve(
        &self,
        store: &Store,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<Authority, String> {
        if let Some(address) = self.given(namespace, name, port) {
            return Ok(address);
        }
        if let (("default", "kubernetes", 443), Some(own)) =
            ((namespace, name, port), self.own.get())
        {
            return authority(&own.to_string());
        }
        let Some(service) = store.get("services", &Key::new(namespace, name)) else {
            return Err(format!("service {name:?} not found"));
        };
        if object::text(&service, &["spec", "type"]) == "ExternalName" {
            let host = object::text(&service, &["spec", "externalName"]);
            return authority(&format!("{host}:{port}"));
        }
        if object::text(&service, &["spec", "clusterIP"]) == "None" {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        Err(format!(
            "no program runs in the Pods of the Service {namespace}/{name}: set its address with \
             --service-address {namespace}/{name}=HOST:PORT"
        ))
    }
}

impl fmt::Debug for ServiceResolver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServiceResolver")
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

fn authority(text: &str) -> Result<Authority, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not an address"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::Expected;

    fn resolver() -> ServiceResolver {
        let given = ["a/b=127.0.0.1:1", "a/b:8443=127.0.0.1:2"];
        let resolver =
            ServiceResolver::new(given.iter().map(|text| text.parse().unwrap()).collect());
        resolver.set_own_address(([127, 0, 0, 1], 6443).into());
        resolver
    }

    #[test]
    fn a_given_address_of_a_port_comes_first() {
        let store = Store::new(10);
        let resolve = |namespace: &str, name: &str, port| {
            let address = resolver().resolve(&store, namespace, name, port);
            address.map(|address| address.to_string())
        };
        assert_eq!(resolve("a", "b", 8443).unwrap(), "127.0.0.1:2");
        assert_eq!(resolve("a", "b", 443).unwrap(), "127.0.0.1:1");
        let own = resolve("default", "kubernetes", 443).unwrap();
        assert_eq!(own, "127.0.0.1:6443");
        let missing = resolve("a", "c", 443).unwrap_err();
        assert_eq!(missing, "service \"c\" not found");
    }

    #[test]
    fn an_external_name_is_an_address_and_a_cluster_ip_is_none() {
        let store = Store::new(10);
        for (name, spec) in [
            (
                "external",
                json!({"type": "ExternalName", "externalName": "localhost"}),
            ),
            (
                "headless",
                json!({"type": "ClusterIP", "clusterIP": "None"}),
            ),
            (
                "cluster",
                json!({"type": "ClusterIP", "clusterIP": "10.96.0.7"}),
            ),
        ] {
            let service = json!({"metadata": {"name": name, "namespace": "a"}, "spec": spec});
            store.put("services", Expected::Absent, service).unwrap();
        }
        let resolve = |name: &str| {
            let address = resolver().resolve(&store, "a", name, 443);
            address.map(|address| address.to_string())
        };
        assert_eq!(resolve("external").unwrap(), "localhost:443");
        assert!(
            resolve("headless")
                .unwrap_err()
                .contains("ClusterIP \"None\"")
        );
        assert!(
            resolve("cluster")
                .unwrap_err()
                .contains("--service-address a/cluster=")
        );
    }

    #[test]
    fn a_wrong_address_is_refused_with_its_text() {
        for (text, why) in [
            ("a/b", "is not of the form"),
            ("b=127.0.0.1:1", "is not of the form"),
            ("/b=127.0.0.1:1", "is not of the form"),
            ("a/b:x=127.0.0.1:1", "has no valid port"),
            ("a/b=127.0.0.1", "has no host and port"),
            ("a/b=in valid:1", "has no valid address"),
        ] {
            let error = text.parse::<ServiceAddress>().unwrap_err();
            assert!(error.contains(text) && error.contains(why), "{error}");
        }
    }
}
