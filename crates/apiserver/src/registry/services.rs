//! Services: allocates cluster IPs and node ports, and validates the fields that depend on each
//! other.
//!
//! As in Kubernetes, each cluster IP is an IPAddress object, so that no two Services get the same
//! address. Node ports are kept in memory.

mod addresses;
mod allocation;
mod families;
mod kubernetes;
mod node_ports;
mod spec;
mod update;
mod validation;
mod warnings;

use std::net::IpAddr;
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::Registry;
use crate::kinds::Kind;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::Key;
use crate::target::Target;
use addresses::{AddressRange, Family};
use node_ports::NodePorts;

pub(crate) use allocation::Allocation;
pub(crate) use spec::is_headless;
pub(super) use update::drop_type_dependent_fields;
pub(super) use validation::{validate, validate_status, validate_update};

/// The field manager of objects that the API server itself writes.
const MANAGER: &str = "kube-apiserver";

/// The ranges from which Services get their cluster IPs and node ports.
#[derive(Debug)]
pub(crate) struct ServiceRanges {
    /// Range of the default IP family.
    primary: AddressRange,
    /// Range of the other IP family, if the cluster is dual-stack.
    secondary: Option<AddressRange>,
    node_ports: NodePorts,
}

impl ServiceRanges {
    /// Parses `cluster_ips`, which is one range in CIDR notation, or two ranges of different IP
    /// families with a comma between them.
    pub(crate) fn parse(cluster_ips: &str, ports: RangeInclusive<u16>) -> Result<Self, String> {
        let (primary, secondary) = match cluster_ips.split_once(',') {
            Some((primary, secondary)) => (primary, Some(secondary)),
            None => (cluster_ips, None),
        };
        let primary: AddressRange = primary.parse()?;
        let secondary: Option<AddressRange> = secondary.map(str::parse).transpose()?;
        if secondary.is_some_and(|secondary| secondary.family() == primary.family()) {
            return Err("must have ranges of different IP families".to_owned());
        }
        if ports.is_empty() || *ports.start() == 0 {
            return Err("must have a range of node ports that is not empty".to_owned());
        }
        Ok(Self {
            primary,
            secondary,
            node_ports: NodePorts::new(ports),
        })
    }

    /// Returns the address of the Service `kubernetes`.
    pub(crate) fn first_address(&self) -> IpAddr {
        self.primary.first()
    }

    /// Returns the ranges in CIDR notation.
    pub(crate) fn cidrs(&self) -> Vec<String> {
        let ranges = std::iter::once(self.primary).chain(self.secondary);
        ranges.map(|range| range.to_string()).collect()
    }

    fn range(&self, family: Family) -> Option<AddressRange> {
        let mut ranges = std::iter::once(self.primary).chain(self.secondary);
        ranges.find(|range| range.family() == family)
    }
}

pub(crate) fn is_service(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "services"
}

impl Registry {
    /// Reserves the addresses and node ports of a new object, if it is a Service, and sets them in
    /// the object. The caller must commit the allocation after the object is stored.
    pub(super) fn allocate_create(
        &self,
        kind: &Kind,
        object: &mut Value,
        dry_run: bool,
    ) -> ApiResult<Allocation<'_>> {
        let mut allocation = Allocation::new(self, dry_run);
        if is_service(kind) {
            update::drop_internal_traffic_policy(object);
            update::fill_cluster_ips(object);
            families::init(&self.services, object, None)
                .map_err(|errors| ApiError::invalid(kind, object::name(object), &errors))?;
            allocation.assign_addresses(kind, object)?;
            allocation.assign_ports(kind, object)?;
        }
        Ok(allocation)
    }

    /// Reserves the addresses and node ports that a changed object needs in addition to those of
    /// `live`, if the object is a Service. The commit of the allocation releases what the object no
    /// longer needs.
    pub(super) fn allocate_update(
        &self,
        kind: &Kind,
        live: &Value,
        new: &mut Value,
        dry_run: bool,
    ) -> ApiResult<Allocation<'_>> {
        let mut allocation = Allocation::new(self, dry_run);
        if is_service(kind) {
            update::drop_internal_traffic_policy(new);
            update::keep_allocated_values(live, new);
            update::sync_cluster_ips(live, new);
            families::init(&self.services, new, Some(live))
                .map_err(|errors| ApiError::invalid(kind, object::name(new), &errors))?;
            allocation.update_addresses(kind, live, new)?;
            allocation.update_ports(kind, live, new)?;
        }
        Ok(allocation)
    }

    /// Returns the warnings of Kubernetes about a written object.
    pub(crate) fn warnings(&self, kind: &Kind, object: &Value, is_created: bool) -> Vec<String> {
        match kind.plural.as_str() {
            "services" if is_service(kind) => warnings::warnings(object),
            "serviceaccounts" => {
                let annotation = "kubernetes.io/enforce-mountable-secrets";
                let annotations = object::at(object, &["metadata", "annotations"]);
                let warning = format!(
                    "metadata.annotations[{annotation}]: deprecated in v1.32+; prefer separate \
                     namespaces to isolate access to mounted secrets"
                );
                let is_set = annotations.get(annotation).is_some();
                is_set.then_some(warning).into_iter().collect()
            }
            _ => super::warnings::of(kind, object, is_created),
        }
    }

    /// Releases what a deleted Service had, and deletes its Endpoints.
    pub(super) fn release_service(&self, service: &Value) {
        if !spec::is_external_name(service) && !is_headless(service) {
            let addresses = spec::texts(service, "clusterIPs");
            let addresses = addresses.iter().filter_map(|text| text.parse().ok());
            addresses.for_each(|address| self.release_address(address));
        }
        let ports = &self.services.node_ports;
        for port in spec::node_ports(service) {
            ports.release(port);
        }
        if spec::needs_health_check(service) {
            ports.release(spec::health_check_node_port(service));
        }
        self.delete_quietly("", "endpoints", &Key::of(service));
    }

    fn reserve_address(&self, address: IpAddr, service: &Value) -> ApiResult<()> {
        let kind = self.builtin("networking.k8s.io", "ipaddresses")?;
        let object = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": {
                "name": address.to_string(),
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": Family::of(address).as_str(),
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                },
            },
            "spec": {"parentRef": {
                "resource": "services", "namespace": object::namespace(service),
                "name": object::name(service),
            }},
        });
        let target = Target::new(&kind, "", "");
        self.create_directly(&target, object, MANAGER)?;
        Ok(())
    }

    fn release_address(&self, address: IpAddr) {
        let key = Key::new("", address.to_string());
        self.delete_quietly("networking.k8s.io", "ipaddresses", &key);
    }

    /// Deletes an object that may not exist. Other errors are logged, because the write that causes
    /// the deletion has already been committed.
    fn delete_quietly(&self, group: &str, plural: &str, key: &Key) {
        let deleted = self.builtin(group, plural).and_then(|kind| {
            let target = Target::new(&kind, &key.namespace, &key.name);
            self.delete_directly(&target, MANAGER)
        });
        if let Err(error) = deleted
            && !error.is_not_found()
        {
            tracing::warn!(plural, ?key, ?error, "cannot delete an object of a Service");
        }
    }
}
