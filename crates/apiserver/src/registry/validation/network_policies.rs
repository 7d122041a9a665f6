//! Validation of NetworkPolicies.

use super::addresses::{self, Cidr};
use super::field::{Errors, Field};
use super::{format, selectors};

const TYPES: &[&str] = &["Ingress", "Egress"];

/// Adds the errors in a NetworkPolicy.
pub(super) fn network_policy(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    selectors::selector(&spec.get("podSelector"), errors);
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(list).items() {
            for port in rule.get("ports").items() {
                self::port(&port, errors);
            }
            for peer in rule.get(peers).items() {
                self::peer(&peer, errors);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > TYPES.len() {
        return errors.invalid(&types, "may not specify more than two policyTypes");
    }
    for type_ in types.items() {
        errors.supported(&type_, TYPES);
    }
}

fn port(port: &Field<'_>, errors: &mut Errors) {
    errors.supported_if_set(&port.get("protocol"), &["TCP", "UDP", "SCTP"]);
    let (number, end) = (port.get("port"), port.get("endPort"));
    if !number.is_set() {
        if end.is_set() {
            errors.invalid(&end, "may not be specified when `port` is not specified");
        }
    } else if number.value.is_string() {
        if end.is_set() {
            errors.invalid(&end, "may not be specified when `port` is non-numeric");
        }
        errors.rules(&number, format::port_name(number.text()));
    } else {
        format::range(&number, format::port_number(number.int()), errors);
        if end.is_set() {
            if end.int() < number.int() {
                let detail = "must be greater than or equal to `port`";
                errors.invalid_value(&end.path, number.value.clone(), detail);
            }
            format::range(&end, format::port_number(end.int()), errors);
        }
    }
}

fn peer(peer: &Field<'_>, errors: &mut Errors) {
    let block = peer.get("ipBlock");
    let mut count = 0;
    for name in ["podSelector", "namespaceSelector"] {
        if peer.get(name).is_set() {
            count += 1;
            selectors::selector(&peer.get(name), errors);
        }
    }
    if block.is_set() {
        count += 1;
        ip_block(&block, errors);
    }
    if count == 0 {
        errors.required(peer, "must specify a peer");
    } else if count > 1 && block.is_set() {
        errors.forbidden(peer, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(block: &Field<'_>, errors: &mut Errors) {
    let cidr = block.get("cidr");
    if cidr.is_empty() {
        return errors.required(&cidr, "");
    }
    let Some(range) = addresses::cidr(&cidr, errors) else {
        return;
    };
    for except in block.get("except").items() {
        let part: Option<Cidr> = addresses::cidr(&except, errors);
        if part.is_some_and(|part| !range.has_strict_subset(part)) {
            errors.invalid(&except, "must be a strict subset of `cidr`");
        }
    }
}
