//! Conditions: what a controller says about an object's state.
//!
//! [`Condition`] is `metav1.Condition` on the wire. A controller states type, status, reason
//! and message; *when* a status changed and which generation was looked at is filled in by the
//! framework just before it writes a status. That way a time changes only when a status does, and a
//! reconcile that changes nothing writes nothing.

mod schema;

use std::fmt;
use std::ops::Deref;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One statement about an object: `metav1.Condition`.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::conditions::{Condition, ConditionStatus};
///
/// let condition = Condition::new("Ready", false).reason("Pulling").message("image 1 of 2");
/// assert_eq!(condition.status, ConditionStatus::False);
/// assert_eq!(condition.reason, "Pulling");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Condition {
    /// What is stated, in CamelCase, such as `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it is so.
    pub status: ConditionStatus,
    /// The generation that was looked at; set when the status is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed, in whole seconds; set when the status is written.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds")]
    pub last_transition_time: Option<Timestamp>,
    /// Why, in one CamelCase word. Kubernetes requires one, so [`Condition::new`] fills in the
    /// type when the status is true, `Not` and the type when it is false, and `Unknown`
    /// otherwise.
    #[serde(default)]
    pub reason: String,
    /// Why, for people. May be empty.
    #[serde(default)]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// The controller cannot tell.
    #[default]
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}

impl Condition {
    /// A condition with a reason made up from type and status, no message and no time.
    pub fn new(type_: impl Into<String>, status: impl Into<ConditionStatus>) -> Self {
        let type_ = type_.into();
        let status = status.into();
        let reason = match status {
            ConditionStatus::True => type_.clone(),
            ConditionStatus::False => format!("Not{type_}"),
            ConditionStatus::Unknown => "Unknown".to_owned(),
        };
        Self {
            type_,
            status,
            observed_generation: None,
            last_transition_time: None,
            reason,
            message: String::new(),
        }
    }

    /// Says why, in one CamelCase word.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Says why, for people.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Whether the status is true.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

impl From<&Self> for Condition {
    fn from(condition: &Self) -> Self {
        condition.clone()
    }
}

/// The conditions of an object, at most one of each type.
///
/// On the wire it is a plain list; its schema makes it a map keyed by `type`, so that several
/// controllers can each apply their own conditions.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::conditions::{Condition, Conditions};
///
/// let mut conditions = Conditions::default();
/// conditions.set(Condition::new("Ready", false).reason("Pulling"));
/// let ready = Condition::new("Ready", true);
/// conditions.set(&ready);
/// assert!(conditions.is_true("Ready"));
/// assert_eq!(conditions.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// No conditions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a condition, in place of the one of the same type. Takes the condition, or a reference
    /// to it, so that a function that may be called again needs no clone.
    ///
    /// The time of the one before is kept unless the status changes; a new time is set when the
    /// status is written.
    pub fn set(&mut self, condition: impl Into<Condition>) {
        let mut condition = condition.into();
        match self
            .0
            .iter_mut()
            .find(|present| present.type_ == condition.type_)
        {
            Some(present) => {
                if present.status == condition.status && condition.last_transition_time.is_none() {
                    condition.last_transition_time = present.last_transition_time;
                }
                *present = condition;
            }
            None => self.0.push(condition),
        }
    }

    /// Takes a condition away.
    pub fn remove(&mut self, type_: &str) -> Option<Condition> {
        let index = self
            .0
            .iter()
            .position(|condition| condition.type_ == type_)?;
        Some(self.0.remove(index))
    }

    /// The condition of this type.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of this type is there and true.
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).is_some_and(Condition::is_true)
    }
}

impl Deref for Conditions {
    type Target = [Condition];

    fn deref(&self) -> &[Condition] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Conditions set one after the other, so the last of a type counts.
impl FromIterator<Condition> for Conditions {
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        let mut all = Self::default();
        for condition in conditions {
            all.set(condition);
        }
        all
    }
}

/// Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds.
mod seconds {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%SZ")),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Option::<Timestamp>::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests;
