//! The typed client: Rust types in, Rust types out.

mod limited;
mod list;
mod subresource;
pub mod verbs;
mod watch;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

pub use self::limited::TypedClient;
pub use self::list::ObjectList;
pub(crate) use self::list::all;
pub use self::subresource::SubresourceClient;
pub(crate) use self::watch::events;
use crate::calls::{Answered, Calls, Form, Payload, Target};
use crate::{
    DeleteOptions, Deleted, FieldValidation, Kind, ListOptions, Object, ObjectKey, Patch,
    RequestError, RestClient, WriteOptions, codec,
};

/// Reads and writes objects as Rust types. A key without a namespace is in that of the client.
/// Built-in kinds travel in protobuf where the server has it, all others in JSON.
///
/// What a controller-runtime user knows as `client.Client`, always asking the server. Cloning is
/// cheap.
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
///         answer => answer.map(drop),
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) calls: Calls,
}

impl Client {
    /// Sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        Self {
            calls: Calls::new(kube),
        }
    }

    /// The client that answers in bytes, for calls that this one has no word for.
    pub fn rest(&self) -> &RestClient {
        &self.calls.rest
    }

    /// kube's client below.
    pub fn kube(&self) -> kube::Client {
        self.calls.rest.kube()
    }

    /// This client, writing as `options` say.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.calls.write = options;
        self
    }

    /// This client, writing under a name of its own, which an apply needs.
    pub fn field_manager(mut self, name: &str) -> Self {
        self.calls.write.field_manager = Some(name.to_owned());
        self
    }

    /// This client, of which the server checks every write and keeps none.
    pub fn dry_run(mut self) -> Self {
        self.calls.write.dry_run = true;
        self
    }

    /// Whether the server keeps none of this client's writes.
    pub fn is_dry_run(&self) -> bool {
        self.calls.write.dry_run
    }

    /// This client, with what becomes of fields that the server does not know.
    pub fn field_validation(mut self, validation: FieldValidation) -> Self {
        self.calls.write.field_validation = Some(validation);
        self
    }

    /// This client, whose applies take fields from other owners.
    pub fn force(mut self) -> Self {
        self.calls.write.force = true;
        self
    }

    /// Reads an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the call, as for every method here;
    /// [`is_not_found`](RequestError::is_not_found) if there is none.
    ///
    /// # Cancel safety
    /// As for every method here: dropping the future drops the request; whether the server has
    /// acted on it is then unknown.
    pub async fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.calls.key(&kind, key);
        let target = whole(&kind, &key);
        decode(self.calls.get(target, codec::accept(&kind)).await?)
    }

    /// Reads an object, or nothing if there is none.
    ///
    /// # Errors
    /// As [`get`](Client::get), for any other reason.
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
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

    /// Reads a collection: one page of it, if the options have a limit.
    ///
    /// # Errors
    /// As [`get`](Client::get).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn list<K: Object>(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<K>, RequestError> {
        let kind = Kind::of::<K>();
        let accept = codec::accept(&kind);
        decode(self.calls.list(&kind, options, accept).await?)
    }

    /// Reads a collection page by page, 500 objects at a time unless the options say otherwise.
    /// If the server forgets the version of the first page underway, the rest is read at once in a
    /// newer one, as client-go does.
    ///
    /// # Errors
    /// As [`get`](Client::get).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn list_all<K: Object>(
        &self,
        options: &ListOptions,
    ) -> Result<ObjectList<K>, RequestError> {
        list::all(options, async |options| self.list(&options).await).await
    }

    /// Follows a collection from the version of the options on. The stream ends when the server
    /// ends the watch; an event that tells of an error, such as that the version is too old, is an
    /// error of the stream.
    ///
    /// # Errors
    /// As [`get`](Client::get), when the watch does not begin.
    ///
    /// # Cancel safety
    /// As [`get`](Client::get); the stream may be dropped at any time.
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
        let frames = self.calls.watch(&kind, options, Form::Typed).await?;
        Ok(events(kind, options.namespace.clone(), frames))
    }

    /// Makes an object; fails if its name is taken.
    ///
    /// # Errors
    /// As [`get`](Client::get); [`is_already_exists`](RequestError::is_already_exists).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn create<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.calls.key(&kind, ObjectKey::of(object.meta()));
        decode(
            self.calls
                .create(
                    &kind,
                    &key,
                    payload(&kind, object, &|| serde_json::to_vec(object)),
                )
                .await?,
        )
    }

    /// Replaces an object. If it carries a resourceVersion, only that version is replaced.
    ///
    /// # Errors
    /// As [`get`](Client::get); [`is_conflict`](RequestError::is_conflict).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn update<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        self.update_part(object, None).await
    }

    /// Changes an object by a patch.
    ///
    /// # Errors
    /// As [`get`](Client::get).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn patch<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError> {
        self.patch_part(key.into(), None, patch).await
    }

    /// Applies an object: its fields become as they are here and owned by the
    /// [field manager](Client::field_manager); what this manager had applied before and is not here
    /// goes. Makes the object if there is none.
    ///
    /// # Errors
    /// As [`get`](Client::get); [`is_conflict`](RequestError::is_conflict) if another manager owns
    /// a field, unless the client [forces](Client::force).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn apply<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        self.apply_part(object, None).await
    }

    /// Deletes an object, as its kind does by default, and returns whether it is gone or stays for
    /// a while. Only the object of this UID is deleted, not another one of its name.
    ///
    /// # Errors
    /// As [`get`](Client::get).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn delete<K: Object>(&self, object: &K) -> Result<Deleted<K>, RequestError> {
        let options = DeleteOptions {
            uid: object.meta().uid.clone(),
            ..Default::default()
        };
        let key = ObjectKey::of(object.meta());
        self.delete_with::<K>(key, &options).await
    }

    /// Deletes the object of a key, as the options say, and returns whether it is gone or stays for
    /// a while.
    ///
    /// # Errors
    /// As [`get`](Client::get); [`is_conflict`](RequestError::is_conflict) if a precondition does
    /// not hold. Also if the object stays and does not fit its type; it is being deleted then.
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn delete_with<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<Deleted<K>, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.calls.key(&kind, key);
        decode_deleted(self.calls.delete(whole(&kind, &key), options).await?)
    }

    /// Deletes all objects that the list options select, in one namespace: without one, those of
    /// the client's.
    ///
    /// # Errors
    /// As [`get`](Client::get).
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn delete_all<K: Object>(
        &self,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(), RequestError> {
        let kind = Kind::of::<K>();
        let mut list = list.clone();
        // A server has no such request over namespaces, and a whole cluster would be too easy.
        if kind.namespaced && list.namespace.is_none() {
            list.namespace = Some(self.kube().default_namespace().to_owned());
        }
        self.calls.delete_all(&kind, &list, options).await
    }

    /// Writes to `/status`.
    pub fn status(&self) -> SubresourceClient {
        self.subresource("status")
    }

    /// Reads and writes a part of objects that has a path of its own.
    pub fn subresource(&self, name: &str) -> SubresourceClient {
        SubresourceClient::new(self.clone(), name)
    }

    /// Reads and writes the scale of objects of a kind.
    pub fn scale<K: Object>(&self) -> crate::ScaleClient {
        crate::ScaleClient::from_calls(self.calls.clone(), Kind::of::<K>())
    }

    /// Asks for a Pod to be deleted, which a disruption budget may refuse.
    ///
    /// # Errors
    /// As [`get`](Client::get); [`is_too_many_requests`](RequestError::is_too_many_requests) if a
    /// budget does not allow it now.
    ///
    /// # Cancel safety
    /// As [`get`](Client::get).
    pub async fn evict(
        &self,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<(), RequestError> {
        let kind = Kind::of::<Pod>();
        let key = self.calls.key(&kind, key);
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "deleteOptions": options.body(&self.calls.write),
        });
        let target = part(&kind, &key, "eviction");
        self.calls.create_part(target, &eviction).await.map(drop)
    }

    async fn update_part<K: Object>(
        &self,
        object: &K,
        subresource: Option<&str>,
    ) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.calls.key(&kind, ObjectKey::of(object.meta()));
        let target = Target {
            subresource,
            ..whole(&kind, &key)
        };
        let json = || serde_json::to_vec(object);
        decode(
            self.calls
                .update(target, payload(&kind, object, &json))
                .await?,
        )
    }

    async fn patch_part<K: Object>(
        &self,
        key: ObjectKey,
        subresource: Option<&str>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.calls.key(&kind, key);
        let target = Target {
            subresource,
            ..whole(&kind, &key)
        };
        let accept = codec::accept(&kind);
        decode(self.calls.patch(target, patch, accept).await?)
    }

    async fn apply_part<K: Object>(
        &self,
        object: &K,
        subresource: Option<&str>,
    ) -> Result<K, RequestError> {
        let kind = Kind::of::<K>();
        let key = self.calls.key(&kind, ObjectKey::of(object.meta()));
        let configuration = configuration(&kind, serde_json::to_value(object));
        let configuration = configuration.map_err(|cause| RequestError::Build {
            call: Box::new(crate::Call::object(crate::Verb::Patch, &kind, &key)),
            cause: cause.into(),
        })?;
        let patch = Patch::Apply(&configuration);
        self.patch_part(key, subresource, patch).await
    }
}

/// What may be applied of an object: all but the fields that only the server writes.
pub(crate) fn configuration(
    kind: &Kind,
    object: Result<Value, serde_json::Error>,
) -> Result<Value, serde_json::Error> {
    let mut object = object?;
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

pub(crate) fn whole<'a>(kind: &'a Kind, key: &'a ObjectKey) -> Target<'a> {
    Target {
        kind,
        key,
        subresource: None,
    }
}

pub(crate) fn part<'a>(kind: &'a Kind, key: &'a ObjectKey, subresource: &'a str) -> Target<'a> {
    Target {
        kind,
        key,
        subresource: Some(subresource),
    }
}

fn payload<'a, K: Object>(
    kind: &Kind,
    object: &K,
    json: &'a dyn Fn() -> Result<Vec<u8>, serde_json::Error>,
) -> Payload<'a> {
    Payload {
        protobuf: codec::to_protobuf(kind, object),
        json,
    }
}

pub(crate) fn decode<T: serde::de::DeserializeOwned>(
    answered: Answered,
) -> Result<T, RequestError> {
    codec::decode(answered.call, &answered.page)
}

pub(crate) fn decode_deleted<T: serde::de::DeserializeOwned>(
    deleted: Deleted<Answered>,
) -> Result<Deleted<T>, RequestError> {
    match deleted {
        Deleted::Gone => Ok(Deleted::Gone),
        Deleted::Terminating(answered) => decode(answered).map(Deleted::Terminating),
    }
}

#[cfg(test)]
mod tests;
