//! Views of stored objects: the bytes of responses, lists and watch frames, in the API version, the
//! representation and the media type of a request.
//!
//! In JSON, whole objects and their metadata are copied from the stored text. In protobuf, whole
//! objects are encoded once, and then copied as well. All other views decode one object at a time.

mod chunks;

use std::sync::Arc;

use bytes::Bytes;
use opkit_apimachinery::protobuf::{self, ENVELOPE_END, ProtobufError, WatchEventParts};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::kinds::Kind;
use crate::negotiation::Media;
use crate::object;
use crate::registry::{Registry, from_storage, is_stored_form};
use crate::representation::Representation;
use crate::status::{ApiError, ApiResult};
use crate::store::{Budget, Stored};
use crate::table::Columns;

pub(crate) use chunks::Chunks;

/// The start of the JSON of a `PartialObjectMetadata`, before the metadata.
const PARTIAL_METADATA: &str =
    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";

/// Number of objects of a list that are encoded before other tasks of the runtime run, which takes
/// about 1 ms.
const ENCODED_AT_ONCE: usize = 32;

/// The form in which one response or watch shows stored objects.
#[derive(Clone, Debug)]
pub(crate) struct View {
    kind: Arc<Kind>,
    representation: Representation,
    media: Media,
    /// The start of the JSON of an object in the API version of the request, up to the metadata.
    start: String,
    budget: Arc<Budget>,
    clock: Clock,
}

impl View {
    pub(crate) fn new(
        registry: &Registry,
        kind: &Arc<Kind>,
        representation: Representation,
        media: Media,
    ) -> Self {
        let start = format!(
            "{{\"kind\":{},\"apiVersion\":{},",
            json!(kind.kind),
            json!(kind.api_version())
        );
        Self {
            kind: kind.clone(),
            representation,
            media,
            start,
            budget: registry.store.budget().clone(),
            clock: registry.clock,
        }
    }

    /// Returns the body of a response with one stored object.
    pub(crate) fn object(&self, stored: &Stored) -> ApiResult<Bytes> {
        match self.media {
            Media::Json => {
                let mut out = Vec::with_capacity(stored.json().len() + 64);
                self.append_json(stored, &mut out);
                Ok(out.into())
            }
            Media::Protobuf => self.protobuf(stored).map(Bytes::from),
            Media::Yaml => self.media.encode(&self.value(stored)),
        }
    }

    /// Returns the body of a response with one object that is not stored.
    pub(crate) fn unstored(&self, object: Value) -> Value {
        self.representation
            .of_object(&self.kind, object, self.clock.now())
    }

    /// Returns a frame of a watch with the event of a stored object. Only the first Table of a
    /// watch has column definitions.
    pub(crate) fn frame(&self, type_: &str, stored: &Stored, is_first: bool) -> ApiResult<Bytes> {
        if matches!(self.representation, Representation::Table { .. }) {
            let mut table = self.value(stored);
            if !is_first {
                object::set_field(&mut table, "columnDefinitions", Value::Null);
            }
            return self.value_frame(type_, &table);
        }
        match self.media {
            Media::Protobuf => protobuf_frame(type_, &self.protobuf(stored)?),
            Media::Json | Media::Yaml => {
                let mut out = Vec::with_capacity(stored.json().len() + 96);
                out.extend_from_slice(b"{\"type\":\"");
                out.extend_from_slice(type_.as_bytes());
                out.extend_from_slice(b"\",\"object\":");
                self.append_json(stored, &mut out);
                out.extend_from_slice(b"}\n");
                Ok(out.into())
            }
        }
    }

    /// Returns a frame of a watch with a bookmark.
    pub(crate) fn bookmark_frame(&self, object: Value) -> ApiResult<Bytes> {
        let object = self.representation.of_bookmark(&self.kind, object);
        self.value_frame("BOOKMARK", &object)
    }

    /// Returns a frame of a watch with this object, in no representation.
    pub(crate) fn value_frame(&self, type_: &str, object: &Value) -> ApiResult<Bytes> {
        match self.media {
            Media::Protobuf => protobuf_frame(type_, &self.media.encode(object)?),
            Media::Json | Media::Yaml => {
                let mut text = json!({"type": type_, "object": object}).to_string();
                text.push('\n');
                Ok(text.into())
            }
        }
    }

    /// Returns the body of a response with a list that has this metadata.
    pub(crate) async fn list(
        &self,
        objects: Vec<Arc<Stored>>,
        metadata: Value,
    ) -> ApiResult<Chunks> {
        let (list, field) =
            self.representation
                .list_without_items(&self.kind, metadata, self.clock.now());
        match self.media {
            Media::Json => Ok(self.json_list(objects, &list, field)),
            Media::Protobuf if self.is_whole_object() => self.protobuf_list(objects, &list).await,
            Media::Protobuf | Media::Yaml => {
                let columns = self.columns();
                let items = objects.iter().map(|stored| self.item(stored, &columns));
                let items: Vec<Value> = items.collect();
                let mut list = list;
                object::set_field(&mut list, field, items.into());
                Ok(Chunks::one(self.media.encode(&list)?))
            }
        }
    }

    fn json_list(&self, objects: Vec<Arc<Stored>>, list: &Value, field: &str) -> Chunks {
        let mut start = list.to_string();
        // The closing brace comes after the items.
        start.pop();
        start.push_str(&format!(",\"{field}\":["));
        let view = self.clone();
        let columns = self.columns();
        let mut objects = objects.into_iter();
        let mut is_first = true;
        let append = move |out: &mut Vec<u8>| {
            let Some(stored) = objects.next() else {
                return false;
            };
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            view.append_item(&stored, &columns, out);
            true
        };
        Chunks::new(start.into_bytes(), append, b"]}")
    }

    /// Returns a list in protobuf. The envelope contains the length of the list, so all items are
    /// encoded before the first chunk.
    async fn protobuf_list(&self, objects: Vec<Arc<Stored>>, list: &Value) -> ApiResult<Chunks> {
        let mut start = protobuf::encode_message(list).map_err(encoding_failed)?;
        let mut length = start.len();
        let mut items = Vec::with_capacity(objects.len());
        for stored in objects {
            if items.len() % ENCODED_AT_ONCE == ENCODED_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let message = match self.has_stored_version(&stored) {
                true => match stored.protobuf(&self.budget).map_err(encoding_failed)? {
                    std::borrow::Cow::Borrowed(_) => None,
                    std::borrow::Cow::Owned(message) => Some(message),
                },
                false => {
                    Some(protobuf::encode_message(&self.value(&stored)).map_err(encoding_failed)?)
                }
            };
            let size = match &message {
                Some(message) => message.len(),
                None => stored.kept_protobuf().len(),
            };
            length += protobuf::item_length(size);
            items.push((stored, message));
        }
        let kind = object::text(list, &["kind"]);
        let version = object::text(list, &["apiVersion"]);
        let mut envelope = protobuf::envelope_start(version, kind, length);
        envelope.append(&mut start);
        let mut items = items.into_iter();
        let append = move |out: &mut Vec<u8>| {
            let Some((stored, message)) = items.next() else {
                return false;
            };
            let message = message.as_deref().unwrap_or_else(|| stored.kept_protobuf());
            protobuf::append_item(out, message);
            true
        };
        Ok(Chunks::new(envelope, append, ENVELOPE_END))
    }

    /// Reports whether the view shows whole objects.
    fn is_whole_object(&self) -> bool {
        self.representation == Representation::Object
    }

    /// Appends the JSON of an object as the body of a response.
    fn append_json(&self, stored: &Stored, out: &mut Vec<u8>) {
        match self.representation {
            Representation::Object | Representation::PartialObjectMetadataList
                if is_stored_form(&self.kind) =>
            {
                out.extend_from_slice(self.start.as_bytes());
                out.extend_from_slice(stored.json_from_metadata().as_bytes());
            }
            Representation::PartialObjectMetadata => append_partial_metadata(stored, out),
            _ => append_value(&self.value(stored), out),
        }
    }

    /// Appends the JSON of an item of a list.
    fn append_item(&self, stored: &Stored, columns: &Option<Columns>, out: &mut Vec<u8>) {
        match self.representation {
            Representation::Object if is_stored_form(&self.kind) => {
                // As in Kubernetes, items in lists of built-in kinds have no apiVersion and kind.
                let start = match self.kind.is_custom() {
                    true => self.start.as_str(),
                    false => "{",
                };
                out.extend_from_slice(start.as_bytes());
                out.extend_from_slice(stored.json_from_metadata().as_bytes());
            }
            Representation::PartialObjectMetadata | Representation::PartialObjectMetadataList => {
                append_partial_metadata(stored, out);
            }
            _ => append_value(&self.item(stored, columns), out),
        }
    }

    /// Returns an object as the body of a response.
    fn value(&self, stored: &Stored) -> Value {
        self.unstored(from_storage(&self.kind, stored.decode()))
    }

    /// Returns an item of a list.
    fn item(&self, stored: &Stored, columns: &Option<Columns>) -> Value {
        let object = from_storage(&self.kind, stored.decode());
        match columns {
            Some(columns) => columns.row(&object),
            None => self.representation.of_item(&self.kind, object),
        }
    }

    /// Returns the columns, if the view is a Table.
    fn columns(&self) -> Option<Columns> {
        match self.representation {
            Representation::Table { include } => {
                Some(Columns::new(&self.kind, include, self.clock.now()))
            }
            _ => None,
        }
    }

    /// Returns the body of a response with one object in protobuf, with its envelope.
    fn protobuf(&self, stored: &Stored) -> ApiResult<Vec<u8>> {
        if !self.is_whole_object() || !self.has_stored_version(stored) {
            return protobuf::encode(&self.value(stored)).map_err(encoding_failed);
        }
        let message = stored.protobuf(&self.budget).map_err(encoding_failed)?;
        let version = self.kind.api_version();
        let start = protobuf::envelope_start(&version, &self.kind.kind, message.len());
        Ok([&start, message.as_ref(), ENVELOPE_END].concat())
    }

    /// Reports whether the view shows objects in the version in which `stored` is stored.
    fn has_stored_version(&self, stored: &Stored) -> bool {
        is_stored_form(&self.kind) && stored.json().starts_with(&self.start)
    }
}

fn append_partial_metadata(stored: &Stored, out: &mut Vec<u8>) {
    out.extend_from_slice(PARTIAL_METADATA.as_bytes());
    out.extend_from_slice(stored.metadata_json().as_bytes());
    out.push(b'}');
}

fn append_value(value: &Value, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "a JSON value can be written to memory");
}

fn encoding_failed(error: ProtobufError) -> ApiError {
    ApiError::internal(format!("cannot encode the response: {error}"))
}

/// Returns a protobuf frame: the length of the `WatchEvent` in four bytes, followed by the
/// `WatchEvent`. `object` has its own protobuf envelope.
fn protobuf_frame(type_: &str, object: &[u8]) -> ApiResult<Bytes> {
    let event = WatchEventParts { type_, object }.to_vec();
    let length = u32::try_from(event.len())
        .map_err(|_| ApiError::internal("an event of more than 4 GiB"))?;
    Ok([&length.to_be_bytes(), event.as_slice()].concat().into())
}
