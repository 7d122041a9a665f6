//! Requests to the Kubernetes API, all through one HTTP stack.
//!
//! - [`connect`] finds the cluster and creates a client.
//! - [`Client`] reads and writes objects as Rust types. [`DynamicClient`] reads and writes kinds
//!   that are known only at run time. [`MetadataClient`] reads only the metadata of objects.
//!   [`ScaleClient`] reads and writes the subresource `scale`. [`TypedClient`] is limited to one
//!   kind and a set of verbs.
//! - [`RestClient`] is the layer below these clients, which sends requests to any kind or path and
//!   returns responses as bytes. Every error names verb, kind and object.
//! - [`ListOptions`], [`WriteOptions`] and [`DeleteOptions`] are the options of all clients.
//! - [`Discovery`] lists and caches the kinds that the server serves; [`RestMapper`] finds the
//!   resource of a name or a kind.
//! - [`ClientOptions`] configures the HTTP stack: connections, retries, limits, metrics, warnings.
//! - The [`Seam`] is a layer of the HTTP stack that records requests, makes requests fail or
//!   responds in place of the server, also for a user's own `kube::Api`.
//! - The [`Fence`] rejects the writes of a replica that has lost its leadership.
//!
//! [`Kind`] and [`ObjectKey`] identify the object of a request; [`add_built_in_kinds`] registers
//! Kubernetes' own kinds in a scheme; [`retry_on_conflict`] repeats a read and a write after a
//! conflict with another client's write; [`StorageMigration`] rewrites the stored objects of a CRD.
//! For logs, use kube's [`Api`]; with the feature `ws`, also for exec, attach and port-forward.

mod apply;
mod backoff;
mod built_in;
mod client;
mod codec;
mod connect;
mod credentials;
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
mod options;
mod request_info;
mod rest;
mod retry;
mod scale;
mod seam;
mod storage_migration;
mod transport;

pub use apply::ApplyConfiguration;
pub use backoff::Backoff;
pub use built_in::{Kinds, add_built_in_kinds, add_kinds};
pub use client::{Client, ObjectList, SubresourceClient, TypedClient, verbs};
pub use connect::{
    ClusterSelection, ConnectError, SelectedCluster, connect, connect_with, connect_with_token,
};
pub use credentials::CredentialsError;
pub use deleted::{Deleted, is_removed};
pub use discovery::{
    ApiResource, Discovered, Discovery, DiscoveryError, DiskCache, GroupFailure, RestMapper,
};
pub use dynamic::{DynamicClient, DynamicResource, NotAnObject, Unstructured};
pub use error::{Call, RequestError, one_line};
pub use fence::{Fence, Fenced};
pub use hostname::{hostname, pod_namespace};
pub use key::ObjectKey;
pub use kind::Kind;
/// kube's typed client of one resource. The requests pass through the HTTP stack of the client that
/// the `Api` was created with.
pub use kube::Api;
pub use kube::api::LogParams;
#[cfg(feature = "ws")]
pub use kube::api::{AttachParams, AttachedProcess, Portforwarder, TerminalSize};
pub use metadata::{MetadataClient, PartialObjectMetadata};
pub use object::Object;
pub use opkit_apimachinery::identity::{
    GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, Verb,
};
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, Patch, Propagation, VersionMatch, WriteOptions,
};
pub use request_info::RequestInfo;
pub use rest::{Encoding, Response, ResponseFormat, RestClient, RestRequest, WatchFrames};
pub use retry::{IsConflict, retry_on_conflict, retry_on_conflict_with};
pub use scale::ScaleClient;
pub use seam::PlannedChange;
pub use seam::{
    Effect, Exchange, RecordedBody, RecordedOutcome, Rule, Seam, SeamLayer, SeamService,
};
pub use storage_migration::{
    MigrationError, MigrationOptions, MigrationProgress, StorageMigration,
};
pub use transport::{
    ClientOptions, LayeredService, Metrics, RateLimit, ResponseBody, RetryOptions, Warning,
    Warnings,
};
