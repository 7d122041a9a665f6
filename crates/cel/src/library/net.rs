//! IP addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::format_string::quote;
use super::{Function, no_overload};
use crate::value::{Fault, Object, Outcome, Value};

/// A network: an address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Cidr {
    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        };
        Self { address, ..self }
    }

    fn contains(self, ip: IpAddr) -> bool {
        let other = Self {
            address: ip,
            bits: self.bits,
        };
        self.address.is_ipv4() == ip.is_ipv4() && self.masked() == other.masked()
    }
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "ip" => |args| match args {
            [Value::String(text)] => parse_ip(text).map(ip_value),
            [Value::Object(Object::Cidr(cidr))] => Ok(ip_value(cidr.address)),
            _ => Err(no_overload("ip", args)),
        },
        "isIP" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_ok())),
            _ => Err(no_overload("isIP", args)),
        },
        "ip.isCanonical" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text)?.to_string() == **text)),
            _ => Err(no_overload("ip.isCanonical", args)),
        },
        "family" => |args| match args {
            [Value::Object(Object::Ip(ip))] => Ok(Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
            _ => Err(no_overload("family", args)),
        },
        "isUnspecified" => |args| test(args, "isUnspecified", |ip| ip.is_unspecified()),
        "isLoopback" => |args| test(args, "isLoopback", |ip| ip.is_loopback()),
        "isLinkLocalMulticast" => |args| test(args, "isLinkLocalMulticast", is_local_multicast),
        "isLinkLocalUnicast" => |args| test(args, "isLinkLocalUnicast", is_local_unicast),
        "isGlobalUnicast" => |args| test(args, "isGlobalUnicast", is_global_unicast),
        "cidr" => |args| match args {
            [Value::String(text)] => Ok(Value::Object(Object::Cidr(parse_cidr(text)?))),
            _ => Err(no_overload("cidr", args)),
        },
        "isCIDR" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_cidr(text).is_ok())),
            _ => Err(no_overload("isCIDR", args)),
        },
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        "prefixLength" => |args| match args {
            [Value::Object(Object::Cidr(cidr))] => Ok(Value::Int(i64::from(cidr.bits))),
            _ => Err(no_overload("prefixLength", args)),
        },
        "masked" => |args| match args {
            [Value::Object(Object::Cidr(cidr))] => Ok(Value::Object(Object::Cidr(cidr.masked()))),
            _ => Err(no_overload("masked", args)),
        },
        _ => return None,
    })
}

fn ip_value<'a>(ip: IpAddr) -> Value<'a> {
    Value::Object(Object::Ip(ip))
}

fn test<'a>(args: &[Value<'a>], name: &str, holds: fn(IpAddr) -> bool) -> Outcome<'a> {
    match args {
        [Value::Object(Object::Ip(ip))] => Ok(Value::Bool(holds(*ip))),
        _ => Err(no_overload(name, args)),
    }
}

fn is_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(ip) => ip.is_multicast() && ip.octets().get(1).is_some_and(|b| b & 0x0f == 2),
    }
}

fn is_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn is_global_unicast(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !is_broadcast
        && !ip.is_unspecified()
        && !ip.is_loopback()
        && !ip.is_multicast()
        && !is_local_unicast(ip)
}

fn contains_ip<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [
            Value::Object(Object::Cidr(cidr)),
            Value::Object(Object::Ip(ip)),
        ] => Ok(Value::Bool(cidr.contains(*ip))),
        // As in Kubernetes, a text that is not an address is reported as a missing overload.
        [Value::Object(Object::Cidr(cidr)), Value::String(text)] => match parse_ip(text) {
            Ok(ip) => Ok(Value::Bool(cidr.contains(ip))),
            Err(_) => Err(Fault::no_such_overload()),
        },
        _ => Err(no_overload("containsIP", args)),
    }
}

fn contains_cidr<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (outer, inner) = match args {
        [
            Value::Object(Object::Cidr(outer)),
            Value::Object(Object::Cidr(inner)),
        ] => (*outer, *inner),
        [Value::Object(Object::Cidr(outer)), Value::String(text)] => (*outer, parse_cidr(text)?),
        _ => return Err(no_overload("containsCIDR", args)),
    };
    let holds = outer.bits <= inner.bits && outer.contains(inner.address);
    Ok(Value::Bool(holds))
}

fn parse_ip(text: &str) -> Result<IpAddr, Fault> {
    let quoted = quote(text);
    let ip = parse_address(text).map_err(|why| {
        Fault::new(format!(
            "IP Address {quoted} parse error during conversion from string: {why}"
        ))
    })?;
    match ip {
        (_, true) => Err(Fault::new(format!(
            "IP address {quoted} with zone value is not allowed"
        ))),
        (IpAddr::V6(ip), _) if ip.to_ipv4_mapped().is_some() => Err(Fault::new(format!(
            "IPv4-mapped IPv6 address {quoted} is not allowed"
        ))),
        (ip, _) => Ok(ip),
    }
}

fn parse_cidr(text: &str) -> Result<Cidr, Fault> {
    let context = "network address parse error during conversion from string";
    let quoted = quote(text);
    let failed = |why: String| {
        Fault::new(format!(
            "{context}: {context}: netip.ParsePrefix({quoted}): {why}"
        ))
    };
    let Some((address, bits)) = text.rsplit_once('/') else {
        return Err(failed("no '/'".to_owned()));
    };
    let (address, has_zone) = parse_address(address).map_err(&failed)?;
    if has_zone {
        return Err(failed(
            "IPv6 zones cannot be present in a prefix".to_owned(),
        ));
    }
    let is_number = !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    let limit = if address.is_ipv4() { 32 } else { 128 };
    let bits: u8 = match bits.parse::<u64>().ok().filter(|_| is_number) {
        Some(number) => u8::try_from(number)
            .ok()
            .filter(|bits| *bits <= limit)
            .ok_or_else(|| failed("prefix length out of range".to_owned()))?,
        None => return Err(failed(format!("bad bits after slash: {}", quote(bits)))),
    };
    if let IpAddr::V6(ip) = address
        && ip.to_ipv4_mapped().is_some()
    {
        return Err(Fault::new(format!(
            "{context}: IPv4-mapped IPv6 address {quoted} is not allowed"
        )));
    }
    Ok(Cidr { address, bits })
}

/// Parses an address, and reports whether it has a zone.
fn parse_address(text: &str) -> Result<(IpAddr, bool), String> {
    let failed = |why: &str| format!("ParseAddr({}): {why}", quote(text));
    let first = text.find(['.', ':', '%']);
    let kind = first
        .and_then(|at| text.get(at..))
        .and_then(|rest| rest.chars().next());
    match kind {
        Some('.') => parse_v4(text)
            .map(|ip| (IpAddr::V4(ip), false))
            .map_err(|why| failed(&why)),
        Some(':') => {
            let (address, zone) = match text.split_once('%') {
                Some((_, "")) => return Err(failed("zone must be a non-empty string")),
                Some((address, _)) => (address, true),
                None => (text, false),
            };
            match address.parse::<Ipv6Addr>() {
                Ok(ip) => Ok((IpAddr::V6(ip), zone)),
                Err(_) => Err(failed("unable to parse IP")),
            }
        }
        Some(_) => Err(failed("missing IPv6 address")),
        None => Err(failed("unable to parse IP")),
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, String> {
    let mut octets = Vec::new();
    let (mut value, mut digits) = (0_u32, 0);
    for (index, c) in text.char_indices() {
        match c {
            '0'..='9' => {
                if digits == 1 && value == 0 {
                    return Err("IPv4 field has octet with leading zero".to_owned());
                }
                value = value * 10 + c.to_digit(10).unwrap_or_default();
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".to_owned());
                }
            }
            '.' => {
                let follows_dot = text
                    .get(..index)
                    .is_some_and(|before| before.ends_with('.'));
                if index == 0 || index + 1 == text.len() || follows_dot {
                    let rest = quote(text.get(index..).unwrap_or_default());
                    return Err(format!(
                        "IPv4 field must have at least one digit (at {rest})"
                    ));
                }
                if octets.len() == 3 {
                    return Err("IPv4 address too long".to_owned());
                }
                octets.push(value);
                (value, digits) = (0, 0);
            }
            _ => {
                let rest = quote(text.get(index..).unwrap_or_default());
                return Err(format!("unexpected character (at {rest})"));
            }
        }
    }
    octets.push(value);
    match octets.as_slice() {
        [a, b, c, d] => Ok(Ipv4Addr::from_bits((a << 24) | (b << 16) | (c << 8) | d)),
        _ => Err("IPv4 address too short".to_owned()),
    }
}
