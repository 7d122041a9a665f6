//! Requests to the Kubernetes API, all through one seam.
//!
//! [`connect`] finds the cluster; [`RestClient`] sends every request of the other rooms and names verb,
//! kind and object in each error; [`Kind`] and [`ObjectKey`] say what a request is about. Answers
//! are bytes: whoever asked decodes them, once.
//!
//! The seam itself (limits, metrics, recording, faults) will be a tower layer inside
//! `kube::Client`, so that a user's own `kube::Api` calls pass it as well.

mod connect;
mod error;
mod key;
mod kind;
mod object;
mod rest;

pub use connect::{ConnectError, connect, connect_named};
pub use error::{Call, RequestError, Verb, one_line};
pub use key::ObjectKey;
pub use kind::Kind;
pub use object::Object;
pub use rest::{
    CollectionOptions, Encoding, Page, PageOptions, Patch, RestClient, WatchFrames, WatchOptions,
};
