//! The certificates of an operator's webhooks, signed by the operator's own certificate authority.
//!
//! API servers call webhooks over HTTPS and verify the certificate with the `caBundle` of the
//! webhook configuration. The replicas of an operator share one Secret with the authority and the
//! serving certificate. Any replica creates and renews them, with the Secret's `resourceVersion` as
//! the lock, so there is no leader. Each replica serves the certificate in the Secret and keeps the
//! `caBundle` of the webhook configurations and CRDs up to date.
//!
//! # Rotation of the authority
//! No API server reports which `caBundle` it uses. For this reason a rotation has three steps, with
//! a delay ([`Periods::propagation`]) after each:
//!
//! 1. A new authority is added to the bundle. Replicas still serve a certificate of the old one.
//! 2. The new authority signs a serving certificate, which all replicas load.
//! 3. When all replicas have reported that they serve it, the old authority is removed.
//!
//! At each moment, all serving certificates in use are signed by an authority that every API server
//! has had in its bundle for at least the delay.
//!
//! # Time
//! The validity of certificates follows the clock of the API server, which is read from the
//! server's responses: a replica whose own clock is wrong makes certificates with the correct
//! dates.
//!
//! `rotation` decides, without I/O. `content` is the data in the Secret. `issue` creates
//! certificates. `keeper` is the async code around them.

mod bundle;
mod content;
mod error;
mod issue;
mod keeper;
mod machine;
mod periods;
mod replicas;
mod rotation;
mod server_time;
#[cfg(test)]
mod simulation;

pub use bundle::{BundleTarget, TargetKind};
pub use error::CertificateError;
pub use keeper::{CertificateKeeper, CertificateState, KeeperOptions};
pub use periods::Periods;
