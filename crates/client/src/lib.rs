//! Requests to the Kubernetes API, all through one stack.
//!
//! - [`connect`] finds the cluster.
//! - [`Client`] reads and writes Rust types; [`DynamicClient`] kinds that are known only at run
//!   time; [`MetadataClient`] metadata alone; [`ScaleClient`] the scale of anything.
//!   [`TypedClient`] has the verbs that it is given and no others.
//! - [`RestClient`] is below them: any path, answers in bytes. Every error names verb, kind and
//!   object.
//! - [`Discovery`] finds out what the server serves, and remembers it; [`RestMapper`] leads from
//!   names and kinds to resources.
//! - [`ClientOptions`] is the HTTP stack below all: connections, retries, limits, metrics,
//!   warnings.
//! - The [`Seam`] in it records, disturbs or answers requests, those of a user's own `kube::Api`
//!   included.
//! - The [`Fence`] holds back the writes of one who no longer leads.
//!
//! [`Kind`] and [`ObjectKey`] say what a request is about; [`retry_on_conflict`] does a read and a
//! write again when somebody else wrote in between. Logs, and with the feature `ws` exec, attach
//! and port-forward, are kube's, through [`Api`].

mod backoff;
mod calls;
mod client;
mod codec;
mod connect;
mod deleted;
mod discovery;
mod dynamic;
mod error;
mod fence;
mod hostname;
mod key;
mod kind;
mod metadata;
mod object;
mod request_info;
mod rest;
mod retry;
mod scale;
mod seam;
mod transport;

pub use backoff::Backoff;
pub use calls::{
    DeleteOptions, FieldValidation, ListOptions, Propagation, VersionMatch, WriteOptions,
};
pub use client::{Client, ObjectList, SubresourceClient, TypedClient, verbs};
pub use connect::{ConnectError, connect, connect_with};
pub use deleted::{Deleted, is_removed};
pub use discovery::{
    ApiResource, Discovered, Discovery, DiscoveryError, DiskCache, GroupFailure, RestMapper,
};
pub use dynamic::{DynamicClient, DynamicResource, NotAnObject, Unstructured};
pub use error::{Call, RequestError, Verb, one_line};
pub use fence::{Fence, Fenced};
pub use hostname::hostname;
pub use key::ObjectKey;
pub use kind::Kind;
/// kube's typed handle on one resource, for whoever knows it; its requests pass the same stack.
pub use kube::Api;
pub use kube::api::LogParams;
#[cfg(feature = "ws")]
pub use kube::api::{AttachParams, AttachedProcess, Portforwarder, TerminalSize};
pub use metadata::{MetadataClient, PartialObjectMetadata};
pub use object::Object;
pub use opkit_apimachinery::identity::{
    GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource,
};
pub use request_info::RequestInfo;
pub use rest::{
    CollectionOptions, Encoding, Page, PageOptions, Patch, RestClient, RestRequest, WatchFrames,
    WatchOptions,
};
pub use retry::{IsConflict, retry_on_conflict, retry_on_conflict_with};
pub use scale::ScaleClient;
pub use seam::{
    Effect, Exchange, PlannedChange, RecordedBody, RecordedOutcome, Rule, Seam, SeamLayer,
    SeamService,
};
pub use transport::{
    ClientOptions, LayeredService, Metrics, RateLimit, ResponseBody, RetryOptions, Warning,
    Warnings,
};
