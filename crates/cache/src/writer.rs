//! From bytes to stored objects: the writing side of an informer.

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
use crate::sink::{Raw, ReadError};
use crate::tape::encoder::Encoder;
use crate::tape::head::Head;
use crate::tape::strings::{Interner, Vocabulary};
use crate::tape::{self, visit};
use crate::{StoreForm, Stored};

/// Strings may take so much memory before unused ones are looked for.
const STRINGS_MIN: usize = 4 << 20;

/// Encodes objects with the strings of the present generation.
#[derive(Debug)]
pub(crate) struct Writer {
    origin: Arc<Origin>,
    interner: Interner,
    scratch: Vec<u8>,
    /// At which memory of the strings a new generation begins.
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

    /// The present generation and its writing side.
    pub(crate) fn parts(&mut self) -> (&Arc<Origin>, &mut Interner) {
        (&self.origin, &mut self.interner)
    }

    /// Memory of the strings, about.
    pub(crate) fn bytes(&self) -> usize {
        self.interner.bytes()
    }

    /// Begins a new generation of strings if the present one has grown enough.
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
        // Until all objects are moved, nobody knows how much is in use.
        self.limit = usize::MAX;
        true
    }

    /// Whether objects are being moved to the present generation.
    pub(crate) fn is_renewing(&self) -> bool {
        self.limit == usize::MAX
    }

    /// All objects have strings of the present generation: another begins when they have doubled.
    pub(crate) fn renewed(&mut self) {
        self.limit = STRINGS_MIN.max(self.interner.bytes() * 2);
        self.origin.pool.keep_only(&self.origin);
    }

    /// Stores what came. What cannot be stored is kept as unreadable.
    pub(crate) fn store(&mut self, wire: &Wire<'_>, options: &InformerOptions) -> Option<Stored> {
        let encoded = self.encode(wire, options);
        let tape = std::mem::take(&mut self.scratch);
        let stored = match encoded {
            Ok(()) => Stored::new(&self.origin, &tape, self.form),
            Err(cause) => self.unreadable(&wire.head, cause),
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
                // It is the user's: a panic of its own is an error of this object.
                catch_unwind(AssertUnwindSafe(|| (transform.function)(&mut value)))
                    .map_err(|_| serde_json::Error::custom("its transform panicked"))?;
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
                // Nearly all managed fields are of others; looking for a name is faster than
                // reading.
                let unwanted = head.managed_fields.clone().filter(|range| {
                    let fields = text.get(range.clone()).unwrap_or_default().as_bytes();
                    let mut kept = options.managers.iter().map(String::as_bytes);
                    !kept.any(|manager| {
                        // JSON has escapes for some letters of a name, and Go for more of them.
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

    fn unreadable(&mut self, head: &Head<'_>, cause: serde_json::Error) -> Option<Stored> {
        let metadata = json!({"metadata": {
            "name": head.name,
            "namespace": head.namespace,
            "uid": head.uid,
            "resourceVersion": head.resource_version,
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

/// An object on the wire whose head was read.
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
    /// Reads which object came as `raw`; as protobuf it is of the type `kind`.
    pub(crate) fn read(raw: Raw<'a>, kind: Option<MessageType>) -> Result<Self, ReadError> {
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
        wire.map_err(ReadError::Json)
    }
}

fn message(
    kind: Option<MessageType>,
    bytes: &[u8],
) -> Result<protobuf::Deserializer<'_>, serde_json::Error> {
    let kind = kind.ok_or_else(|| serde_json::Error::custom("the kind has no protobuf"))?;
    Ok(protobuf::Deserializer::new(kind, bytes))
}
