//! Writer of an informer: encodes received bytes into stored objects.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use memchr::memmem;
use opkit_apimachinery::protobuf::{self, MessageType};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Value, json};

use crate::object::Codec;
use crate::options::InformerOptions;
use crate::pool::Pool;
use crate::record::{Counts, Origin, number_of};
use crate::sink::{HeadError, Raw};
use crate::tape::encoder::Encoder;
use crate::tape::head::Head;
use crate::tape::strings::{Interner, Vocabulary};
use crate::tape::{self, visit};
use crate::{StoreForm, Stored};

/// Memory of the shared strings, in bytes, below which they are not replaced by a new set of
/// strings.
const STRINGS_MIN: usize = 4 << 20;

/// Encoder of received objects, which refer to the current set of shared strings.
#[derive(Debug)]
pub(crate) struct Writer {
    origin: Arc<Origin>,
    interner: Interner,
    scratch: Vec<u8>,
    /// Memory of the shared strings, in bytes, at which a new set of strings is started.
    limit: usize,
    form: StoreForm,
    message: Option<MessageType>,
}

impl Writer {
    pub(crate) fn new(codec: Arc<Codec>, options: &InformerOptions) -> Self {
        let message = codec.message(options.metadata_only);
        let origin = Origin {
            codec,
            vocabulary: Vocabulary::default(),
            pool: Arc::new(Pool::new(options.pool_bytes)),
            counts: Arc::new(Counts::default()),
        };
        Self {
            origin: Arc::new(origin),
            interner: Interner::new(),
            scratch: Vec::new(),
            limit: STRINGS_MIN,
            form: options.form,
            message,
        }
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Returns the current set of shared strings, and the interner that adds strings to the set.
    pub(crate) fn parts(&mut self) -> (&Arc<Origin>, &mut Interner) {
        (&self.origin, &mut self.interner)
    }

    /// Returns the approximate memory of the shared strings, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.interner.bytes()
    }

    /// Starts a new set of shared strings if the memory of the current set has reached its limit.
    /// Returns whether a new set was started.
    pub(crate) fn renew(&mut self) -> bool {
        if self.interner.bytes() < self.limit {
            return false;
        }
        let origin = Origin {
            codec: self.origin.codec.clone(),
            vocabulary: Vocabulary::default(),
            pool: self.origin.pool.clone(),
            counts: self.origin.counts.clone(),
        };
        self.origin = Arc::new(origin);
        self.interner = Interner::new();
        // Until all objects are moved, the memory of the strings in use is unknown.
        self.limit = usize::MAX;
        true
    }

    /// Reports whether objects are still being moved to the current set of shared strings.
    pub(crate) fn is_renewing(&self) -> bool {
        self.limit == usize::MAX
    }

    /// Records that all objects have been moved to the current set of shared strings. The next set
    /// is started when the memory of the current set has doubled.
    pub(crate) fn renewed(&mut self) {
        self.limit = STRINGS_MIN.max(self.interner.bytes() * 2);
        self.origin.pool.keep_only(&self.origin);
    }

    /// Encodes a received object. An object that cannot be encoded is returned as unreadable.
    /// Returns `None` if the encoded object has no name.
    pub(crate) fn store(&mut self, wire: &Wire<'_>, options: &InformerOptions) -> Option<Stored> {
        let encoded = self.encode(wire, options);
        let tape = std::mem::take(&mut self.scratch);
        let stored = match encoded {
            Ok(()) => Stored::new(&self.origin, &tape, self.form),
            Err(cause) => self.unreadable(wire, cause),
        };
        self.scratch = tape;
        stored
    }

    fn encode(
        &mut self,
        wire: &Wire<'_>,
        options: &InformerOptions,
    ) -> Result<(), serde_json::Error> {
        let head = &wire.head;
        let keeps = |manager: &str| options.managers.iter().any(|kept| kept == manager);
        let object = number_of(&head.name, head.namespace.as_deref());
        let transformed = match &options.transform {
            Some(transform) => {
                let mut value = self.value(wire)?;
                // The function is the user's: if it panics, only this object gets an error.
                catch_unwind(AssertUnwindSafe(|| (transform.function)(&mut value))).map_err(
                    |_| serde_json::Error::custom("the transform of the informer panicked"),
                )?;
                Some(value)
            }
            None => None,
        };
        self.scratch.clear();
        let vocabulary = &self.origin.vocabulary;
        let encoder = &mut Encoder::new(&mut self.scratch, vocabulary, &mut self.interner, object);
        if let Some(value) = &transformed {
            return visit::encode(value, encoder, &keeps);
        }
        match wire.body {
            Body::Json(text) => {
                // Nearly all managed fields belong to other managers, and searching for a name is
                // faster than parsing.
                let unwanted = head.managed_fields.clone().filter(|range| {
                    let fields = text.get(range.clone()).unwrap_or_default().as_bytes();
                    let mut kept = options.managers.iter().map(String::as_bytes);
                    !kept.any(|manager| {
                        // JSON escapes some characters of a name, and Go escapes more.
                        let plain =
                            |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./: ".contains(byte);
                        !manager.iter().all(plain) || memmem::find(fields, manager).is_some()
                    })
                });
                tape::json::encode(text, encoder, &keeps, unwanted)
                    .map_err(serde_json::Error::custom)
            }
            Body::Protobuf(bytes) => {
                let message = message(self.message, bytes)?;
                visit::encode(message, encoder, &keeps).map_err(serde_json::Error::custom)
            }
        }
    }

    fn unreadable(&mut self, wire: &Wire<'_>, cause: serde_json::Error) -> Option<Stored> {
        let head = &wire.head;
        // The owners determine whether the informer reads the object.
        let owners = wire.owners(self.message).unwrap_or_default();
        let owners: Vec<_> = owners.iter().map(|uid| json!({"uid": uid})).collect();
        let metadata = json!({"metadata": {
            "name": head.name,
            "namespace": head.namespace,
            "uid": head.uid,
            "resourceVersion": head.resource_version,
            "ownerReferences": owners,
        }});
        let mut tape = Vec::new();
        let object = number_of(&head.name, head.namespace.as_deref());
        let vocabulary = &self.origin.vocabulary;
        let mut encoder = Encoder::new(&mut tape, vocabulary, &mut self.interner, object);
        visit::encode(&metadata, &mut encoder, &|_| false).ok()?;
        let stored = Stored::new(&self.origin, &tape, StoreForm::Compact)?;
        Some(stored.unreadable(cause))
    }

    fn value(&self, wire: &Wire<'_>) -> Result<Value, serde_json::Error> {
        match wire.body {
            Body::Json(text) => serde_json::from_str(text),
            Body::Protobuf(bytes) => {
                let message = message(self.message, bytes)?;
                Value::deserialize(message).map_err(serde_json::Error::custom)
            }
        }
    }
}

/// Received object whose head (name, namespace, UID and resourceVersion) has been read.
#[derive(Debug)]
pub(crate) struct Wire<'a> {
    pub(crate) head: Head<'a>,
    body: Body<'a>,
}

#[derive(Debug)]
enum Body<'a> {
    Json(&'a str),
    Protobuf(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// Reads the head (name, namespace, UID and resourceVersion) of a received object. `kind` is
    /// the message type of a protobuf object.
    pub(crate) fn read(raw: Raw<'a>, kind: Option<MessageType>) -> Result<Self, HeadError> {
        let wire = match raw {
            Raw::Json(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(serde_json::Error::custom);
                text.and_then(|text| {
                    let head = Head::of_json(text).map_err(serde_json::Error::custom)?;
                    let body = Body::Json(text);
                    Ok(Wire { head, body })
                })
            }
            Raw::Protobuf(bytes) => message(kind, bytes).and_then(|message| {
                let head = Head::of(message).map_err(serde_json::Error::custom)?;
                let body = Body::Protobuf(bytes);
                Ok(Wire { head, body })
            }),
        };
        wire.map_err(HeadError::Json)
    }

    /// Reads the UIDs of the object's owners. `kind` is the message type of a protobuf object.
    pub(crate) fn owners(&self, kind: Option<MessageType>) -> Result<Vec<Cow<'a, str>>, HeadError> {
        let owners = match self.body {
            Body::Json(text) => Head::owners_of_json(text).map_err(serde_json::Error::custom),
            Body::Protobuf(bytes) => message(kind, bytes)
                .and_then(|message| Head::owners_of(message).map_err(serde_json::Error::custom)),
        };
        owners.map_err(HeadError::Json)
    }
}

fn message(
    kind: Option<MessageType>,
    bytes: &[u8],
) -> Result<protobuf::Deserializer<'_>, serde_json::Error> {
    let kind =
        kind.ok_or_else(|| serde_json::Error::custom("the kind has no protobuf message type"))?;
    Ok(protobuf::Deserializer::new(kind, bytes))
}
