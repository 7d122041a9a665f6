//! An embedded Kubernetes control plane.
//!
//! [`Server`] is an API server in memory with the controllers of a cluster: garbage collection,
//! namespaces, CRDs, and a simulation of Deployments, ReplicaSets and Pods. Clients call its tower
//! [`Service`] without a socket; kubectl and any other client can use HTTPS.
//!
//! The built-in kinds come from data files that are generated from the discovery and OpenAPI of a
//! real server. All other kinds come from the installed CRDs. A request for a feature that this
//! control plane does not have gets 501. `README.md` lists the missing features.

mod admission;
mod aggregator;
mod audit;
mod authentication;
mod authority;
mod authorization;
mod bootstrap;
mod clock;
mod compression;
mod controllers;
mod crd;
mod denials;
mod discovery;
mod error;
mod front;
mod gotext;
mod impersonation;
mod kinds;
mod negotiation;
mod object;
mod openapi;
mod query;
mod random;
mod registry;
mod representation;
mod request;
mod response;
mod reviews;
mod schemas;
mod server;
mod service;
mod service_resolver;
mod status;
mod store;
mod table;
mod target;
mod verbs;
mod view;
mod watch;
mod webhook;
mod workloads;

#[cfg(test)]
mod tests;

pub use admission::{AdmissionPlugin, UnknownAdmissionPlugin};
pub use audit::AuditOptions;
pub use authentication::{
    AuthenticationOptions, AuthenticationWebhook, RequestHeaderOptions, ServiceAccountOptions,
    StaticToken,
};
pub use authorization::{AuthorizationMode, AuthorizationWebhook};
pub use crd::{crd_errors, crd_problems};
pub use error::{StartError, TokenError};
pub use front::{Endpoint, ServingCertificate};
pub use registry::object_problems;
pub use response::{BodyError, ResponseBody};
pub use server::{Options, Server};
pub use service::Service;
pub use service_resolver::{LocalService, ServiceAddress};
