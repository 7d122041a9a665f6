//! The dynamic client: kinds that are known only at run time.

mod unstructured;

use serde_json::Value;

pub use self::unstructured::{NotAnObject, Unstructured};
use crate::calls::{Calls, Form, Payload, Target};
use crate::client::{ObjectList, configuration, decode, decode_deleted, events};
use crate::{
    Call, DeleteOptions, Deleted, Kind, ListOptions, ObjectKey, Patch, RequestError, Verb,
    WriteOptions,
};

/// Reads and writes objects of any kind as [`Unstructured`].
///
/// # Examples
/// ```
/// use opkit_client::{DynamicClient, ListOptions, RequestError, RestMapper};
///
/// async fn print(kube: kube::Client, resource: &str) -> Result<(), Box<dyn std::error::Error>> {
///     let mapper = RestMapper::new(kube.clone());
///     let kind = mapper.resource(resource).await?.kind();
///     for object in DynamicClient::new(kube).resource(kind).list(&ListOptions::new()).await? {
///         println!("{}", object.name());
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct DynamicClient {
    calls: Calls,
}

impl DynamicClient {
    /// Sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        Self {
            calls: Calls::new(kube),
        }
    }

    /// This client, writing as `options` say.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.calls.write = options;
        self
    }

    /// The objects of a kind: a [`Kind`], what a [`RestMapper`](crate::RestMapper) found, or
    /// [`Kind::at`] a resource.
    pub fn resource(&self, kind: impl Into<Kind>) -> DynamicResource {
        DynamicResource {
            calls: self.calls.clone(),
            kind: kind.into(),
            subresource: None,
        }
    }
}

/// The objects of one kind; see [`DynamicClient::resource`].
///
/// # Examples
/// ```
/// use opkit_client::{DynamicResource, Patch, RequestError};
/// use serde_json::json;
///
/// async fn ready(robots: &DynamicResource) -> Result<(), RequestError> {
///     let status = json!({"status": {"ready": true}});
///     robots.subresource("status").patch("one", Patch::Merge(&status)).await?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct DynamicResource {
    calls: Calls,
    kind: Kind,
    subresource: Option<String>,
}

impl DynamicResource {
    /// Which kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// A part of the objects that has a path of its own, such as `status`, for get, update, patch
    /// and apply.
    pub fn subresource(&self, name: &str) -> Self {
        let mut part = self.clone();
        part.subresource = Some(name.to_owned());
        part
    }

    fn target<'a>(&'a self, key: &'a ObjectKey) -> Target<'a> {
        Target {
            kind: &self.kind,
            key,
            subresource: self.subresource.as_deref(),
        }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the call, as for every method here.
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get), as for every method here.
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<Unstructured, RequestError> {
        let key = self.calls.key(&self.kind, key);
        decode(self.calls.get(self.target(&key), JSON).await?)
    }

    /// Reads a collection: one page of it, if the options have a limit.
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn list(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<Unstructured>, RequestError> {
        let answered = self.calls.list(&self.kind, options, JSON).await?;
        let mut list: ObjectList<Unstructured> = decode(answered)?;
        // The items of built-in kinds do not say what they are.
        for item in &mut list.items {
            item.identify(&self.kind);
        }
        Ok(list)
    }

    /// Reads a collection page by page; see [`Client::list_all`](crate::Client::list_all).
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn list_all(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<Unstructured>, RequestError> {
        crate::client::all(options, async |options| self.list(&options).await).await
    }

    /// Follows a collection; see [`Client::watch`](crate::Client::watch).
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn watch(
        &self,
        options: &ListOptions,
    ) -> Result<
        impl futures::Stream<Item = Result<kube::core::WatchEvent<Unstructured>, RequestError>>
        + Send
        + Unpin
        + use<>,
        RequestError,
    > {
        let frames = self.calls.watch(&self.kind, options, Form::Json).await?;
        Ok(events(self.kind.clone(), options.namespace.clone(), frames))
    }

    /// Makes an object; fails if its name is taken.
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn create(&self, object: &Unstructured) -> Result<Unstructured, RequestError> {
        let key = self.calls.key(&self.kind, object.key());
        let payload = Payload {
            protobuf: None,
            json: &|| serde_json::to_vec(&object.identified(&self.kind)),
        };
        decode(self.calls.create(&self.kind, &key, payload).await?)
    }

    /// Replaces an object. If it carries a resourceVersion, only that version is replaced.
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn update(&self, object: &Unstructured) -> Result<Unstructured, RequestError> {
        let key = self.calls.key(&self.kind, object.key());
        let payload = Payload {
            protobuf: None,
            json: &|| serde_json::to_vec(&object.identified(&self.kind)),
        };
        decode(self.calls.update(self.target(&key), payload).await?)
    }

    /// Changes an object by a patch.
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn patch(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<Unstructured, RequestError> {
        let key = self.calls.key(&self.kind, key);
        decode(self.calls.patch(self.target(&key), patch, JSON).await?)
    }

    /// Applies an object; see [`Client::apply`](crate::Client::apply).
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn apply(&self, object: &Unstructured) -> Result<Unstructured, RequestError> {
        let key = self.calls.key(&self.kind, object.key());
        let configuration = configuration(&self.kind, serde_json::to_value(object));
        let configuration: Value = configuration.map_err(|cause| RequestError::Build {
            call: Box::new(Call::object(Verb::Patch, &self.kind, &key)),
            cause: cause.into(),
        })?;
        let patch = Patch::Apply(&configuration);
        decode(self.calls.patch(self.target(&key), patch, JSON).await?)
    }

    /// Deletes an object, and returns whether it is gone or stays for a while.
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn delete(
        &self,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<Deleted<Unstructured>, RequestError> {
        let key = self.calls.key(&self.kind, key);
        decode_deleted(self.calls.delete(self.target(&key), options).await?)
    }

    /// Deletes all objects that the list options select.
    ///
    /// # Errors
    /// As [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn delete_all(
        &self,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(), RequestError> {
        let mut list = list.clone();
        if self.kind.namespaced && list.namespace.is_none() {
            list.namespace = Some(self.calls.rest.kube().default_namespace().to_owned());
        }
        self.calls.delete_all(&self.kind, &list, options).await
    }
}

/// An unstructured object is JSON, so that is the form it is asked for in.
const JSON: &str = "application/json";
