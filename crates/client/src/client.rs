//! The typed client: reads and writes objects as Rust types.

mod limited;
mod list;
mod subresource;
pub mod verbs;
mod watch;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

pub use self::limited::TypedClient;
pub use self::list::ObjectList;
pub(crate) use self::list::Pages;
pub use self::subresource::SubresourceClient;
pub(crate) use self::watch::events;
use crate::rest::{Payload, Target};
use crate::{
    ApplyConfiguration, Call, DeleteOptions, Deleted, FieldValidation, Kind, ListOptions, Object,
    ObjectKey, Patch, RequestError, Response, ResponseFormat, RestClient, Verb, WriteOptions,
    codec,
};

/// Typed client without a cache: each read is a request to the server. Corresponds to
/// controller-runtime's `client.Client`.
///
/// A key without a namespace gets the default namespace of the client. Built-in kinds are sent in
/// protobuf if the server supports it. All other kinds are sent in JSON. Cloning is cheap.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{Client, ListOptions, RequestError};
///
/// async fn tidy(kube: kube::Client) -> Result<(), RequestError> {
///     let client = Client::new(kube).field_manager("tidy");
///     let maps = client.list::<ConfigMap>(&ListOptions::new().labels("temporary=true")).await?;
///     for map in &maps.items {
///         client.delete(map).await?;
///     }
///     match client.get::<ConfigMap>(("shops", "settings")).await {
///         Err(error) if error.is_not_found() => Ok(()),
///         response => response.map(drop),
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    rest: RestClient,
    write: WriteOptions,
}

impl Client {
    /// Creates a client that sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        Self {
            rest: RestClient::new(kube),
            write: WriteOptions::default(),
        }
    }

    /// Returns the byte-level client, for requests that have no method in this client.
    pub fn rest(&self) -> &RestClient {
        &self.rest
    }

    /// Returns the kube client that requests are sent through.
    pub fn kube(&self) -> kube::Client {
        self.rest.kube()
    }

    /// Sets the options of all writes.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.write = options;
        self
    }

    /// Sets the field manager of all writes. An apply requires a field manager.
    pub fn field_manager(mut self, name: &str) -> Self {
        self.write.field_manager = Some(name.to_owned());
        self
    }

    /// Makes all writes dry runs: the server validates each write, but stores nothing.
    pub fn dry_run(mut self) -> Self {
        self.write.dry_run = true;
        self
    }

    /// Reports whether all writes of this client are dry runs, which the server does not store.
    pub fn is_dry_run(&self) -> bool {
        self.write.dry_run
    }

    /// Sets the treatment of fields that the server does not know.
    pub fn field_validation(mut self, validation: FieldValidation) -> Self {
        self.write.field_validation = Some(validation);
        self
    }

    /// Makes each apply take fields from other field managers instead of failing with a conflict.
    pub fn force(mut self) -> Self {
        self.write.force = true;
        self
    }

    /// Reads an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the request, as for every method of this client;
    /// [`is_not_found`](RequestError::is_not_found) if the object does not exist.
    ///
    /// # Cancel safety
    /// Dropping the future drops the request. Whether the server has acted on the request is then
    /// unknown. This holds for every method of this client.
    pub async fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.rest.key(&kind, key);
        let target = Target::object(&kind, &key);
        let response = self.rest.verbs().get(target, Some(codec::format(&kind)));
        response.await?.decode()
    }

    /// Reads an object. Returns `None` if the object does not exist.
    ///
    /// # Errors
    /// Same as [`get`](Client::get), except that a missing object is not an error.
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn get_opt<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<K>, RequestError> {
        match self.get(key).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a collection, or one page of it if the options have a limit.
    ///
    /// # Errors
    /// Same as [`get`](Client::get).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn list<K: Object>(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<K>, RequestError> {
        let kind = Kind::of::<K>();
        let format = codec::format(&kind);
        let response = self.rest.verbs().list(&kind, options, format);
        response.await?.decode()
    }

    /// Reads a whole collection in pages. A page has 500 objects unless the options set a limit. If
    /// the server compacts the resourceVersion of the first page before the last page is read,
    /// reads all objects again in one response, as client-go does.
    ///
    /// # Errors
    /// Same as [`get`](Client::get).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn list_all<K: Object>(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<K>, RequestError> {
        let mut pages = Pages::new(options);
        loop {
            let page = self.list(pages.next()).await;
            if let Some(whole) = pages.add(page)? {
                return Ok(whole);
            }
        }
    }

    /// Watches a collection, starting after the resourceVersion in the options. The stream ends
    /// when the server ends the watch. An event of type `ERROR`, such as for a resourceVersion that
    /// is too old, is an error in the stream.
    ///
    /// # Errors
    /// Same as [`get`](Client::get), if the watch does not start.
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get). The stream may be dropped at any time.
    pub async fn watch<K: Object>(
        &self,
        options: &ListOptions,
    ) -> Result<
        impl futures::Stream<Item = Result<kube::core::WatchEvent<K>, RequestError>>
        + Send
        + Unpin
        + use<K>,
        RequestError,
    > {
        let kind = Kind::of::<K>();
        let format = codec::format(&kind);
        let frames = self.rest.verbs().watch(&kind, options, format).await?;
        Ok(events(frames))
    }

    /// Creates an object. Fails if an object with the same name exists.
    ///
    /// # Errors
    /// Same as [`get`](Client::get); [`is_already_exists`](RequestError::is_already_exists).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn create<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.rest.key(&kind, ObjectKey::of(object.meta()));
        let payload = Payload {
            protobuf: codec::to_protobuf(&kind, object),
            json: &|| serde_json::to_vec(object),
        };
        let (verbs, format) = (self.rest.verbs(), Some(codec::format(&kind)));
        let response = verbs.create(&kind, &key, payload, format, &self.write);
        response.await?.decode()
    }

    /// Replaces an object. Fails with a conflict if `object` has a resourceVersion that is not the
    /// newest.
    ///
    /// # Errors
    /// Same as [`get`](Client::get); [`is_conflict`](RequestError::is_conflict).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn update<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        self.update_subresource(object, None).await
    }

    /// Patches an object.
    ///
    /// # Errors
    /// Same as [`get`](Client::get).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn patch<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError> {
        self.patch_subresource(key.into(), None, patch).await
    }

    /// Applies an object with server-side apply. The server sets the fields of the object, with the
    /// client's [field manager](Client::field_manager) as owner, and removes fields that the same
    /// manager applied before and that are now missing. Creates the object if it does not exist.
    ///
    /// # Errors
    /// Same as [`get`](Client::get); [`is_conflict`](RequestError::is_conflict) if another manager
    /// owns a field, unless the client [forces](Client::force).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn apply<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        self.apply_subresource(object, None).await
    }

    /// Applies only the fields that an apply configuration sets; see [`apply`](Client::apply).
    ///
    /// # Errors
    /// Same as [`apply`](Client::apply).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn apply_configuration<A: ApplyConfiguration>(
        &self,
        configuration: &A,
    ) -> Result<A::Object, RequestError> {
        self.apply_part(configuration, None).await
    }

    /// Deletes an object with the default options of its kind. Returns [`Deleted::Gone`], or
    /// [`Deleted::Terminating`] with the object if finalizers or a grace period delay the removal.
    /// Fails with a conflict if the server has an object with the same name but another UID.
    ///
    /// # Errors
    /// Same as [`get`](Client::get).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn delete<K: Object>(&self, object: &K) -> Result<Deleted<K>, RequestError> {
        let options = DeleteOptions {
            uid: object.meta().uid.clone(),
            ..DeleteOptions::default()
        };
        let key = ObjectKey::of(object.meta());
        self.delete_with::<K>(key, &options).await
    }

    /// Deletes an object with options. Returns [`Deleted::Gone`], or [`Deleted::Terminating`] with
    /// the object if finalizers or a grace period delay the removal.
    ///
    /// # Errors
    /// Same as [`get`](Client::get); [`is_conflict`](RequestError::is_conflict) if a precondition
    /// does not hold. Also fails if the removal is delayed and the returned object cannot be
    /// decoded as `K`; the server still deletes the object.
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn delete_with<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<Deleted<K>, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.rest.key(&kind, key);
        let (verbs, format) = (self.rest.verbs(), Some(ResponseFormat::default()));
        let target = Target::object(&kind, &key);
        let deleted = verbs.delete(target, options, format, &self.write).await?;
        decode_deleted(deleted)
    }

    /// Deletes the selected objects of one namespace. If the options have no namespace, the default
    /// namespace of the client is used.
    ///
    /// # Errors
    /// Same as [`get`](Client::get).
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn delete_all<K: Object>(
        &self,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(), RequestError> {
        let (verbs, kind) = (self.rest.verbs(), Kind::of::<K>());
        let deletion = verbs.delete_collection(&kind, list, options, &self.write);
        deletion.await
    }

    /// Returns a client of the subresource `status`.
    pub fn status(&self) -> SubresourceClient {
        self.subresource("status")
    }

    /// Returns a client of a subresource.
    pub fn subresource(&self, name: &str) -> SubresourceClient {
        SubresourceClient::new(self.clone(), name)
    }

    /// Returns a client of the subresource `scale` of a kind.
    pub fn scale<K: Object>(&self) -> crate::ScaleClient {
        let (rest, write) = (self.rest.clone(), self.write.clone());
        crate::ScaleClient::from_parts(rest, write, Kind::of::<K>())
    }

    /// Evicts a Pod: deletes the Pod unless a PodDisruptionBudget forbids the deletion.
    ///
    /// # Errors
    /// Same as [`get`](Client::get); [`is_too_many_requests`](RequestError::is_too_many_requests)
    /// if a PodDisruptionBudget currently forbids the deletion.
    ///
    /// # Cancel safety
    /// Same as [`get`](Client::get).
    pub async fn evict(
        &self,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<(), RequestError> {
        let kind = Kind::of::<Pod>();
        let key = self.rest.key(&kind, key);
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "deleteOptions": options.body(&self.write),
        });
        let target = Target::object(&kind, &key).subresource("eviction");
        let verbs = self.rest.verbs();
        let created = verbs.create_subresource(target, &eviction, &self.write);
        created.await.map(drop)
    }

    async fn update_subresource<K: Object>(
        &self,
        object: &K,
        subresource: Option<&str>,
    ) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.rest.key(&kind, ObjectKey::of(object.meta()));
        let target = Target {
            subresource,
            ..Target::object(&kind, &key)
        };
        let payload = Payload {
            protobuf: codec::to_protobuf(&kind, object),
            json: &|| serde_json::to_vec(object),
        };
        let response = self.rest.verbs().update(target, payload, &self.write);
        response.await?.decode()
    }

    async fn patch_subresource<K: Object>(
        &self,
        key: ObjectKey,
        subresource: Option<&str>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.rest.key(&kind, key);
        let target = Target {
            subresource,
            ..Target::object(&kind, &key)
        };
        let format = Some(codec::format(&kind));
        let response = self.rest.verbs().patch(target, patch, format, &self.write);
        response.await?.decode()
    }

    async fn apply_part<A: ApplyConfiguration>(
        &self,
        configuration: &A,
        subresource: Option<&str>,
    ) -> Result<A::Object, RequestError> {
        let kind = Kind::of::<A::Object>();
        let key = self
            .rest
            .key(&kind, ObjectKey::of(configuration.metadata()));
        let body = apply_configuration(&kind, &key, serde_json::to_value(configuration))?;
        self.patch_subresource(key, subresource, Patch::Apply(&body))
            .await
    }

    async fn apply_subresource<K: Object>(
        &self,
        object: &K,
        subresource: Option<&str>,
    ) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.rest.key(&kind, ObjectKey::of(object.meta()));
        let configuration = apply_configuration(&kind, &key, serde_json::to_value(object))?;
        let patch = Patch::Apply(&configuration);
        self.patch_subresource(key, subresource, patch).await
    }
}

/// Converts an object into the body of an apply. Sets `apiVersion` and `kind`, and removes
/// `managedFields`, which the server refuses in an apply.
pub(crate) fn apply_configuration(
    kind: &Kind,
    key: &ObjectKey,
    object: Result<Value, serde_json::Error>,
) -> Result<Value, RequestError> {
    let mut object = object.map_err(|cause| RequestError::Build {
        call: Box::new(Call::object(Verb::Patch, kind, key)),
        cause: cause.into(),
    })?;
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        if !kind.kind.is_empty() {
            fields.insert("kind".to_owned(), kind.kind.clone().into());
        }
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    Ok(object)
}

pub(crate) fn decode_deleted<T: serde::de::DeserializeOwned>(
    deleted: Deleted<Response>,
) -> Result<Deleted<T>, RequestError> {
    match deleted {
        Deleted::Gone => Ok(Deleted::Gone),
        Deleted::Terminating(response) => response.decode().map(Deleted::Terminating),
    }
}

#[cfg(test)]
mod tests;
