//! The addresses and node ports that one write reserves and releases.

use std::net::IpAddr;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::addresses::Family;
use super::{node_ports, spec};
use crate::kinds::Kind;
use crate::object;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

/// The addresses and node ports that a write has reserved for a Service. Unless the write is
/// committed, they are released when the allocation is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Allocation<'a> {
    registry: &'a Registry,
    dry_run: bool,
    addresses: Vec<IpAddr>,
    /// Reserved node ports. In a dry run, the ports that the Service would have.
    ports: Vec<i64>,
    /// Addresses to release after the commit.
    unneeded_addresses: Vec<IpAddr>,
    /// Node ports to release after the commit.
    unneeded_ports: Vec<i64>,
}

impl Drop for Allocation<'_> {
    fn drop(&mut self) {
        if !self.dry_run {
            self.release(&self.addresses, &self.ports);
        }
    }
}

impl<'a> Allocation<'a> {
    pub(in crate::registry) fn new(registry: &'a Registry, dry_run: bool) -> Self {
        Self {
            registry,
            dry_run,
            addresses: Vec::new(),
            ports: Vec::new(),
            unneeded_addresses: Vec::new(),
            unneeded_ports: Vec::new(),
        }
    }

    /// Keeps what was reserved, and releases what the Service no longer needs.
    pub(crate) fn commit(mut self) {
        self.addresses.clear();
        self.ports.clear();
        if !self.dry_run {
            self.release(&self.unneeded_addresses, &self.unneeded_ports);
        }
    }

    fn release(&self, addresses: &[IpAddr], ports: &[i64]) {
        for address in addresses {
            self.registry.release_address(*address);
        }
        for port in ports {
            self.registry.services.node_ports.release(*port);
        }
    }

    /// Reserves an address in each IP family of a Service, and sets `clusterIPs` and `clusterIP`.
    pub(super) fn assign_addresses(&mut self, kind: &Kind, service: &mut Value) -> ApiResult<()> {
        if spec::is_external_name(service) {
            return Ok(());
        }
        let mut addresses = spec::texts(service, "clusterIPs");
        if addresses.first().is_some_and(|first| first == spec::NONE) {
            return Ok(());
        }
        let families = spec::texts(service, "ipFamilies");
        addresses.resize(families.len().max(addresses.len()), String::new());
        for (index, family) in families.iter().enumerate() {
            let wanted = addresses.get(index).cloned().unwrap_or_default();
            let address = self.reserve_address(kind, service, family, &wanted)?;
            if let Some(place) = addresses.get_mut(index) {
                *place = address;
            }
        }
        let first = addresses.first().cloned().unwrap_or_default();
        spec::set(service, "clusterIP", json!(first));
        spec::set(service, "clusterIPs", json!(addresses));
        Ok(())
    }

    /// Reserves one address: `wanted`, or any free address of the family if `wanted` is empty.
    fn reserve_address(
        &mut self,
        kind: &Kind,
        service: &Value,
        family: &str,
        wanted: &str,
    ) -> ApiResult<String> {
        let invalid = |why: String| {
            let all = object::at(service, &["spec", "clusterIPs"]);
            let error = FieldError::invalid("spec.clusterIPs", all, why);
            ApiError::invalid(kind, object::name(service), &[error])
        };
        let family = if family == Family::V6.as_str() {
            Family::V6
        } else {
            Family::V4
        };
        let range = self.registry.services.range(family);
        let Some(range) = range else {
            return Err(invalid(format!(
                "{} is not configured on this cluster",
                family.as_str()
            )));
        };
        if wanted.is_empty() {
            if self.dry_run {
                // As in Kubernetes, a dry run looks for no free address.
                return Ok(range.network().to_string());
            }
            for address in range.candidates(self.registry.random.next()) {
                match self.registry.reserve_address(address, service) {
                    Ok(()) => {
                        self.addresses.push(address);
                        return Ok(address.to_string());
                    }
                    Err(error) if error.code == 409 => {}
                    Err(error) => return Err(error),
                }
            }
            let name = object::name(service);
            return Err(ApiError::internal_occurred(format!(
                "failed to allocate a serviceIP for Service {name:?}: range is full"
            )));
        }
        let refuse = |why: &str| invalid(format!("failed to allocate IP {wanted}: {why}"));
        let Ok(address) = wanted.parse::<IpAddr>() else {
            return Err(ApiError::internal_occurred(format!(
                "failed to parse service IP {wanted:?}"
            )));
        };
        if !range.contains(address) {
            return Err(match self.dry_run {
                true => refuse(&format!(
                    "the provided IP ({address}) is not in the valid range. \
                     The range of valid IPs is {range}"
                )),
                false => refuse("the provided network does not match the current range"),
            });
        }
        if self.dry_run {
            return Ok(wanted.to_owned());
        }
        match self.registry.reserve_address(address, service) {
            Ok(()) => self.addresses.push(address),
            Err(error) if error.code == 409 => {
                return Err(refuse("provided IP is already allocated"));
            }
            Err(error) => return Err(error),
        }
        Ok(wanted.to_owned())
    }

    /// Reserves and releases addresses after a change of type or of the IP families.
    pub(super) fn update_addresses(
        &mut self,
        kind: &Kind,
        live: &Value,
        new: &mut Value,
    ) -> ApiResult<()> {
        let (was_name, is_name) = (spec::is_external_name(live), spec::is_external_name(new));
        if was_name && !is_name {
            return self.assign_addresses(kind, new);
        }
        if was_name || super::is_headless(live) {
            return Ok(());
        }
        let (before, after) = (
            spec::texts(live, "ipFamilies"),
            spec::texts(new, "ipFamilies"),
        );
        let live_addresses = spec::texts(live, "clusterIPs");
        if is_name {
            let all = live_addresses.iter();
            self.unneeded_addresses
                .extend(all.filter_map(|text| text.parse::<IpAddr>().ok()));
        } else if let ([_], [_, second]) = (before.as_slice(), after.as_slice()) {
            let mut addresses = spec::texts(new, "clusterIPs");
            let wanted = addresses.get(1).cloned().unwrap_or_default();
            let address = self.reserve_address(kind, new, second, &wanted)?;
            addresses.truncate(1);
            addresses.push(address);
            spec::set(new, "clusterIPs", json!(addresses));
        } else if let ([_, _], [_]) = (before.as_slice(), after.as_slice()) {
            let second = live_addresses.get(1);
            let second = second.and_then(|text| text.parse::<IpAddr>().ok());
            self.unneeded_addresses.extend(second);
        }
        Ok(())
    }

    /// Reserves the node ports of a new Service, and sets them in its ports. Ports with the same
    /// number and different protocols share a node port.
    pub(super) fn assign_ports(&mut self, kind: &Kind, service: &mut Value) -> ApiResult<()> {
        if spec::has_node_ports(service) {
            let allocates = spec::allocates_node_ports(service);
            let ports = spec::ports(service).to_vec();
            let name = object::name(service).to_owned();
            let mut shared: Vec<(i64, i64)> = Vec::new();
            for (index, port) in spec::ports_mut(service).iter_mut().enumerate() {
                let (number, wanted) = (object::int(port, &["port"]), spec::node_port(port));
                if wanted == 0 && !allocates {
                    continue;
                }
                let known = shared.iter().find(|(of, _)| *of == number);
                let node_port = match known.map(|(_, node_port)| *node_port) {
                    Some(known) if wanted == 0 || wanted == known => known,
                    Some(_) => self.reserve_port(kind, &name, index, wanted)?,
                    None => {
                        let same = ports.iter().filter(|p| object::int(p, &["port"]) == number);
                        let requested = same.map(spec::node_port).find(|port| *port != 0);
                        let node_port = match requested {
                            Some(wanted) => self.reserve_port(kind, &name, index, wanted)?,
                            None => self.reserve_any_port()?,
                        };
                        shared.push((number, node_port));
                        node_port
                    }
                };
                object::set_field(port, "nodePort", json!(node_port));
            }
        }
        if spec::needs_health_check(service) {
            self.assign_health_check_port(service)?;
        }
        Ok(())
    }

    /// Reserves and releases node ports after a change of a Service.
    pub(super) fn update_ports(
        &mut self,
        kind: &Kind,
        live: &Value,
        new: &mut Value,
    ) -> ApiResult<()> {
        let before = spec::node_ports(live);
        if spec::has_node_ports(new) {
            let allocates = spec::allocates_node_ports(new);
            let name = object::name(new).to_owned();
            let mut reserved: Vec<i64> = Vec::new();
            let mut seen: Vec<(String, i64)> = Vec::new();
            for (index, port) in spec::ports_mut(new).iter_mut().enumerate() {
                let mut node_port = spec::node_port(port);
                if node_port == 0 {
                    if !allocates {
                        continue;
                    }
                    node_port = self.reserve_any_port()?;
                    object::set_field(port, "nodePort", json!(node_port));
                } else if !before.contains(&node_port) && !reserved.contains(&node_port) {
                    self.reserve_port(kind, &name, index, node_port)?;
                    reserved.push(node_port);
                }
                let protocol = object::text(port, &["protocol"]).to_owned();
                let place = (protocol, node_port);
                if seen.contains(&place) {
                    let (protocol, port) = place;
                    let message = format!("duplicate nodePort: {{{protocol} {port}}}");
                    return Err(ApiError::without_reason(500, message));
                }
                seen.push(place);
            }
            let after = spec::node_ports(new);
            let gone = before.iter().filter(|port| !after.contains(port));
            self.unneeded_ports.extend(gone);
        } else if spec::has_node_ports(live) {
            self.unneeded_ports.extend(before);
        }
        match (
            spec::needs_health_check(live),
            spec::needs_health_check(new),
        ) {
            (false, true) => self.assign_health_check_port(new)?,
            (true, false) => self.unneeded_ports.push(spec::health_check_node_port(live)),
            _ => {}
        }
        Ok(())
    }

    fn assign_health_check_port(&mut self, service: &mut Value) -> ApiResult<()> {
        let wanted = spec::health_check_node_port(service);
        let port = if wanted == 0 {
            self.reserve_any_port()?
        } else {
            self.try_reserve_port(wanted).map_err(|why| {
                ApiError::internal_occurred(format!(
                    "failed to allocate requested HealthCheck NodePort {wanted}: {why}"
                ))
            })?
        };
        spec::set(service, "healthCheckNodePort", json!(port));
        Ok(())
    }

    fn reserve_port(
        &mut self,
        kind: &Kind,
        name: &str,
        index: usize,
        wanted: i64,
    ) -> ApiResult<i64> {
        self.try_reserve_port(wanted).map_err(|why| {
            let field = format!("spec.ports[{index}].nodePort");
            let error = FieldError::invalid(field, &json!(wanted), why);
            ApiError::invalid(kind, name, &[error])
        })
    }

    fn try_reserve_port(&mut self, wanted: i64) -> Result<i64, String> {
        let all = &self.registry.services.node_ports;
        if !self.dry_run {
            all.reserve(wanted)?;
        } else if all.is_taken(wanted) || self.ports.contains(&wanted) {
            return Err(node_ports::ALLOCATED.to_owned());
        }
        self.ports.push(wanted);
        Ok(wanted)
    }

    fn reserve_any_port(&mut self) -> ApiResult<i64> {
        let port = if self.dry_run {
            // The numbers of Kubernetes in a dry run, which are not in the range.
            self.ports
                .iter()
                .max()
                .map_or(32_769, |last| last.saturating_add(1))
        } else {
            let all = &self.registry.services.node_ports;
            let free = all.reserve_next(self.registry.random.next());
            i64::from(free.ok_or_else(|| {
                let full = node_ports::FULL;
                ApiError::internal_occurred(format!("failed to allocate a nodePort: {full}"))
            })?)
        };
        self.ports.push(port);
        Ok(port)
    }
}
