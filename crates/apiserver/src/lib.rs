//! An embedded Kubernetes control plane.
//!
//! [`Server`] is an API server in memory with the controllers that make a cluster of it: garbage
//! collection, namespaces, CRDs, and a simulation of Deployments, ReplicaSets and Pods. It is
//! reached through its tower [`Service`] without a socket, or over HTTPS by kubectl and any other
//! client.
//!
//! Kinds are data: a table generated from what a real server says of itself, and the CRDs that are
//! installed. What this server does not model it answers with 501; `README.md` lists it.

mod auth;
mod clock;
mod compression;
mod controllers;
mod crd;
mod discovery;
mod error;
mod front;
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
mod status;
mod store;
mod table;
mod target;
mod verbs;
mod watch;
mod workloads;

#[cfg(test)]
mod tests;

pub use error::StartError;
pub use front::Endpoint;
pub use response::ResponseBody;
pub use server::{Options, Server};
pub use service::Service;
