//! Webhooks of an operator: the API server asks it about requests before it handles them.
//!
//! - [`Webhook`] sets defaults in objects and validates them, with plain functions whose decision
//!   is an [`Admission`]. Functions that need more take an [`AdmissionRequest`] and a
//!   [`WebhookContext`], which reads and cannot write.
//! - [`AuthenticationWebhook`], [`AuthorizationWebhook`] and [`ConversionWebhook`] are the other
//!   sorts of webhooks.
//! - [`WebhookRouter`] returns the response to an HTTP request, without a socket. The way from the
//!   body of a request to the body of the response does no I/O and has no type parameters.
//! - [`WebhookServer`] serves a router over HTTPS, with the certificate of a [`CertificateSource`].
//!
//! The crate neither prints nor reads arguments. The crate `operator` composes webhooks, and prints
//! their configurations.

mod admission;
mod authentication;
mod authorization;
mod builder;
mod context;
mod conversion;
mod handler;
mod metrics;
mod patch;
mod review;
mod router;
mod server;

pub use admission::Admission;
pub use admission::request::{AdmissionRequest, Operation};
pub use authentication::{Authentication, AuthenticationWebhook};
pub use authorization::{Authorization, AuthorizationWebhook};
pub use builder::{
    AdmissionObject, AnyWebhook, Defaulted, FailurePolicy, ReinvocationPolicy, RuleScope,
    SideEffects, Webhook,
};
pub use context::{LiveError, LiveReads, WebhookContext};
pub use conversion::ConversionWebhook;
pub use router::{WebhookRouter, WebhookSet};
pub use server::{
    CertificateError, CertificateSource, WebhookHealth, WebhookServer, WebhookServerOptions,
    WebhookUnhealthy,
};

#[cfg(test)]
mod tests;
