//! Requests to the Kubernetes API, all through one seam.
//!
//! [`connect`] finds the cluster; [`RestClient`] sends every request of the other rooms and names verb,
//! kind and object in each error; [`Kind`] and [`ObjectKey`] say what a request is about. Answers
//! are bytes: whoever asked decodes them, once.
//!
//! [`ClientOptions`] is the HTTP stack below: connections, retries, limits, metrics, warnings. The
//! [`Seam`] in it records, disturbs or answers requests; a user's own `kube::Api` calls pass both.

mod backoff;
mod connect;
mod error;
mod key;
mod kind;
mod object;
mod request_info;
mod rest;
mod seam;
mod transport;

pub use backoff::Backoff;
pub use connect::{ConnectError, connect, connect_named, connect_with};
pub use error::{Call, RequestError, Verb, one_line};
pub use key::ObjectKey;
pub use kind::Kind;
pub use object::Object;
pub use rest::{
    CollectionOptions, Encoding, Page, PageOptions, Patch, RestClient, WatchFrames, WatchOptions,
pub use request_info::RequestInfo;
pub use seam::{
    Effect, Exchange, PlannedChange, RecordedBody, RecordedOutcome, Rule, Seam, SeamLayer,
    SeamService,
};
pub use transport::{
    AnswerBody, ClientOptions, LayeredService, Metrics, RateLimit, RetryOptions, Warning, Warnings,
};
