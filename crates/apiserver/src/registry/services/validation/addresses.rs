//! Validation of the addresses of a Service.

use std::net::IpAddr;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::super::addresses::Family;
use super::super::spec::{self, SINGLE_STACK};
use super::{ONLY_LOAD_BALANCER, unsupported};
use crate::object;

/// Returns the errors in `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`.
pub(in crate::registry::services) fn cluster_ips(
    service: &Value,
    live: Option<&Value>,
) -> Vec<FieldError> {
    if spec::is_external_name(service) {
        return Vec::new();
    }
    const FIELD: &str = "spec.clusterIPs";
    let mut errors = Vec::new();
    let list = spec::texts(service, "clusterIPs");
    let value = json!(list);
    let invalid = |detail: &str| FieldError::invalid(FIELD, &value, detail);
    match (spec::text(service, "clusterIP"), list.as_slice()) {
        ("", []) => {}
        ("", _) => errors.push(invalid("must be empty when `clusterIP` is not specified")),
        (_, []) => errors.push(FieldError::required(FIELD, "")),
        (first, [other, ..]) if first != other => {
            errors.push(invalid("first value must match `clusterIP`"));
        }
        _ => {}
    }
    let families = spec::texts(service, "ipFamilies");
    for (index, family) in families.iter().enumerate() {
        let field = format!("spec.ipFamilies[{index}]");
        if !matches!(family.as_str(), "IPv4" | "IPv6") {
            let supported = ["IPv4", "IPv6"];
            let error = FieldError::not_supported(field.as_str(), &json!(family), &supported);
            errors.push(error);
        }
        if families.iter().take(index).any(|other| other == family) {
            errors.push(FieldError::duplicate(field, &json!(family)));
        }
    }
    if !object::at(service, &["spec", "ipFamilyPolicy"]).is_null() {
        let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        errors.extend(unsupported(service, "ipFamilyPolicy", &policies));
    }
    let known = live.map(|live| spec::texts(live, "clusterIPs"));
    let known = known.unwrap_or_default();
    let mut is_wrong = false;
    for (index, address) in list.iter().enumerate() {
        if index == 0 && address == spec::NONE {
            if list.len() > 1 {
                is_wrong = true;
                errors.push(invalid("'None' must be the first and only value"));
            }
            continue;
        }
        if !known.contains(address)
            && let Some(error) = ip_error(&format!("{FIELD}[{index}]"), address)
        {
            is_wrong = true;
            errors.push(error);
        }
    }
    if list.len() > 2 {
        errors.push(invalid("may only hold up to 2 values"));
    }
    if is_wrong {
        return errors;
    }
    let family = |address: &String| address.parse().ok().map(Family::of);
    if let [first, second, ..] = list.as_slice()
        && (family(first) == family(second) || list.len() > 2)
    {
        errors.push(invalid(
            "may specify no more than one IP for each IP family",
        ));
    }
    if !spec::is_headless(service) {
        for (index, (address, wanted)) in list.iter().zip(&families).enumerate() {
            if family(address).is_some_and(|family| family.as_str() != wanted) {
                let field = format!("{FIELD}[{index}]");
                let detail =
                    format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
                errors.push(FieldError::invalid(field, &json!(address), detail));
            }
        }
    }
    errors
}

/// Returns an error if `text` is not an IP address, or an address in an ambiguous form.
pub(super) fn ip_error(field: &str, text: &str) -> Option<FieldError> {
    let detail = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address"
        }
        Ok(_) => return None,
        Err(_) if without_leading_zeros(text).parse::<IpAddr>().is_ok() => {
            "must not have leading 0s"
        }
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    Some(FieldError::invalid(field, &json!(text), detail))
}

/// Returns an IPv4 address without zeros before its numbers.
fn without_leading_zeros(text: &str) -> String {
    let parts = text
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        });
    parts.collect::<Vec<_>>().join(".")
}

pub(super) fn external_ip_errors(service: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let known = live.map(|live| spec::texts(live, "externalIPs"));
    let known = known.unwrap_or_default();
    let mut errors = Vec::new();
    for (index, text) in spec::texts(service, "externalIPs").iter().enumerate() {
        let field = format!("spec.externalIPs[{index}]");
        if !known.contains(text)
            && let Some(error) = ip_error(&field, text)
        {
            errors.push(error);
            continue;
        }
        let Ok(address) = text.parse::<IpAddr>() else {
            continue;
        };
        let (is_link_local, is_link_multicast) = match address {
            IpAddr::V4(v4) => (v4.is_link_local(), matches!(v4.octets(), [224, 0, 0, _])),
            IpAddr::V6(v6) => {
                let [first, ..] = v6.segments();
                (first & 0xffc0 == 0xfe80, first & 0xff0f == 0xff02)
            }
        };
        let rules = [
            (
                address.is_unspecified(),
                format!("may not be unspecified ({text})"),
            ),
            (
                address.is_loopback(),
                "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
            ),
            (
                is_link_local,
                "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned(),
            ),
            (
                is_link_multicast,
                "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
            ),
        ];
        let violated = rules.into_iter().filter(|(is_violated, _)| *is_violated);
        errors.extend(
            violated.map(|(_, rule)| FieldError::invalid(field.as_str(), &json!(text), rule)),
        );
    }
    errors
}

pub(super) fn source_range_errors(service: &Value, live: Option<&Value>) -> Vec<FieldError> {
    const FIELD: &str = "spec.LoadBalancerSourceRanges";
    let ranges = spec::texts(service, "loadBalancerSourceRanges");
    let known = live.map(|live| spec::texts(live, "loadBalancerSourceRanges"));
    let known = known.unwrap_or_default();
    let mut errors = Vec::new();
    if !ranges.is_empty() && !spec::is_load_balancer(service) {
        errors.push(FieldError::forbidden(FIELD, ONLY_LOAD_BALANCER));
    }
    for (index, range) in ranges.iter().enumerate() {
        let text = range.trim();
        if known.iter().any(|known| known.trim() == text) {
            continue;
        }
        let parts = text.split_once('/').and_then(|(address, prefix)| {
            let address = address.parse::<IpAddr>().ok()?;
            let width = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.parse::<u8>().ok()?;
            (prefix <= width).then_some((address, width - prefix))
        });
        let detail = match parts {
            Some((IpAddr::V4(address), host)) if has_host_bits(u32::from(address).into(), host) => {
                "must not have bits set beyond the prefix length"
            }
            Some((IpAddr::V6(address), host)) if has_host_bits(address.into(), host) => {
                "must not have bits set beyond the prefix length"
            }
            Some(_) => continue,
            None => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        };
        let field = format!("{FIELD}[{index}]");
        errors.push(FieldError::invalid(field, &json!(text), detail));
    }
    errors
}

fn has_host_bits(address: u128, host: u8) -> bool {
    let mask = 1_u128
        .checked_shl(u32::from(host))
        .map_or(u128::MAX, |bit| bit - 1);
    address & mask != 0
}

pub(super) fn cluster_ip_changes(live: &Value, new: &Value) -> Vec<FieldError> {
    if spec::is_headless(live) && spec::is_headless(new) {
        return Vec::new();
    }
    let (before, after) = (
        spec::texts(live, "clusterIPs"),
        spec::texts(new, "clusterIPs"),
    );
    let invalid = |index: usize, detail: &str| {
        FieldError::invalid(format!("spec.clusterIPs[{index}]"), &json!(after), detail)
    };
    let fixed = "may not change once set";
    if before.len() == after.len() {
        let pairs = before.iter().zip(&after).enumerate();
        let changed = pairs.filter(|(_, (before, after))| before != after);
        return changed.map(|(index, _)| invalid(index, fixed)).collect();
    }
    let mut errors = Vec::new();
    match (before.first(), after.first()) {
        (Some(_), None) => errors.push(invalid(0, "primary clusterIP can not be unset")),
        (Some(before), Some(after)) if before != after => errors.push(invalid(0, fixed)),
        _ => {}
    }
    if after.len() == 1 && before.len() > 1 {
        errors.extend(policy_error(new, "clusterIP"));
    }
    errors
}

pub(super) fn family_changes(live: &Value, new: &Value) -> Vec<FieldError> {
    if spec::is_headless(live) || spec::is_headless(new) {
        return Vec::new();
    }
    let (before, after) = (
        spec::texts(live, "ipFamilies"),
        spec::texts(new, "ipFamilies"),
    );
    let invalid = |value: &[String], detail: &str| {
        FieldError::invalid("spec.ipFamilies[0]", &json!(value), detail)
    };
    let fixed = "may not change once set";
    if before.len() == after.len() {
        let pairs = before.iter().zip(&after);
        let changed = pairs.filter(|(before, after)| before != after);
        return changed.map(|_| invalid(&after, fixed)).collect();
    }
    let mut errors = Vec::new();
    let addresses = spec::texts(new, "clusterIPs");
    let is_shorter = before.len() > after.len();
    if is_shorter && addresses.is_empty() {
        errors.push(invalid(&after, "primary ipFamily can not be unset"));
    }
    if let (Some(first), Some(other)) = (before.first(), after.first())
        && first != other
    {
        errors.push(invalid(&addresses, fixed));
    }
    if is_shorter && after.len() == 1 {
        errors.extend(policy_error(new, "ipFamily"));
    }
    errors
}

/// Returns an error if a Service releases its second address or family without the policy
/// `SingleStack`.
fn policy_error(service: &Value, what: &str) -> Option<FieldError> {
    let policy = object::at(service, &["spec", "ipFamilyPolicy"]);
    (policy != SINGLE_STACK).then(|| {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        FieldError::invalid("spec.ipFamilyPolicy", policy, detail)
    })
}
