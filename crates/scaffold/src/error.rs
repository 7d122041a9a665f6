//! Errors of this crate.

use std::io;
use std::path::PathBuf;

/// Error of a command on a project. No file was changed, unless it is [`Error::Write`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is not valid.
    #[error("{argument} {value:?}: {reason}")]
    Argument {
        /// Name of the argument, such as `--kind`.
        argument: &'static str,
        /// Its value.
        value: String,
        /// Reason, and the values that are valid.
        reason: String,
    },
    /// A file of the project is not as expected.
    #[error("{path}:{line}: {reason} (nothing was changed)")]
    Source {
        /// Path of the file, from the directory of the project.
        path: String,
        /// Line of the file.
        line: usize,
        /// Reason, and what to write by hand.
        reason: String,
    },
    /// The project is not as expected.
    #[error("{0} (nothing was changed)")]
    Project(String),
    /// Types cannot be generated from a CRD.
    #[error("{crd}: {reason}")]
    Crd {
        /// Name of the CRD.
        crd: String,
        /// Reason, with the path in the CRD.
        reason: String,
    },
    /// A project of another tool cannot be imported.
    #[error("{path}: {reason}")]
    Import {
        /// Path of the file, from the directory of the project.
        path: String,
        /// Reason, and what to do.
        reason: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file or directory.
        path: PathBuf,
        /// Cause.
        #[source]
        cause: io::Error,
    },
    /// A file cannot be written. Files that were written before it are restored if possible.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the file or directory.
        path: PathBuf,
        /// Cause.
        #[source]
        cause: io::Error,
    },
}

impl Error {
    pub(crate) fn argument(
        argument: &'static str,
        value: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (value, reason) = (value.into(), reason.into());
        Self::Argument {
            argument,
            value,
            reason,
        }
    }

    pub(crate) fn source(path: &str, line: usize, reason: impl Into<String>) -> Self {
        Self::Source {
            path: path.to_owned(),
            line,
            reason: reason.into(),
        }
    }

    pub(crate) fn import(path: &str, reason: impl Into<String>) -> Self {
        Self::Import {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Returns the error about the same line of another file.
    pub(crate) fn in_file(self, file: &str) -> Self {
        match self {
            Self::Source { line, reason, .. } => Self::source(file, line, reason),
            other => other,
        }
    }

    /// Reports whether an argument of the command is not valid.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Argument { .. })
    }
}

/// Result of a command on a project.
pub type Result<T, E = Error> = std::result::Result<T, E>;
