//! A typed client of one kind, limited to a set of verbs.

use std::fmt;
use std::marker::PhantomData;

use super::{Client, ObjectList, verbs};
use crate::{
    DeleteOptions, Deleted, ListOptions, Object, ObjectKey, Patch, RequestError, ScaleClient,
};

/// Typed client of one kind. A call of a verb that `V` does not implement does not compile.
///
/// The derive `opkit::TypedClient` declares such a client for a custom resource. The limit only
/// applies to code that uses this client: other code of the same program may use a client with more
/// verbs.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{Client, RequestError, TypedClient, verbs};
///
/// struct ReadOnly;
/// impl verbs::Get for ReadOnly {}
/// impl verbs::List for ReadOnly {}
///
/// async fn read(client: Client) -> Result<ConfigMap, RequestError> {
///     TypedClient::<ConfigMap, ReadOnly>::new(client).get("settings").await
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use opkit_client::{Client, RequestError, TypedClient, verbs};
/// # struct ReadOnly;
/// # impl verbs::Get for ReadOnly {}
/// async fn write(client: Client, map: ConfigMap) -> Result<ConfigMap, RequestError> {
///     // error: this client may not `update`
///     TypedClient::<ConfigMap, ReadOnly>::new(client).update(&map).await
/// }
/// ```
pub struct TypedClient<K, V> {
    client: Client,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for TypedClient<K, V> {
    fn clone(&self) -> Self {
        let (client, of) = (self.client.clone(), PhantomData);
        Self { client, of }
    }
}

impl<K, V> fmt::Debug for TypedClient<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedClient").finish_non_exhaustive()
    }
}

impl<K: Object, V> TypedClient<K, V> {
    /// Creates a client that sends through `client` and uses the options of `client`.
    pub fn new(client: Client) -> Self {
        let of = PhantomData;
        Self { client, of }
    }

    /// Reads an object; see [`Client::get`].
    ///
    /// # Errors
    /// Same as [`Client::get`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<K, RequestError>
    where
        V: verbs::Get,
    {
        self.client.get(key).await
    }

    /// Reads an object, or returns `None` if the object does not exist; see [`Client::get_opt`].
    ///
    /// # Errors
    /// Same as [`Client::get_opt`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn get_opt(&self, key: impl Into<ObjectKey>) -> Result<Option<K>, RequestError>
    where
        V: verbs::Get,
    {
        self.client.get_opt(key).await
    }

    /// Reads a collection, or one page of it if the options have a limit; see [`Client::list`].
    ///
    /// # Errors
    /// Same as [`Client::list`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn list(&self, options: &ListOptions) -> Result<ObjectList<K>, RequestError>
    where
        V: verbs::List,
    {
        self.client.list(options).await
    }

    /// Reads a whole collection in pages; see [`Client::list_all`].
    ///
    /// # Errors
    /// Same as [`Client::list_all`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn list_all(&self, options: &ListOptions) -> Result<ObjectList<K>, RequestError>
    where
        V: verbs::List,
    {
        self.client.list_all(options).await
    }

    /// Watches a collection; see [`Client::watch`].
    ///
    /// # Errors
    /// Same as [`Client::watch`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn watch(
        &self,
        options: &ListOptions,
    ) -> Result<
        impl futures::Stream<Item = Result<kube::core::WatchEvent<K>, RequestError>>
        + Send
        + Unpin
        + use<K, V>,
        RequestError,
    >
    where
        V: verbs::Watch,
    {
        self.client.watch(options).await
    }

    /// Creates an object; see [`Client::create`].
    ///
    /// # Errors
    /// Same as [`Client::create`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn create(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Create,
    {
        self.client.create(object).await
    }

    /// Replaces an object; see [`Client::update`].
    ///
    /// # Errors
    /// Same as [`Client::update`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn update(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Update,
    {
        self.client.update(object).await
    }

    /// Patches an object; see [`Client::patch`].
    ///
    /// # Errors
    /// Same as [`Client::patch`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn patch(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError>
    where
        V: verbs::Patch,
    {
        self.client.patch(key, patch).await
    }

    /// Applies an object; see [`Client::apply`].
    ///
    /// # Errors
    /// Same as [`Client::apply`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn apply(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Patch,
    {
        self.client.apply(object).await
    }

    /// Deletes an object; see [`Client::delete`].
    ///
    /// # Errors
    /// Same as [`Client::delete`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn delete(&self, object: &K) -> Result<Deleted<K>, RequestError>
    where
        V: verbs::Delete,
    {
        self.client.delete(object).await
    }

    /// Deletes an object with options; see [`Client::delete_with`].
    ///
    /// # Errors
    /// Same as [`Client::delete_with`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn delete_with(
        &self,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<Deleted<K>, RequestError>
    where
        V: verbs::Delete,
    {
        self.client.delete_with::<K>(key, options).await
    }

    /// Deletes the selected objects of one namespace; see [`Client::delete_all`].
    ///
    /// # Errors
    /// Same as [`Client::delete_all`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn delete_all(
        &self,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(), RequestError>
    where
        V: verbs::DeleteCollection,
    {
        self.client.delete_all::<K>(list, options).await
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// Same as [`Client::update`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn update_status(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Status,
    {
        self.client.status().update(object).await
    }

    /// Patches the status of an object.
    ///
    /// # Errors
    /// Same as [`Client::patch`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn patch_status(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError>
    where
        V: verbs::Status,
    {
        self.client.status().patch(key, patch).await
    }

    /// Applies the status of an object.
    ///
    /// # Errors
    /// Same as [`Client::apply`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn apply_status(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Status,
    {
        self.client.status().apply(object).await
    }

    /// Returns a client of the subresource `scale` of this kind.
    pub fn scale(&self) -> ScaleClient
    where
        V: verbs::Scale,
    {
        self.client.scale::<K>()
    }
}
