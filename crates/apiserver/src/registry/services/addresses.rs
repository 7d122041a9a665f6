//! Ranges of cluster IPs.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IP family, as in `spec.ipFamilies` of a Service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

/// A range of addresses for Services, in CIDR notation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct AddressRange {
    network: IpAddr,
    prefix: u8,
}

impl AddressRange {
    pub(super) fn family(&self) -> Family {
        Family::of(self.network)
    }

    /// Returns the network address, such as 10.96.0.0.
    pub(super) fn network(&self) -> IpAddr {
        self.network
    }

    /// Returns the first address that a Service can have, which the Service `kubernetes` gets.
    pub(super) fn first(&self) -> IpAddr {
        self.address(self.low())
    }

    /// Reports whether a Service can have this address.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        Family::of(address) == self.family() && (self.low()..=self.high()).contains(&bits(address))
    }

    /// Returns all addresses of the range in the order in which free ones are looked for: starting
    /// at a place that `random` determines, the upper part of the range first. The lower part is
    /// kept for addresses that users choose.
    pub(super) fn candidates(self, random: u64) -> impl Iterator<Item = IpAddr> {
        let (low, high) = (self.low(), self.high());
        let size = high.saturating_sub(low).saturating_add(1);
        let lower = match size {
            0..=16 => 0,
            size => (size / 16).clamp(16, 256),
        };
        let part = move |first: u128, count: u128| {
            let start = if count == 0 {
                0
            } else {
                u128::from(random) % count
            };
            (0..count).map(move |at| first + (start + at) % count)
        };
        part(low + lower, size - lower)
            .chain(part(low, lower))
            .map(move |bits| self.address(bits))
    }

    /// Returns the address after the network address.
    fn low(&self) -> u128 {
        bits(self.network).saturating_add(1)
    }

    /// Returns the last address of the range, without the broadcast address of IPv4.
    fn high(&self) -> u128 {
        let width = match self.network {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        let hosts = 1_u128
            .checked_shl(u32::from(width - self.prefix))
            .map_or(u128::MAX, |count| count - 1);
        let last = bits(self.network).saturating_add(hosts);
        match self.family() {
            Family::V4 => last.saturating_sub(1),
            Family::V6 => last,
        }
    }

    fn address(&self, bits: u128) -> IpAddr {
        match self.family() {
            Family::V4 => Ipv4Addr::from(u32::try_from(bits).unwrap_or(u32::MAX)).into(),
            Family::V6 => Ipv6Addr::from(bits).into(),
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let (address, prefix) = parts.ok_or("is not in CIDR notation, such as 10.96.0.0/12")?;
        let address: IpAddr = address.parse().map_err(|_| "has no valid address")?;
        let prefix: u8 = prefix.parse().map_err(|_| "has no valid prefix length")?;
        // Kubernetes has the same limits: 2^20 addresses of IPv4, 2^64 of IPv6.
        let (width, shortest) = match address {
            IpAddr::V4(_) => (32, 12),
            IpAddr::V6(_) => (128, 64),
        };
        if prefix < shortest || prefix > width - 2 {
            let longest = width - 2;
            return Err(format!(
                "must have a prefix length from {shortest} to {longest}"
            ));
        }
        let mask = u128::MAX << (width - prefix);
        let range = Self {
            network: address,
            prefix,
        };
        let network = range.address(bits(address) & mask);
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests;
