//! Options of an informer: which objects it caches, and in which form.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opkit_apimachinery::selector::{FieldSelector, LabelSelector, SelectorError};
use serde_json::Value;

use crate::{Index, Shards, StoreForm, Stored};

type Function = dyn Fn(&mut Value) + Send + Sync;

/// Function that changes each object before it is stored, for instance to drop large fields.
#[derive(Clone)]
pub struct Transform {
    pub(crate) function: Arc<Function>,
    number: u64,
}

impl Transform {
    fn new(function: Arc<Function>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            function,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the ID of this transform. Only clones of the transform have the same ID.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}

/// Options of an informer: which objects of a kind the informer caches, and in which form. By
/// default, all objects are cached in the compact form.
///
/// Requests with the same type, namespaces, `labels`, `fields`, `metadata_only`, range of `shards`,
/// `form`, `transform` (the same value or its clone) and `memory_budget` share one informer. For
/// the other options (`managers`, `pool_bytes`, the number of watches) the first request decides;
/// the `indexes` of all requests are added.
///
/// # Examples
/// ```
/// use opkit_cache::{Index, InformerOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let web_pods = InformerOptions::default()
///     .labels("app=web")?
///     .index(Index::field("node", "spec.nodeName"))
///     .transform(|pod| {
///         if let Some(status) = pod.get_mut("status").and_then(|status| status.as_object_mut()) {
///             status.remove("containerStatuses");
///         }
///     });
/// # let _ = web_pods;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerOptions {
    /// Label selector of the cached objects; `None` selects all objects.
    pub labels: Option<LabelSelector>,
    /// Field selector of the cached objects; `None` selects all objects. The server decides which
    /// fields are supported.
    pub fields: Option<FieldSelector>,
    /// Whether only metadata is requested from the server and cached.
    pub metadata_only: bool,
    /// Part of the kind that is cached, and the number of watches that read this part.
    pub shards: Shards,
    /// Form in which objects are stored.
    pub form: StoreForm,
    /// Function that changes each object before it is stored.
    pub transform: Option<Transform>,
    /// Field managers whose entries in `managedFields` are kept; all other entries are dropped.
    pub managers: Vec<String>,
    /// Indexes of the informer.
    pub indexes: Vec<Index>,
    /// Largest memory of the stored objects, in bytes. Above this limit, the bodies of objects that
    /// were not read recently are dropped, and `Lister::fetch` reads these objects from the API.
    /// `None` drops nothing. Objects stored as Rust objects or without a body are never dropped.
    pub memory_budget: Option<usize>,
    /// Approximate size of the decoded Rust objects that are kept for reuse, in bytes.
    pub pool_bytes: usize,
}

/// Default size of the pool of decoded objects: 8 MiB hold about 250 Pods, or thousands of small
/// objects.
const POOL_BYTES: usize = 8 << 20;

impl Default for InformerOptions {
    fn default() -> Self {
        Self {
            labels: None,
            fields: None,
            metadata_only: false,
            shards: Shards::default(),
            form: StoreForm::default(),
            transform: None,
            managers: Vec::new(),
            indexes: Vec::new(),
            memory_budget: None,
            pool_bytes: POOL_BYTES,
        }
    }
}

impl InformerOptions {
    /// Caches only objects whose labels match a selector such as `app=web,tier in (a,b)`.
    ///
    /// # Errors
    /// If `selector` is not a valid label selector.
    pub fn labels(mut self, selector: &str) -> Result<Self, SelectorError> {
        self.labels = Some(LabelSelector::parse(selector)?);
        Ok(self)
    }

    /// Caches only objects whose fields match a selector such as `spec.nodeName=a`.
    ///
    /// # Errors
    /// If `selector` is not a valid field selector.
    pub fn fields(mut self, selector: &str) -> Result<Self, SelectorError> {
        self.fields = Some(FieldSelector::parse(selector)?);
        Ok(self)
    }

    /// Caches only a part of the objects, or reads all of them with several watches.
    pub fn shards(mut self, shards: Shards) -> Self {
        self.shards = shards;
        self
    }

    /// Stores objects in this form.
    pub fn form(mut self, form: StoreForm) -> Self {
        self.form = form;
        self
    }

    /// Adds an index.
    pub fn index(mut self, index: Index) -> Self {
        self.indexes.push(index);
        self
    }

    /// Sets a function that changes each object before it is stored. Each object is first decoded
    /// into a `Value` tree, which takes several times longer than without a transform. The function
    /// is called while the informer is locked, so it must not read the cache. If the function
    /// panics, reading that object returns an error.
    pub fn transform(mut self, transform: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.transform = Some(Transform::new(Arc::new(transform)));
        self
    }

    /// Keeps the entries of the given field manager in `managedFields`.
    pub fn manager(mut self, manager: impl Into<String>) -> Self {
        self.managers.push(manager.into());
        self
    }

    /// Limits the memory of the stored objects to the given number of bytes. The bodies of further
    /// objects are dropped, and `Lister::fetch` reads these objects from the API.
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// Reports whether the label and field selectors match an object.
    pub(crate) fn selects(&self, stored: &Stored) -> Selected {
        if !(self.labels.as_ref()).is_none_or(|selector| matches(selector, stored)) {
            return Selected::No;
        }
        let mut selected = Selected::Yes;
        let fields = self.fields.iter().flat_map(FieldSelector::requirements);
        for requirement in fields {
            let holds = |text: &str| (text == requirement.value) == requirement.equal;
            let found = match &*requirement.field {
                "metadata.name" => Some(stored.name()),
                "metadata.namespace" => Some(stored.namespace().unwrap_or_default()),
                field => stored.field(field),
            };
            match found {
                Some(text) if holds(&text) => {}
                Some(_) => return Selected::No,
                // The server reports some missing fields as `false` or `0` in field selectors.
                None if self.keeps_fields()
                    && holds("")
                    && (requirement.value.is_empty() || (holds("false") && holds("0"))) => {}
                None => selected = Selected::Unknown,
            }
        }
        selected
    }

    /// Reports whether objects are stored with all their fields, so that single fields can be read.
    fn keeps_fields(&self) -> bool {
        self.form == StoreForm::Compact && self.transform.is_none() && !self.metadata_only
    }
}

/// Result of matching an object against the selectors, as far as the cache knows its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    Yes,
    No,
    Unknown,
}

/// Reports whether the labels of an object match a selector.
pub(crate) fn matches(selector: &LabelSelector, stored: &Stored) -> bool {
    let meta = stored.meta();
    // A selector that matches nothing has no requirements either.
    (selector.is_empty() || !selector.requirements().is_empty())
        && selector
            .requirements()
            .iter()
            .all(|requirement| requirement.matches(meta.label(&requirement.key).as_deref()))
}
