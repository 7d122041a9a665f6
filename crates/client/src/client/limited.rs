//! A typed client of one kind, with no more verbs than it was given.

use std::fmt;
use std::marker::PhantomData;

use super::{Client, ObjectList, verbs};
use crate::{
    DeleteOptions, Deleted, ListOptions, Object, ObjectKey, Patch, RequestError, ScaleClient,
};

/// Reads and writes objects of one kind; a verb that `V` does not list does not compile.
///
/// The derive `opkit::TypedClient` makes one for a custom resource. It limits what code can do, as
/// a role limits what a program can do; it is no protection from other code of the same program.
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
    /// Sends through `client`, with its options.
    pub fn new(client: Client) -> Self {
        let of = PhantomData;
        Self { client, of }
    }

    /// As [`Client::get`].
    ///
    /// # Errors
    /// As [`Client::get`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<K, RequestError>
    where
        V: verbs::Get,
    {
        self.client.get(key).await
    }

    /// As [`Client::get_opt`].
    ///
    /// # Errors
    /// As [`Client::get_opt`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn get_opt(&self, key: impl Into<ObjectKey>) -> Result<Option<K>, RequestError>
    where
        V: verbs::Get,
    {
        self.client.get_opt(key).await
    }

    /// As [`Client::list`].
    ///
    /// # Errors
    /// As [`Client::list`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn list(&self, options: &ListOptions) -> Result<ObjectList<K>, RequestError>
    where
        V: verbs::List,
    {
        self.client.list(options).await
    }

    /// As [`Client::list_all`].
    ///
    /// # Errors
    /// As [`Client::list_all`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn list_all(&self, options: &ListOptions) -> Result<ObjectList<K>, RequestError>
    where
        V: verbs::List,
    {
        self.client.list_all(options).await
    }

    /// As [`Client::watch`].
    ///
    /// # Errors
    /// As [`Client::watch`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
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

    /// As [`Client::create`].
    ///
    /// # Errors
    /// As [`Client::create`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn create(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Create,
    {
        self.client.create(object).await
    }

    /// As [`Client::update`].
    ///
    /// # Errors
    /// As [`Client::update`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn update(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Update,
    {
        self.client.update(object).await
    }

    /// As [`Client::patch`].
    ///
    /// # Errors
    /// As [`Client::patch`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
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

    /// As [`Client::apply`].
    ///
    /// # Errors
    /// As [`Client::apply`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn apply(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Patch,
    {
        self.client.apply(object).await
    }

    /// As [`Client::delete`].
    ///
    /// # Errors
    /// As [`Client::delete`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn delete(&self, object: &K) -> Result<Deleted<K>, RequestError>
    where
        V: verbs::Delete,
    {
        self.client.delete(object).await
    }

    /// As [`Client::delete_with`].
    ///
    /// # Errors
    /// As [`Client::delete_with`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
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

    /// As [`Client::delete_all`].
    ///
    /// # Errors
    /// As [`Client::delete_all`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
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

    /// As [`Client::update`].
    ///
    /// # Errors
    /// As [`Client::update`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn update_status(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Status,
    {
        self.client.status().update(object).await
    }

    /// As [`Client::patch`].
    ///
    /// # Errors
    /// As [`Client::patch`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
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

    /// As [`Client::apply`].
    ///
    /// # Errors
    /// As [`Client::apply`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn apply_status(&self, object: &K) -> Result<K, RequestError>
    where
        V: verbs::Status,
    {
        self.client.status().apply(object).await
    }

    /// Reads and writes the scale.
    pub fn scale(&self) -> ScaleClient
    where
        V: verbs::Scale,
    {
        self.client.scale::<K>()
    }
}
