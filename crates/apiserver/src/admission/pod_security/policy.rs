//! The levels and versions of the Pod Security Standards, and the labels of a namespace that select
//! them.

use std::fmt;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Map, Value, json};

/// The prefix of the labels of a namespace, and of the audit annotations of a request.
pub(in crate::admission) const PREFIX: &str = "pod-security.kubernetes.io/";

/// A level of the Pod Security Standards, in the order of strictness.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::admission) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        })
    }
}

/// The version of Kubernetes whose checks are used. The version `latest` is newer than any other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::admission) enum Version {
    /// The version 1 with this minor version.
    Minor(u32),
    Latest,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let is_number = minor.bytes().all(|byte| byte.is_ascii_digit());
        let is_padded = minor.len() > 1 && minor.starts_with('0');
        match is_number && !is_padded {
            true => minor.parse().ok().map(Self::Minor),
            false => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(f, "v1.{minor}"),
            Self::Latest => f.write_str("latest"),
        }
    }
}

/// A level in a version, such as `baseline:v1.30`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::admission) struct LevelVersion {
    pub(in crate::admission) level: Level,
    pub(in crate::admission) version: Version,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level, self.version)
    }
}

const PRIVILEGED: LevelVersion = LevelVersion {
    level: Level::Privileged,
    version: Version::Latest,
};

/// The levels that a namespace enforces, records in the audit log, and warns about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::admission) struct Policy {
    pub(in crate::admission) enforce: LevelVersion,
    pub(in crate::admission) audit: LevelVersion,
    pub(in crate::admission) warn: LevelVersion,
}

impl Policy {
    /// Returns the policy of a namespace with these labels, and the errors in the labels. A level
    /// with an error is `restricted` if it is to be enforced, and else `privileged`.
    pub(in crate::admission) fn of_labels(
        labels: Option<&Map<String, Value>>,
    ) -> (Self, Vec<FieldError>) {
        let mut policy = Self {
            enforce: PRIVILEGED,
            audit: PRIVILEGED,
            warn: PRIVILEGED,
        };
        let mut errors = Vec::new();
        let label = |name: &str| {
            let value = labels?.get(&format!("{PREFIX}{name}"))?;
            value.as_str()
        };
        let mut enforced = None;
        let modes = [
            ("enforce", &mut policy.enforce, Level::Restricted),
            ("audit", &mut policy.audit, Level::Privileged),
            ("warn", &mut policy.warn, Level::Privileged),
        ];
        for (mode, target, on_error) in modes {
            if let Some(text) = label(mode) {
                let level = Level::parse(text);
                if level.is_none() {
                    let detail = "must be one of privileged, baseline, restricted";
                    errors.push(invalid(mode, text, detail));
                }
                if mode == "enforce" {
                    enforced = level;
                }
                target.level = level.unwrap_or(on_error);
            }
            let mode = format!("{mode}-version");
            if let Some(text) = label(&mode) {
                let version = Version::parse(text);
                if version.is_none() {
                    errors.push(invalid(&mode, text, "must be \"latest\" or \"v1.x\""));
                }
                target.version = version.unwrap_or(Version::Latest);
            }
        }
        // Without a level of its own, a namespace warns about the level that it enforces.
        if enforced.is_some_and(|level| level > policy.warn.level) && label("warn").is_none() {
            policy.warn.level = policy.enforce.level;
            if label("warn-version").is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }
}

fn invalid(label: &str, value: &str, detail: &str) -> FieldError {
    let field = format!("metadata.labels[{PREFIX}{label}]");
    FieldError::invalid(field, &json!(value), detail)
}
