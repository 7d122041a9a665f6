//! Variables and the selections that follow them.

use super::{Evaluator, unwrapped};
use crate::plan::{Attribute, Local, Qualifier, QualifierKey, Slot};
use crate::value::{Fault, Object, Outcome, Value};

impl<'a> Evaluator<'a, '_> {
    /// Evaluates an attribute, and charges its cost. A test costs the same as its selections.
    pub(super) fn attribute(&mut self, attribute: &'a Attribute, is_test: bool) -> Outcome<'a> {
        let outcome = self.resolve(attribute);
        if matches!(outcome, Err(Fault::Budget)) {
            return outcome;
        }
        let is_conditional = matches!(attribute, Attribute::Conditional { .. });
        match (is_conditional, is_test) {
            (false, false) => self.charge(1)?,
            (true, true) => self.cost = self.cost.saturating_sub(1),
            _ => {}
        }
        match outcome? {
            Value::Optional(value) if is_test => Ok(Value::Bool(value.is_some())),
            value => Ok(value),
        }
    }

    fn resolve(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        match attribute {
            Attribute::Variable { name, qualifiers } => {
                let value = match self.variables.get(&**name) {
                    Some(value) => value.clone(),
                    None => Err(Fault::new(format!("no such attribute(s): {name}"))),
                };
                value.and_then(|value| self.qualify_all(value, qualifiers))
            }
            Attribute::Local { local, qualifiers } => {
                let value = self.local(*local);
                value.and_then(|value| self.qualify_all(value, qualifiers))
            }
            Attribute::Relative {
                operand,
                qualifiers,
            } => {
                let value = self.eval(operand);
                value.and_then(|value| self.qualify_all(value, qualifiers))
            }
            Attribute::Conditional {
                condition,
                truthy,
                falsy,
            } => match self.eval(condition) {
                Ok(Value::Bool(true)) => self.resolve(truthy),
                Ok(Value::Bool(false)) => self.resolve(falsy),
                Ok(_) => Err(Fault::no_such_overload()),
                Err(fault) => Err(fault),
            },
        }
    }

    /// Returns a variable of a comprehension. The accumulator is computed when it is read first.
    fn local(&mut self, local: Local) -> Outcome<'a> {
        let missing = || Fault::new("no such attribute(s)");
        let frame = self.frames.get(local.frame).ok_or_else(missing)?;
        match local.slot {
            Slot::First => frame.first.clone(),
            Slot::Second => frame.second.clone(),
            Slot::Accumulator => {
                if let Some(value) = &frame.accumulator {
                    return value.clone();
                }
                // The initial value cannot see the comprehension, nor those inside of it.
                let init = &frame.fold.init;
                let inner = self.frames.split_off(local.frame);
                let value = self.eval(init);
                self.frames.extend(inner);
                if matches!(value, Err(Fault::Budget)) {
                    return Err(Fault::Budget);
                }
                if let Some(frame) = self.frames.get_mut(local.frame) {
                    frame.accumulator = Some(value.clone());
                }
                value
            }
        }
    }

    fn qualify_all(
        &mut self,
        value: Value<'a>,
        qualifiers: &'a [std::sync::Arc<Qualifier>],
    ) -> Outcome<'a> {
        let (mut value, mut is_optional) = match value {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => (unwrapped(&value), true),
            value => (value, false),
        };
        for qualifier in qualifiers {
            is_optional |= qualifier.is_optional;
            let found = self.qualify(&value, qualifier, is_optional)?;
            value = match found {
                Some(found) => found,
                None if is_optional => return Ok(Value::Optional(None)),
                None => return Err(Fault::no_such_overload()),
            };
        }
        Ok(match is_optional {
            true => Value::optional(Some(value)),
            false => value,
        })
    }

    /// Selects a field or an index. Returns `None` if it is absent and the selection is optional.
    fn qualify(
        &mut self,
        value: &Value<'a>,
        qualifier: &'a Qualifier,
        is_optional: bool,
    ) -> Result<Option<Value<'a>>, Fault> {
        let key = match &qualifier.key {
            QualifierKey::Constant(key) => Ok(key.clone()),
            QualifierKey::Attribute(attribute) => self.resolve(attribute),
        };
        let found = key.and_then(|key| {
            let found = select(value, &key);
            match found {
                Ok(found) => Ok((found, key)),
                Err(fault) => Err(fault),
            }
        });
        if found.as_ref().err() == Some(&Fault::Budget) {
            return Err(Fault::Budget);
        }
        if qualifier.is_test {
            let is_present = matches!(&found, Ok((Selected::Found(_), _)));
            if is_present || !is_optional {
                self.charge(1)?;
            }
            found?;
            return Ok(match (is_optional, is_present) {
                (true, true) => Some(Value::Null),
                (true, false) => None,
                (false, is_present) => Some(Value::Bool(is_present)),
            });
        }
        if is_optional {
            return match found? {
                (Selected::Found(found), _) => {
                    self.charge(1)?;
                    Ok(Some(found))
                }
                _ => Ok(None),
            };
        }
        self.charge(1)?;
        match found? {
            (Selected::Found(found), _) => Ok(Some(found)),
            (Selected::NoKey, key) => Err(Fault::new(format!("no such key: {key}"))),
            (Selected::OutOfBounds, key) => Err(Fault::new(format!("index out of bounds: {key}"))),
        }
    }
}

/// Result of a selection.
enum Selected<'a> {
    Found(Value<'a>),
    NoKey,
    OutOfBounds,
}

fn select<'a>(value: &Value<'a>, key: &Value<'a>) -> Result<Selected<'a>, Fault> {
    match value {
        Value::Map(map) => Ok(match map.find(key)? {
            Some(found) => Selected::Found(found),
            None => Selected::NoKey,
        }),
        Value::List(list) => {
            let index = index(key)?;
            match usize::try_from(index)
                .ok()
                .and_then(|index| list.get(index))
            {
                Some(found) => found.map(Selected::Found),
                None => Ok(Selected::OutOfBounds),
            }
        }
        Value::Object(Object::Literal(literal)) => Ok(match key.as_str() {
            Some(name) => match literal.field(name) {
                Some(found) => Selected::Found(found.clone()),
                None => Selected::NoKey,
            },
            None => Selected::NoKey,
        }),
        _ => Ok(Selected::NoKey),
    }
}

fn index(key: &Value<'_>) -> Result<i64, Fault> {
    let unsupported = || Fault::new(format!("unsupported index value {key} in list"));
    match key {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported()),
        Value::Double(index) if index.fract() == 0.0 && index.abs() < 9e18 => Ok(*index as i64),
        Value::Double(_) => Err(unsupported()),
        other => Err(Fault::new(format!(
            "unsupported index type '{}' in list",
            other.type_name()
        ))),
    }
}
