//! The sink that writes into today's informer: a list is collected and replaces the store at its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use opkit_client::{Kind, ObjectKey, RestClient, one_line};
use serde::Deserialize;
use tracing::warn;

use super::{Reflector, ReflectorOptions};
use crate::informer::Change;
use crate::object::Codec;
use crate::random::Random;
use crate::sink::{Raw, ReadError, Sink};
use crate::store::{Entry, Version};
use crate::{DecodeError, Informer};

#[derive(Debug)]
pub(crate) struct InformerSink {
    informer: Informer,
    namespace: Option<String>,
    list: Vec<(ObjectKey, Entry)>,
    listed: bool,
}

impl Reflector<InformerSink> {
    pub(crate) fn new(
        client: RestClient,
        informer: Informer,
        namespace: Option<String>,
        random: Random,
    ) -> Self {
        let sink = InformerSink::new(informer, namespace.clone());
        let options = ReflectorOptions {
            namespace,
            ..Default::default()
        };
        Reflector::with_sink(client, sink, options, random)
    }
}

impl InformerSink {
    pub(crate) fn new(informer: Informer, namespace: Option<String>) -> Self {
        InformerSink {
            informer,
            namespace,
            list: Vec::new(),
            listed: false,
        }
    }
}

impl Sink for InformerSink {
    fn kind(&self) -> &Kind {
        self.informer.kind()
    }

    fn begin_list(&mut self) {
        self.list.clear();
    }

    fn listed(&mut self, object: Raw<'_>) -> Result<(), ReadError> {
        let read = read_object(self.informer.codec(), json(object))?;
        self.list.push(read);
        Ok(())
    }

    fn end_list(&mut self, resource_version: &str) {
        let list = std::mem::take(&mut self.list);
        let namespace = self.namespace.as_deref();
        let first = !std::mem::replace(&mut self.listed, true);
        self.informer
            .replace(namespace, list, resource_version, first);
    }

    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, ReadError> {
        let (key, entry) = read_object(self.informer.codec(), json(object))?;
        let version = entry.version().resource_version;
        let change = Change::Upsert(key, entry);
        self.informer
            .take(self.namespace.as_deref(), change, version.as_deref());
        Ok(version)
    }

    fn deleted(&mut self, object: Raw<'_>) -> Result<Option<String>, ReadError> {
        let head = head(json(object))?;
        let key = ObjectKey {
            namespace: head.namespace,
            name: head.name,
        };
        self.list.retain(|(listed, _)| *listed != key);
        let change = Change::Remove(key, head.uid);
        let version = head.resource_version;
        self.informer
            .take(self.namespace.as_deref(), change, version.as_deref());
        Ok(version)
    }

    fn bookmark(&mut self, resource_version: &str) {
        let namespace = self.namespace.as_deref();
        self.informer
            .take(namespace, Change::None, Some(resource_version));
    }

    fn set_last_error(&mut self, error: Option<String>) {
        self.informer.set_last_error(error);
    }
}

fn json(object: Raw<'_>) -> &[u8] {
    match object {
        Raw::Json(bytes) | Raw::Protobuf(bytes) => bytes,
    }
}

/// The part of any object that says which one it is.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta {
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
    resource_version: Option<String>,
}

fn head(json: &[u8]) -> Result<HeadMeta, ReadError> {
    let head = serde_json::from_slice::<Head>(json).map_err(ReadError::Json)?;
    Ok(head.metadata)
}

fn read_object(codec: &Codec, json: &[u8]) -> Result<(ObjectKey, Entry), ReadError> {
    // The type is the user's: a panic of its own is an error of this object as well.
    let decode = AssertUnwindSafe(|| (codec.decode)(json));
    let decoded = catch_unwind(decode)
        .unwrap_or_else(|_| Err(serde::de::Error::custom("its deserializer panicked")));
    match decoded {
        Ok(object) => Ok((ObjectKey::of(object.object_meta()), Entry::Object(object))),
        Err(cause) => {
            let HeadMeta {
                namespace,
                name,
                uid,
                resource_version,
            } = head(json)?;
            let key = ObjectKey { namespace, name };
            let error = Arc::new(DecodeError {
                kind: codec.kind.clone(),
                key: key.clone(),
                cause,
            });
            warn!(
                error = one_line(&*error),
                "skipping an object that does not fit its type"
            );
            let version = Version {
                uid,
                resource_version,
            };
            let entry = Entry::Unreadable {
                error,
                version,
                last: None,
            };
            Ok((key, entry))
        }
    }
}
