//! Selects objects by their labels.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::{SelectorError, names, parser};

/// A selector of objects by labels, such as `app=web,tier in (a,b),!legacy`.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::selector::LabelSelector;
/// use serde_json::json;
///
/// let selector = LabelSelector::parse("app=web,tier in (a,b),!legacy")?;
/// let labels = json!({"app": "web", "tier": "b"});
/// assert!(selector.matches(labels.as_object()));
/// assert!(!selector.matches(None));
/// assert_eq!(selector.to_string(), "app=web,!legacy,tier in (a,b)");
/// # Ok::<(), opkit_apimachinery::selector::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector {
    /// `None` selects no object; an empty list selects all objects.
    requirements: Option<Vec<LabelRequirement>>,
}

/// One term of a [`LabelSelector`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelRequirement {
    /// Key of the label.
    pub key: String,
    /// Operator that compares the value of the label with `values`.
    pub operator: Operator,
    /// The values to compare with, sorted.
    pub values: BTreeSet<String>,
}

/// Operator of a [`LabelRequirement`], which compares the value of a label with the values of the
/// requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operator {
    /// `!key`
    DoesNotExist,
    /// `key==value`
    DoubleEquals,
    /// `key=value`
    Equals,
    /// `key`
    Exists,
    /// `key>value`, for integers
    GreaterThan,
    /// `key in (values)`
    In,
    /// `key<value`, for integers
    LessThan,
    /// `key!=value`; also matches if the label is missing
    NotEquals,
    /// `key notin (values)`; also matches if the label is missing
    NotIn,
}

impl LabelSelector {
    /// Returns a selector of all objects.
    pub fn everything() -> Self {
        Self {
            requirements: Some(Vec::new()),
        }
    }

    /// Returns a selector that matches no object.
    pub fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Parses the selector of a query (`?labelSelector=`). An empty text selects all objects.
    ///
    /// # Errors
    ///
    /// The message of Kubernetes, if the syntax, a key or a value is not valid.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = parser::parse(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            requirements: Some(requirements),
        })
    }

    /// Parses a selector in a spec, such as that of a Deployment: `{matchLabels,
    /// matchExpressions}`. Null selects no object, an empty object selects all objects.
    ///
    /// # Errors
    ///
    /// If the value is not an object of this form, or an operator, key or value is not valid.
    pub fn from_object(selector: &Value) -> Result<Self, SelectorError> {
        let fields = match selector {
            Value::Null => return Ok(Self::nothing()),
            Value::Object(fields) => fields,
            _ => return Err(SelectorError::new("label selector must be an object")),
        };
        let mut requirements = Vec::new();
        for (key, value) in fields
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let value = value
                .as_str()
                .ok_or_else(|| SelectorError::new("matchLabels must map to strings"))?;
            requirements.push(LabelRequirement::new(
                key,
                Operator::Equals,
                [value.to_owned()],
            )?);
        }
        let expressions = fields.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            requirements.push(expression_requirement(expression)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            requirements: Some(requirements),
        })
    }

    /// Reports whether an object with these labels is selected.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        let Some(requirements) = &self.requirements else {
            return false;
        };
        requirements.iter().all(|requirement| {
            requirement.matches(labels.and_then(|labels| labels.get(&requirement.key)?.as_str()))
        })
    }

    /// Returns the terms of the selector, all of which must match. The result is empty if the
    /// selector selects all objects or no object.
    pub fn requirements(&self) -> &[LabelRequirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// Reports whether the selector selects all objects.
    pub fn is_empty(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl LabelRequirement {
    pub(super) fn new(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = String>,
    ) -> Result<Self, SelectorError> {
        names::check_key(key).map_err(SelectorError::new)?;
        let values: BTreeSet<String> = values.into_iter().collect();
        if matches!(operator, Operator::In | Operator::NotIn) && values.is_empty() {
            return Err(SelectorError::new(
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ));
        }
        for (index, value) in values.iter().enumerate() {
            let ordered = matches!(operator, Operator::GreaterThan | Operator::LessThan);
            if ordered && value.parse::<i64>().is_err() {
                return Err(SelectorError::new(format!(
                    "values[{index}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must \
                     be an integer",
                    crate::golang::quote(value)
                )));
            }
            names::check_value(key, value, index).map_err(SelectorError::new)?;
        }
        Ok(Self {
            key: key.to_owned(),
            operator,
            values,
        })
    }

    /// Reports whether the term matches a label's value. `None` means that the label is missing.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.contains(value));
        let ordered = |holds: fn(&i64, &i64) -> bool| {
            let actual = value.and_then(|value| value.parse::<i64>().ok());
            let limit = self
                .values
                .first()
                .and_then(|value| value.parse::<i64>().ok());
            actual
                .zip(limit)
                .is_some_and(|(actual, limit)| holds(&actual, &limit))
        };
        match self.operator {
            Operator::DoesNotExist => value.is_none(),
            Operator::Exists => value.is_some(),
            Operator::DoubleEquals | Operator::Equals | Operator::In => listed(),
            Operator::NotEquals | Operator::NotIn => !listed(),
            Operator::GreaterThan => ordered(i64::gt),
            Operator::LessThan => ordered(i64::lt),
        }
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self
            .values
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(",");
        let key = &self.key;
        match self.operator {
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::Exists => f.write_str(key),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
        }
    }
}

fn expression_requirement(expression: &Value) -> Result<LabelRequirement, SelectorError> {
    let text = |name: &str| {
        expression
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let operator = match text("operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => {
            let quoted = crate::golang::quote(other);
            return Err(SelectorError::new(format!(
                "{quoted} is not a valid label selector operator"
            )));
        }
    };
    let values = expression.get("values").and_then(Value::as_array);
    let values = values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned);
    LabelRequirement::new(text("key"), operator, values)
}
