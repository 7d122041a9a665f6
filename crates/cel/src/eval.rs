//! Evaluates a plan, and counts the cost as cel-go does.

mod attributes;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::cost::runtime::call_cost;
use crate::library::{formats, lists, operators, regex};
use crate::plan::{Call, Fold, Node};
use crate::value::{Fault, Key, List, Map, Object, ObjectLiteral, Outcome, Value, equal};

/// Cost of creating a list, in addition to its elements.
const LIST_COST: u64 = 10;
/// Cost of creating a map, in addition to its entries.
const MAP_COST: u64 = 30;
/// Cost of creating an object, in addition to its fields.
const STRUCT_COST: u64 = 40;
/// Maximum number of list items that one evaluation copies. The cost of adding two lists does not
/// depend on their lengths, so that the cost limit alone does not limit the time.
const COPIED_MAX: u64 = 20_000_000;

/// Result of an evaluation, and its cost.
pub(crate) struct Evaluated<'a> {
    pub(crate) outcome: Outcome<'a>,
    pub(crate) cost: u64,
}

/// Evaluates a plan. The evaluation ends when the cost exceeds the limit.
pub(crate) fn evaluate<'a>(node: &'a Node, variables: &Variables<'a>, limit: u64) -> Evaluated<'a> {
    let mut evaluator = Evaluator {
        variables,
        frames: Vec::new(),
        cost: 0,
        limit,
        copied: 0,
    };
    let outcome = evaluator.eval(node);
    Evaluated {
        outcome,
        cost: evaluator.cost,
    }
}

/// Variables of a running comprehension.
struct Frame<'a> {
    fold: &'a Fold,
    /// Value of the accumulator. `None` until it is read for the first time.
    accumulator: Option<Outcome<'a>>,
    first: Outcome<'a>,
    second: Outcome<'a>,
}

struct Evaluator<'a, 'v> {
    variables: &'v Variables<'a>,
    frames: Vec<Frame<'a>>,
    cost: u64,
    limit: u64,
    copied: u64,
}

impl<'a> Evaluator<'a, '_> {
    fn eval(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute { attribute, is_test } => self.attribute(attribute, *is_test),
            Node::Call(call) => self.call(call),
            Node::And(operands) => self.logic(operands, false),
            Node::Or(operands) => self.logic(operands, true),
            Node::Equal {
                operands,
                is_negated,
            } => self.equal(operands, *is_negated),
            Node::Member { value, set } => {
                let value = self.eval(value)?;
                let is_member = Key::of(&value).is_ok_and(|key| set.contains(&key));
                Ok(Value::Bool(is_member))
            }
            Node::OptionalOr { operands, is_value } => {
                let [first, second] = &**operands;
                match self.eval(first)? {
                    Value::Optional(None) => self.eval(second),
                    Value::Optional(Some(value)) if *is_value => Ok((*value).clone()),
                    other => Ok(other),
                }
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Struct(type_name, fields) => self.structure(type_name, fields),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// Adds to the cost. Ends the evaluation if the limit is exceeded.
    fn charge(&mut self, cost: u64) -> Result<(), Fault> {
        self.cost = self.cost.saturating_add(cost);
        match self.cost > self.limit {
            true => Err(Fault::Budget),
            false => Ok(()),
        }
    }

    /// Evaluates `||` or `&&`. The value that decides absorbs an error of the other operand.
    fn logic(&mut self, operands: &'a [Node; 2], decisive: bool) -> Outcome<'a> {
        let mut fault = None;
        for operand in operands {
            match self.eval(operand) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(value)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => {
                    fault.get_or_insert_with(Fault::no_such_overload);
                }
                Err(Fault::Budget) => return Err(Fault::Budget),
                Err(found) => {
                    fault.get_or_insert(found);
                }
            }
        }
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Value::Bool(!decisive)),
        }
    }

    fn equal(&mut self, operands: &'a [Node; 2], is_negated: bool) -> Outcome<'a> {
        let [first, second] = operands;
        let first = self.eval_unless_over(first)?;
        let second = self.eval_unless_over(second)?;
        let (function, overload) = match is_negated {
            true => ("_!=_", "not_equals"),
            false => ("_==_", "equals"),
        };
        let args = [shown(&first), shown(&second)];
        self.charge(call_cost(function, overload, &args, None))?;
        let [first, second] = [first?, second?];
        match equal(&first, &second) {
            Ok(holds) => Ok(Value::Bool(holds != is_negated)),
            // In cel-go, a comparison that fails is not equal.
            Err(Fault::Error(_)) if is_negated => Ok(Value::Bool(true)),
            Err(fault) => Err(fault),
        }
    }

    /// Evaluates a node. Only a budget that is exceeded ends the evaluation.
    fn eval_unless_over(&mut self, node: &'a Node) -> Result<Outcome<'a>, Fault> {
        match self.eval(node) {
            Err(Fault::Budget) => Err(Fault::Budget),
            outcome => Ok(outcome),
        }
    }

    fn list(&mut self, elements: &'a [(Node, bool)]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        let mut fault = None;
        for (node, is_optional) in elements {
            match self.eval_unless_over(node)? {
                Ok(Value::Optional(value)) if *is_optional => {
                    values.extend(value.map(|value| (*value).clone()));
                }
                Ok(other) if *is_optional => {
                    let message = format!(
                        "cannot initialize optional list element from non-optional value {other}"
                    );
                    fault = Some(Fault::new(message));
                }
                Ok(value) => values.push(value),
                Err(found) => fault = Some(found),
            }
            if fault.is_some() {
                break;
            }
        }
        self.charge(LIST_COST)?;
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Value::list(values)),
        }
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Outcome<'a> {
        let built = self.map_entries(entries);
        if !matches!(built, Err(Fault::Budget)) {
            self.charge(MAP_COST)?;
        }
        Ok(Value::Map(Map::new(built?)?))
    }

    fn map_entries(&mut self, entries: &'a [(Node, Node, bool)]) -> Result<MapEntries<'a>, Fault> {
        let mut built: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(entries.len());
        for (key, value, is_optional) in entries {
            let key = self.eval(key)?;
            let value = match (self.eval(value)?, is_optional) {
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (Value::Optional(None), true) => {
                    let removed = Key::of(&key)?;
                    built.retain(|(known, _)| Key::of(known) != Ok(removed.clone()));
                    continue;
                }
                (other, true) => {
                    return Err(Fault::new(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {other}"
                    )));
                }
                (value, false) => value,
            };
            built.push((key, value));
        }
        Ok(built)
    }

    fn structure(
        &mut self,
        type_name: &'a Arc<str>,
        fields: &'a [(Arc<str>, Node, bool)],
    ) -> Outcome<'a> {
        let mut built = BTreeMap::new();
        for (name, value, is_optional) in fields {
            match (self.eval(value)?, is_optional) {
                (Value::Optional(Some(value)), true) => {
                    built.insert(name.clone(), (*value).clone());
                }
                (Value::Optional(None), true) => {}
                (value, _) => drop(built.insert(name.clone(), value)),
            }
        }
        self.charge(STRUCT_COST)?;
        Ok(Value::Object(Object::Literal(Arc::new(ObjectLiteral {
            type_name: type_name.clone(),
            fields: built,
        }))))
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        let mut outcomes: Vec<Outcome<'a>> = Vec::with_capacity(call.args.len());
        for (index, arg) in call.args.iter().enumerate() {
            let outcome = self.eval_unless_over(arg)?;
            let is_last = index + 1 == call.args.len();
            if call.stops_early && outcome.is_err() && !is_last {
                return outcome;
            }
            outcomes.push(outcome);
        }
        if call.function == "@not_strictly_false" {
            self.charge(1)?;
            return Ok(match outcomes.pop() {
                Some(Ok(Value::Bool(value))) => Value::Bool(value),
                _ => Value::Bool(true),
            });
        }
        if let Some(fault) = outcomes.iter().find_map(|o| o.as_ref().err().cloned()) {
            let args: Vec<Value<'a>> = outcomes.iter().map(shown).collect();
            let cost = call_cost(&call.function, call.overload, &args, None);
            self.charge(cost)?;
            return Err(fault);
        }
        let args: Vec<Value<'a>> = outcomes.into_iter().collect::<Result<_, _>>()?;
        if let Some(frame) = call.accumulator {
            return self.accumulate(call, frame, args);
        }
        if let [Value::List(first), Value::List(second)] = args.as_slice()
            && call.function == "_+_"
        {
            self.count_copied(lists::copied(first, second))?;
        }
        self.precheck(call, &args)?;
        let result = match (&call.regex, args.is_empty()) {
            (Some(regex), _) => regex::apply(&call.function, regex, &args),
            (None, true) => match formats::constant(&call.function) {
                Some(value) => Ok(value),
                None => (call.implementation)(&args),
            },
            (None, false) => (call.implementation)(&args),
        };
        let cost = call_cost(&call.function, call.overload, &args, result.as_ref().ok());
        self.charge(cost)?;
        result
    }

    /// Ends the evaluation before a function that is slower than linear, or that creates a list, if
    /// its cost exceeds the limit.
    fn precheck(&mut self, call: &Call, args: &[Value<'a>]) -> Result<(), Fault> {
        let cost = match (call.function.as_str(), args) {
            ("lists.range", [Value::Int(count)]) => u64::try_from(*count)
                .unwrap_or_default()
                .saturating_add(LIST_COST + 1),
            (
                "distinct" | "sort" | "sets.contains" | "sets.equivalent" | "sets.intersects",
                args,
            ) => call_cost(&call.function, call.overload, args, None),
            _ => return Ok(()),
        };
        match self.cost.saturating_add(cost) > self.limit {
            true => self.charge(cost),
            false => Ok(()),
        }
    }

    /// Adds to the accumulator of a comprehension, in place.
    fn accumulate(&mut self, call: &'a Call, frame: usize, args: Vec<Value<'a>>) -> Outcome<'a> {
        let cost = call_cost(&call.function, call.overload, &args, None);
        let outcome = match <[Value<'a>; 2]>::try_from(args) {
            Ok([Value::List(first), Value::List(second)]) => {
                self.release(frame);
                self.count_copied(lists::copied(&first, &second))?;
                operators::add_lists(first, &second).map(Value::List)
            }
            Ok([Value::Map(map), Value::Map(update)]) => {
                self.release(frame);
                operators::insert(map, &[Value::Map(update)]).map(Value::Map)
            }
            Ok(other) => (call.implementation)(&other),
            Err(args) => match <[Value<'a>; 3]>::try_from(args) {
                Ok([Value::Map(map), key, value]) => {
                    self.release(frame);
                    operators::insert(map, &[key, value]).map(Value::Map)
                }
                Ok(other) => (call.implementation)(&other),
                Err(other) => (call.implementation)(&other),
            },
        };
        self.charge(cost)?;
        outcome
    }

    /// Drops the accumulator of a frame, because its next value is being computed.
    fn release(&mut self, frame: usize) {
        if let Some(frame) = self.frames.get_mut(frame) {
            frame.accumulator = None;
        }
    }

    fn count_copied(&mut self, items: u64) -> Result<(), Fault> {
        self.copied = self.copied.saturating_add(items);
        match self.copied > COPIED_MAX {
            true => Err(Fault::Budget),
            false => Ok(()),
        }
    }

    fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        self.frames.push(Frame {
            fold,
            accumulator: None,
            first: Ok(Value::Null),
            second: Ok(Value::Null),
        });
        let outcome = self
            .iterate(fold, range)
            .and_then(|()| self.eval(&fold.result));
        self.frames.pop();
        outcome
    }

    fn iterate(&mut self, fold: &'a Fold, range: Value<'a>) -> Result<(), Fault> {
        match (range, fold.has_second) {
            (Value::List(list), has_second) => self.iterate_list(fold, &list, has_second),
            (Value::Map(map), has_second) => {
                for key in map.keys() {
                    let second = match has_second {
                        true => map.find(&key).and_then(|value| {
                            value.ok_or_else(|| Fault::new(format!("no such key: {key}")))
                        }),
                        false => Ok(Value::Null),
                    };
                    if !self.step(fold, Ok(key), second)? {
                        break;
                    }
                }
                Ok(())
            }
            (other, true) => Err(Fault::new(format!(
                "unsupported comprehension range type: {}",
                go_type(&other)
            ))),
            (other, false) => Err(Fault::new(format!(
                "got '{}', expected iterable type",
                go_type(&other)
            ))),
        }
    }

    fn iterate_list(
        &mut self,
        fold: &'a Fold,
        list: &List<'a>,
        has_second: bool,
    ) -> Result<(), Fault> {
        for (index, item) in list.iter().enumerate() {
            let (first, second) = match has_second {
                true => (
                    Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))),
                    item,
                ),
                false => (item, Ok(Value::Null)),
            };
            if !self.step(fold, first, second)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one step of a comprehension. Returns whether the comprehension continues.
    fn step(
        &mut self,
        fold: &'a Fold,
        first: Outcome<'a>,
        second: Outcome<'a>,
    ) -> Result<bool, Fault> {
        if let Some(frame) = self.frames.last_mut() {
            frame.first = first;
            frame.second = second;
        }
        match self.eval(&fold.condition) {
            Err(Fault::Budget) => return Err(Fault::Budget),
            Ok(Value::Bool(false)) => return Ok(false),
            _ => {}
        }
        let next = self.eval_unless_over(&fold.step)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.accumulator = Some(next);
        }
        Ok(true)
    }
}

/// Keys and values of a map literal.
type MapEntries<'a> = Vec<(Value<'a>, Value<'a>)>;

/// Returns the value of an argument for its size. The size of an error is 1, as of null.
fn shown<'a>(outcome: &Outcome<'a>) -> Value<'a> {
    outcome.clone().unwrap_or(Value::Null)
}

/// Returns the name of the type of a value in Go.
fn go_type(value: &Value<'_>) -> String {
    match value {
        Value::Null => "types.Null".to_owned(),
        Value::Bool(_) => "types.Bool".to_owned(),
        Value::Int(_) => "types.Int".to_owned(),
        Value::Uint(_) => "types.Uint".to_owned(),
        Value::Double(_) => "types.Double".to_owned(),
        Value::String(_) => "types.String".to_owned(),
        Value::Bytes(_) => "types.Bytes".to_owned(),
        Value::Timestamp(_) => "types.Timestamp".to_owned(),
        Value::Duration(_) => "types.Duration".to_owned(),
        Value::Optional(_) => "*types.Optional".to_owned(),
        other => other.type_name(),
    }
}

/// Variables of an evaluation by name.
pub(crate) type Variables<'a> = HashMap<String, Outcome<'a>>;

/// Returns the value of an optional, or the value itself.
pub(crate) fn unwrapped<'a>(value: &Arc<Value<'a>>) -> Value<'a> {
    (**value).clone()
}
