//! Each capability of opkit, written once and run on every control plane.
//!
//! One binary: linking is what tests of this kind cost most.

#[cfg(test)]
mod cache;
#[cfg(test)]
mod client;
#[cfg(test)]
mod context;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod demo;
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
mod robot;
#[cfg(test)]
mod scheme;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod stuck;
#[cfg(test)]
mod testing;

/// The guides, whose examples run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cache.md")]
pub struct Cache;

/// The guides, whose examples run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
pub struct Client;

/// The guides, whose examples run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/observability.md")]
pub struct Observability;

/// The guides, whose examples run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/controller.md")]
pub struct Controller;

/// The guides, whose examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
pub struct Testing;
/// The guides, whose examples run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/kinds.md")]
pub struct Kinds;
