//! The dynamic client, for kinds that are known only at run time.

mod unstructured;

pub use self::unstructured::{NotAnObject, Unstructured};
use crate::client::{ObjectList, Pages, apply_configuration, decode_deleted, events};
use crate::rest::{Payload, Target};
use crate::{
    DeleteOptions, Deleted, Kind, ListOptions, ObjectKey, Patch, RequestError, ResponseFormat,
    RestClient, WriteOptions, codec,
};

/// Format of the requested objects: JSON, because [`Unstructured`] holds JSON.
const JSON: ResponseFormat = ResponseFormat {
    metadata_only: false,
    protobuf: false,
};

/// Client that reads and writes objects of any kind as [`Unstructured`].
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
    rest: RestClient,
    write: WriteOptions,
}

impl DynamicClient {
    /// Creates a client that sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        Self {
            rest: RestClient::new(kube),
            write: WriteOptions::default(),
        }
    }

    /// Sets the options of all writes.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.write = options;
        self
    }

    /// Returns a client of the objects of one kind. A [`RestMapper`](crate::RestMapper) finds the
    /// kind of a resource; [`Kind::at`] creates a kind without a request to the server.
    pub fn resource(&self, kind: impl Into<Kind>) -> DynamicResource {
        DynamicResource {
            client: self.clone(),
            kind: kind.into(),
            subresource: None,
        }
    }
}

/// Dynamic client of the objects of one kind; see [`DynamicClient::resource`].
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
    client: DynamicClient,
    kind: Kind,
    subresource: Option<String>,
}

impl DynamicResource {
    /// Returns the kind of the objects.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns a client of a subresource, such as `status`. The methods `get`, `update`, `patch`
    /// and `apply` of the new client read and write the subresource.
    pub fn subresource(&self, name: &str) -> Self {
        let mut resource = self.clone();
        resource.subresource = Some(name.to_owned());
        resource
    }

    fn key(&self, key: impl Into<ObjectKey>) -> ObjectKey {
        self.client.rest.key(&self.kind, key)
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
    /// A [`RequestError`] that names the request, as for every method of this type.
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get), as for every method of this type.
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<Unstructured, RequestError> {
        let key = self.key(key);
        let verbs = self.client.rest.verbs();
        verbs.get(self.target(&key), Some(JSON)).await?.decode()
    }

    /// Reads a collection, or one page of it if the options have a limit.
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn list(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<Unstructured>, RequestError> {
        let verbs = self.client.rest.verbs();
        let response = verbs.list(&self.kind, options, JSON).await?;
        let mut list: ObjectList<Unstructured> = response.decode()?;
        // The items of a list of a built-in kind have no apiVersion and kind.
        for item in &mut list.items {
            item.set_kind_if_missing(&self.kind);
        }
        Ok(list)
    }

    /// Reads a whole collection in pages; see [`Client::list_all`](crate::Client::list_all).
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn list_all(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<Unstructured>, RequestError> {
        let mut pages = Pages::new(options);
        loop {
            let page = self.list(pages.next()).await;
            if let Some(whole) = pages.add(page)? {
                return Ok(whole);
            }
        }
    }

    /// Watches a collection; see [`Client::watch`](crate::Client::watch).
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
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
        let verbs = self.client.rest.verbs();
        Ok(events(verbs.watch(&self.kind, options, JSON).await?))
    }

    /// Creates an object. Fails if an object with the same name exists.
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn create(&self, object: &Unstructured) -> Result<Unstructured, RequestError> {
        let key = self.key(object.key());
        let payload = Payload {
            protobuf: None,
            json: &|| serde_json::to_vec(&object.with_kind(&self.kind)),
        };
        let DynamicClient { rest, write } = &self.client;
        let (verbs, format) = (rest.verbs(), Some(codec::format(&self.kind)));
        let response = verbs.create(&self.kind, &key, payload, format, write);
        response.await?.decode()
    }

    /// Replaces an object. Fails with a conflict if `object` has a resourceVersion that is not the
    /// newest.
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn update(&self, object: &Unstructured) -> Result<Unstructured, RequestError> {
        let key = self.key(object.key());
        let payload = Payload {
            protobuf: None,
            json: &|| serde_json::to_vec(&object.with_kind(&self.kind)),
        };
        let DynamicClient { rest, write } = &self.client;
        let response = rest.verbs().update(self.target(&key), payload, write);
        response.await?.decode()
    }

    /// Patches an object.
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn patch(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<Unstructured, RequestError> {
        self.send_patch(&self.key(key), patch).await
    }

    /// Applies an object; see [`Client::apply`](crate::Client::apply).
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn apply(&self, object: &Unstructured) -> Result<Unstructured, RequestError> {
        let key = self.key(object.key());
        let value = serde_json::to_value(object);
        let configuration = apply_configuration(&self.kind, &key, value)?;
        self.send_patch(&key, Patch::Apply(&configuration)).await
    }

    async fn send_patch(
        &self,
        key: &ObjectKey,
        patch: Patch<'_>,
    ) -> Result<Unstructured, RequestError> {
        let DynamicClient { rest, write } = &self.client;
        let response = rest
            .verbs()
            .patch(self.target(key), patch, Some(JSON), write);
        response.await?.decode()
    }

    /// Deletes an object. Returns [`Deleted::Gone`], or [`Deleted::Terminating`] with the object if
    /// finalizers or a grace period delay the removal.
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn delete(
        &self,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<Deleted<Unstructured>, RequestError> {
        let key = self.key(key);
        let DynamicClient { rest, write } = &self.client;
        let target = self.target(&key);
        decode_deleted(
            rest.verbs()
                .delete(target, options, Some(JSON), write)
                .await?,
        )
    }

    /// Deletes the selected objects of one namespace. If the options have no namespace, the default
    /// namespace of the client is used.
    ///
    /// # Errors
    /// Same as [`get`](DynamicResource::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn delete_all(
        &self,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(), RequestError> {
        let DynamicClient { rest, write } = &self.client;
        let deletion = rest
            .verbs()
            .delete_collection(&self.kind, list, options, write);
        deletion.await
    }
}
