//! Tests of each capability of opkit, written once and run on every control plane.
//!
//! All tests are in one binary, because linking is the most expensive part of such tests.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod beside;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod client;
#[cfg(test)]
mod context;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod deploy;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod events;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod leaderelection;
#[cfg(test)]
mod log;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod resync;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod robot;
#[cfg(test)]
mod scheme;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod sharding;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod stuck;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod webhooks;

/// Guide to the cache; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cache.md")]
pub struct Cache;

/// Guide to the clients; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
pub struct Client;

/// Guide to observability; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/observability.md")]
pub struct Observability;

/// Guide to manifests and deployment; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/deploy.md")]
pub struct Deploy;

/// Guide for users of kube-rs; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from-kube-rs.md")]
pub struct ComingFromKubeRs;

/// Guide for users of kubebuilder; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from-kubebuilder.md")]
pub struct ComingFromKubebuilder;

/// Guide to operators in use; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/second-day.md")]
pub struct SecondDay;

/// Guide to controllers; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/controller.md")]
pub struct Controller;

/// Guide to tests; its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
pub struct Testing;
/// Guide to webhooks; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/webhooks.md")]
pub struct Webhooks;
/// Guide to kinds; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/kinds.md")]
pub struct Kinds;
/// Guide to versions; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/versions.md")]
pub struct Versions;
