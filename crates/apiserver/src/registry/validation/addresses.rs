//! Validation of IP addresses and CIDRs in fields.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;

use super::field::{Errors, Field};

const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Parses an IP address as Kubernetes does for old fields: numbers may have leading zeros.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(match address {
            IpAddr::V6(address) => address.to_canonical(),
            IpAddr::V4(_) => address,
        });
    }
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.chars().all(|c| c.is_ascii_digit()) {
            return None;
        }
        *octet = part
            .trim_start_matches('0')
            .parse()
            .or_else(|error| match part.chars().all(|c| c == '0') {
                true => Ok(0),
                false => Err(error),
            })
            .ok()?;
    }
    parts
        .next()
        .is_none()
        .then(|| Ipv4Addr::from(octets).into())
}

/// Adds the errors in an IP address.
pub(super) fn ip(field: &Field<'_>, errors: &mut Errors) {
    let text = field.text();
    if parse_ip(text).is_none() {
        return errors.invalid_text(field, ADDRESS);
    }
    match text.parse::<IpAddr>() {
        Err(_) => errors.invalid_text(field, "must not have leading 0s"),
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            errors.invalid_text(field, "must not be an IPv4-mapped IPv6 address");
        }
        Ok(_) => {}
    }
}

/// Adds the errors in the IP address of an endpoint.
pub(super) fn endpoint_ip(field: &Field<'_>, errors: &mut Errors) {
    let text = field.text();
    let Some(address) = parse_ip(text) else {
        return errors.invalid_text(field, "must be a valid IP address");
    };
    let (is_link_local, is_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => {
            let first = v6.segments().first().copied().unwrap_or_default();
            (first & 0xffc0 == 0xfe80, first & 0xff0f == 0xff02)
        }
    };
    if address.is_unspecified() {
        errors.invalid_text(field, &format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.invalid_text(field, detail);
    }
    if is_link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.invalid_text(field, detail);
    }
    if is_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.invalid_text(field, detail);
    }
}

/// A range of addresses: the first address as a number, the length of the prefix, and the number of
/// bits of an address.
#[derive(Clone, Copy)]
pub(super) struct Cidr {
    bits: u128,
    pub(super) length: u32,
    pub(super) size: u32,
}

impl Cidr {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (bits, size) = match parse_ip(address)? {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let is_number = !length.is_empty() && length.chars().all(|c| c.is_ascii_digit());
        let length: u32 = is_number.then(|| length.parse().ok())??;
        (length <= size).then_some(Self { bits, length, size })
    }

    fn masked(self, length: u32) -> u128 {
        let shift = self.size.saturating_sub(length);
        self.bits.checked_shr(shift).unwrap_or_default()
    }

    fn has_bits_beyond_prefix(self) -> bool {
        let shift = self.size.saturating_sub(self.length);
        let masked = self.masked(self.length);
        masked.checked_shl(shift).unwrap_or_default() != self.bits
    }

    /// Reports whether `other` is a part of this range, and smaller than it.
    pub(super) fn has_strict_subset(self, other: Self) -> bool {
        self.size == other.size
            && self.length < other.length
            && self.masked(self.length) == other.masked(self.length)
    }
}

/// Adds the errors in a range of addresses. Returns the range if it can be parsed.
pub(super) fn cidr(field: &Field<'_>, errors: &mut Errors) -> Option<Cidr> {
    let text = field.text();
    let Some(range) = Cidr::parse(text) else {
        errors.invalid_text(field, CIDR);
        return None;
    };
    let (address, length) = text.split_once('/').unwrap_or_default();
    let has_zeros = length.len() > 1 && length.starts_with('0');
    let parsed = address.parse::<IpAddr>();
    let is_mapped = matches!(parsed, Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some());
    if parsed.is_err() || has_zeros {
        let detail = "must not have leading 0s in IP or prefix length";
        errors.invalid_value(&field.path, json!(text), detail);
    } else if is_mapped {
        errors.invalid_text(field, "must not have an IPv4-mapped IPv6 address");
    } else if range.has_bits_beyond_prefix() {
        errors.invalid_text(field, "must not have bits set beyond the prefix length");
    }
    Some(range)
}

#[cfg(test)]
mod tests;
