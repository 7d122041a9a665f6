//! Requests to the Kubernetes API, all through one seam.
//!
//! [`connect`] finds the cluster; [`RestClient`] sends every request of the other rooms and names verb,
//! kind and object in each error; [`Kind`] and [`ObjectKey`] say what a request is about. Answers
//! are bytes: whoever asked decodes them, once.
//!
//! [`ClientOptions`] is the HTTP stack below: connections, retries, limits, metrics, warnings. The
//! [`Seam`] in it records, disturbs or answers requests; a user's own `kube::Api` calls pass both.

mod backoff;
mod calls;
mod client;
mod codec;
mod connect;
mod discovery;
mod dynamic;
mod error;
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
pub use connect::{ConnectError, connect, connect_named, connect_with};
pub use discovery::{
    ApiResource, Discovered, Discovery, DiscoveryError, DiskCache, GroupFailure, RestMapper,
};
pub use dynamic::{DynamicClient, DynamicResource, NotAnObject, Unstructured};
pub use error::{Call, RequestError, Verb, one_line};
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
    AnswerBody, ClientOptions, LayeredService, Metrics, RateLimit, RetryOptions, Warning, Warnings,
};
