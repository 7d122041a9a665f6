//! Why an object was reconciled.

use std::fmt;
use std::sync::Arc;

use opkit_cache::FieldChange;
use serde::ser::{Serialize, Serializer};

/// One thing that made an object need a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It was there when the operator started.
    InitialList,
    /// An object changed: itself, or one that it depends on.
    Changed {
        /// The kind; none for the object itself.
        kind: Option<Arc<str>>,
        /// The name.
        name: String,
        /// The first fields that changed; none if it is new, or was not told one by one.
        fields: Vec<FieldChange>,
    },
    /// An object was deleted.
    Deleted {
        /// The kind; none for the object itself.
        kind: Option<Arc<str>>,
        /// The name.
        name: String,
    },
    /// It failed so often.
    Retry(u32),
    /// The last reconcile asked for it.
    Requeued,
    /// The periodic look at everything.
    Resync,
    /// The process has become the leader again.
    Elected,
    /// Something outside the cluster.
    Triggered {
        /// What.
        by: Arc<str>,
    },
}

impl Cause {
    /// Kind and name of the object that changed or was deleted, and the fields that changed; none
    /// for other causes. The kind is none for the object itself.
    pub(crate) fn change(&self) -> Option<(Option<&str>, &str, &[FieldChange])> {
        match self {
            Self::Changed { kind, name, fields } => Some((kind.as_deref(), name, fields)),
            Self::Deleted { kind, name } => Some((kind.as_deref(), name, &[])),
            _ => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = |f: &mut fmt::Formatter<'_>, kind: &Option<Arc<str>>, name| match kind {
            Some(kind) => write!(f, "{kind} {name}"),
            None => write!(f, "{name}"),
        };
        match self {
            Self::InitialList => f.write_str("initial list"),
            Self::Changed { kind, name, fields } => {
                object(f, kind, name)?;
                f.write_str(" changed")?;
                for (n, field) in fields.iter().enumerate() {
                    write!(f, "{} {field}", if n == 0 { ":" } else { "," })?;
                }
                Ok(())
            }
            Self::Deleted { kind, name } => {
                object(f, kind, name)?;
                f.write_str(" deleted")
            }
            Self::Retry(n) => write!(f, "retry {n} after error"),
            Self::Requeued => f.write_str("requeued"),
            Self::Resync => f.write_str("resync"),
            Self::Elected => f.write_str("elected"),
            Self::Triggered { by } => f.write_str(by),
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
