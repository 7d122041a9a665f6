//! The causes of a reconcile.

use std::fmt;
use std::sync::Arc;

use opkit_cache::FieldChange;

/// An event or condition that caused a reconcile of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The object existed when the operator started.
    InitialList,
    /// The reconciled object, or an object that it depends on, was created or changed.
    Changed {
        /// Kind of the changed object; `None` if it is the reconciled object itself.
        kind: Option<Arc<str>>,
        /// Name of the changed object.
        name: String,
        /// The first fields that changed. Empty if the object is new, if it was deleted and created
        /// again, or if its fields were not compared.
        fields: Vec<FieldChange>,
    },
    /// The reconciled object, or an object that it depends on, was deleted.
    Deleted {
        /// Kind of the deleted object; `None` if it is the reconciled object itself.
        kind: Option<Arc<str>>,
        /// Name of the deleted object.
        name: String,
    },
    /// The last reconcile failed. The value is the number of failures in a row.
    Retry(u32),
    /// The last reconcile requested a requeue.
    Requeued,
    /// The periodic resync of all objects.
    Resync,
    /// The process became the leader again, and all objects are reconciled. In a sharded operator:
    /// the object now belongs to this replica.
    Elected,
    /// A trigger or a stream outside the cluster requested the reconcile.
    Triggered {
        /// Name of the trigger or stream.
        by: Arc<str>,
    },
}

impl Cause {
    /// Returns kind, name and changed fields of the object that changed or was deleted, or `None`
    /// for other causes. The kind is `None` for the reconciled object itself.
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
