//! Conditions: a controller's statements about the state of an object.
//!
//! [`Condition`] is `metav1.Condition` on the wire. A controller sets type, status, reason and
//! message. The framework sets the transition time and the observed generation just before it
//! writes the status of the object. The transition time therefore changes only when a condition's
//! status changes, and a reconcile that changes nothing writes nothing.

mod schema;

use std::fmt;
use std::ops::Deref;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One statement about the state of an object: `metav1.Condition`.
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
    /// Type of the condition in CamelCase, such as `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Generation of the object that the controller observed. The framework sets this field
    /// when it writes the object's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time of the last change of `status`, in whole seconds. The framework sets this field
    /// when it writes the object's status.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds")]
    pub last_transition_time: Option<Timestamp>,
    /// Reason of the last change, as one CamelCase word. Kubernetes requires a reason. The default
    /// of [`Condition::new`] for the type `Ready` is `Ready` if the status is true, `NotReady` if
    /// the status is false, and `Unknown` otherwise.
    #[serde(default)]
    pub reason: String,
    /// Explanation for people. May be empty.
    #[serde(default)]
    pub message: String,
}

/// Status of a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The controller cannot determine whether the condition holds.
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
    /// Creates a condition without a message and a time. The reason is derived from the type and
    /// the status: `Ready`, `NotReady` or `Unknown` for the type `Ready`.
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

    /// Sets the reason, which must be one CamelCase word.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Sets the message, which is an explanation for people.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Reports whether the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

impl From<&Self> for Condition {
    fn from(condition: &Self) -> Self {
        condition.clone()
    }
}

/// Conditions of an object, at most one of each type.
///
/// The wire format is a plain list. The schema declares the list as `x-kubernetes-list-type: map`
/// with the key `type`, so that several controllers can each apply their own conditions.
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
    /// Creates an empty list of conditions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition, or replaces the condition of the same type. `condition` may also be a
    /// reference, which is cloned.
    ///
    /// If the status does not change, the condition keeps the transition time of the replaced
    /// condition. Otherwise the framework sets a new time when it writes the object's status.
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

    /// Removes the condition of this type, and returns the removed condition.
    pub fn remove(&mut self, type_: &str) -> Option<Condition> {
        let index = self
            .0
            .iter()
            .position(|condition| condition.type_ == type_)?;
        Some(self.0.remove(index))
    }

    /// Returns the condition of this type.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.type_ == type_)
    }

    /// Reports whether there is a condition of this type with status `True`.
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

/// Adds the conditions one after the other. Of several conditions of the same type, the last one is
/// kept.
impl FromIterator<Condition> for Conditions {
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        let mut all = Self::default();
        for condition in conditions {
            all.set(condition);
        }
        all
    }
}

/// Serialization of times in Kubernetes' format: RFC 3339 in UTC with whole seconds.
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
