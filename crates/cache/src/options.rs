//! What an informer caches, and how.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opkit_apimachinery::selector::{FieldSelector, LabelSelector, SelectorError};
use serde_json::Value;

use crate::{Index, Shards, StoreForm, Stored};

type Function = dyn Fn(&mut Value) + Send + Sync;

/// Changes each object before it is stored, such as to drop large fields.
#[derive(Clone)]
pub struct Transform {
    pub(crate) function: Arc<Function>,
    number: u64,
}

impl Transform {
    fn new(function: Arc<Function>) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(1);
        Self {
            function,
            number: MADE.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Which one it is: a number that no other has, but its clones.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}

/// What an informer caches of a kind, and how. The default is everything, compactly.
///
/// Users with the same type, namespaces, `labels`, `fields`, `metadata_only`, part of `shards`,
/// `form`, `transform` (the same one, or its clone) and `memory_budget` share one informer. Of all
/// else - `managers`, `pool_bytes`, the number of watches - the first user's word counts; `indexes`
/// are added up.
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
    /// Only objects with such labels.
    pub labels: Option<LabelSelector>,
    /// Only objects with such fields; the server decides which fields it knows.
    pub fields: Option<FieldSelector>,
    /// Only metadata: the server is not asked for more.
    pub metadata_only: bool,
    /// Which part of the objects, and by how many watches.
    pub shards: Shards,
    /// How objects are stored.
    pub form: StoreForm,
    /// Changes each object before it is stored.
    pub transform: Option<Transform>,
    /// Field managers whose entries of `managedFields` are kept; all others are left out.
    pub managers: Vec<String>,
    /// The indexes.
    pub indexes: Vec<Index>,
    /// How many bytes of objects to keep. Beyond, bodies of objects that were not read lately are
    /// dropped; `Lister::fetch` reads those from the API. Without one, nothing is dropped, nor of
    /// objects that are stored as Rust objects or without a body.
    pub memory_budget: Option<usize>,
    /// How many bytes of Rust objects to keep made, about.
    pub pool_bytes: usize,
}

/// 8 MiB: about 250 Pods, or thousands of small objects.
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
    /// Only objects whose labels match a selector such as `app=web,tier in (a,b)`.
    ///
    /// # Errors
    /// When it is not a selector.
    pub fn labels(mut self, selector: &str) -> Result<Self, SelectorError> {
        self.labels = Some(LabelSelector::parse(selector)?);
        Ok(self)
    }

    /// Only objects whose fields match a selector such as `spec.nodeName=a`.
    ///
    /// # Errors
    /// When it is not a selector.
    pub fn fields(mut self, selector: &str) -> Result<Self, SelectorError> {
        self.fields = Some(FieldSelector::parse(selector)?);
        Ok(self)
    }

    /// Only a part of the objects, or all of them by several watches.
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

    /// Changes each object before it is stored. Such objects are read into a tree first, which
    /// costs several times what reading them otherwise does. It is called while the informer is
    /// locked, so it must not read the cache; an object for which it panics is an error of its own.
    pub fn transform(mut self, transform: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.transform = Some(Transform::new(Arc::new(transform)));
        self
    }

    /// Keeps what this field manager set in `managedFields`.
    pub fn manager(mut self, manager: impl Into<String>) -> Self {
        self.managers.push(manager.into());
        self
    }

    /// Keeps at most so many bytes of objects, and allows reads from the API for the rest.
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// Whether an object is one of those that the selectors ask for.
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
                // The server has words of its own for some that are not there: `false` and `0`.
                None if self.keeps_fields()
                    && holds("")
                    && (requirement.value.is_empty() || (holds("false") && holds("0"))) => {}
                None => selected = Selected::Unknown,
            }
        }
        selected
    }

    /// Whether objects are stored with all their fields, to be read one by one.
    fn keeps_fields(&self) -> bool {
        self.form == StoreForm::Compact && self.transform.is_none() && !self.metadata_only
    }
}

/// Whether an object is selected, as far as the cache can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    Yes,
    No,
    Unknown,
}

/// Whether the labels of an object match.
pub(crate) fn matches(selector: &LabelSelector, stored: &Stored) -> bool {
    let meta = stored.meta();
    // A selector of nothing has no terms either.
    (selector.is_empty() || !selector.requirements().is_empty())
        && selector
            .requirements()
            .iter()
            .all(|requirement| requirement.matches(meta.label(&requirement.key).as_deref()))
}
