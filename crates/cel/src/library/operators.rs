//! Operators and `size`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Function;
use crate::value::{
    Entries, Fault, Items, Key, List, ListKind, Map, Outcome, Value, compare, equal, find_by_keys,
};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "_+_" => add,
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "-_" => negate,
        "!_" => not,
        "_<_" => |args| ordered(args, "_<_", Ordering::is_lt),
        "_<=_" => |args| ordered(args, "_<=_", Ordering::is_le),
        "_>_" => |args| ordered(args, "_>_", Ordering::is_gt),
        "_>=_" => |args| ordered(args, "_>=_", Ordering::is_ge),
        "@in" => is_in,
        "size" => size,
        "cel.@mapInsert" => map_insert,
        "value" => optional_value,
        "hasValue" => |args| match args {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            _ => Err(super::no_overload("hasValue", args)),
        },
        "optional.of" => |args| match args {
            [value] => Ok(Value::optional(Some(value.clone()))),
            _ => Err(Fault::no_such_overload()),
        },
        "optional.ofNonZeroValue" => |args| match args {
            [value] if value.is_zero() => Ok(Value::Optional(None)),
            [value] => Ok(Value::optional(Some(value.clone()))),
            _ => Err(Fault::no_such_overload()),
        },
        "optional.none" => |_| Ok(Value::Optional(None)),
        "optional.unwrap" | "unwrapOpt" => unwrap,
        _ => return None,
    })
}

/// Returns the error of an operator whose first operand does not support it. Types that have
/// methods of their own in cel-go get a shorter text.
fn unsupported(name: &str, first: Option<&Value<'_>>) -> Fault {
    match first {
        Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)) => {
            Fault::no_such_overload()
        }
        _ => Fault::new(format!("no such overload: {name}")),
    }
}

fn add<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = |kind: &str| Fault::new(format!("{kind} overflow"));
    Ok(match args {
        [Value::Int(a), Value::Int(b)] => {
            Value::Int(a.checked_add(*b).ok_or_else(|| overflow("integer"))?)
        }
        [Value::Uint(a), Value::Uint(b)] => {
            let sum = a.checked_add(*b);
            Value::Uint(sum.ok_or_else(|| overflow("unsigned integer"))?)
        }
        [Value::Double(a), Value::Double(b)] => Value::Double(a + b),
        [Value::String(a), Value::String(b)] => Value::text(format!("{}{}", &**a, &**b)),
        [Value::Bytes(a), Value::Bytes(b)] => {
            Value::Bytes(a.iter().chain(b.iter()).copied().collect())
        }
        [Value::Duration(a), Value::Duration(b)] => {
            Value::Duration(a.checked_add(*b).ok_or_else(|| overflow("integer"))?)
        }
        [Value::Timestamp(time), Value::Duration(nanos)]
        | [Value::Duration(nanos), Value::Timestamp(time)] => {
            Value::Timestamp(time.add(i128::from(*nanos))?)
        }
        [Value::List(a), Value::List(b)] => Value::List(add_lists(a.clone(), b)?),
        [
            Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bytes(_) | Value::List(_),
            _,
        ] => return Err(Fault::no_such_overload()),
        _ => return Err(unsupported("_+_", args.first())),
    })
}

/// Adds two lists. The items of a set stay unique, and the items of a list of type map replace
/// those with the same keys. The first list is changed in place if nothing else refers to it.
pub(crate) fn add_lists<'a>(first: List<'a>, second: &List<'a>) -> Result<List<'a>, Fault> {
    let kind = first.kind;
    let mut items = match first.items {
        Items::Values(values) => values,
        Items::Json { .. } => Arc::new(first.values()?),
    };
    let changed = Arc::make_mut(&mut items);
    for item in second.iter() {
        let item = item?;
        match kind {
            ListKind::Atomic => changed.push(item),
            ListKind::Set => {
                if !contains(changed, &item)? {
                    changed.push(item);
                }
            }
            ListKind::Map(keys) => {
                let mut place = None;
                for (index, known) in changed.iter().enumerate() {
                    let one = List {
                        items: Items::Values(Arc::new(vec![known.clone()])),
                        kind: ListKind::Atomic,
                    };
                    if find_by_keys(&one, &item, keys)?.is_some() {
                        place = Some(index);
                    }
                }
                match place.and_then(|index| changed.get_mut(index)) {
                    Some(known) => *known = item,
                    None => changed.push(item),
                }
            }
        }
    }
    Ok(List {
        items: Items::Values(items),
        kind,
    })
}

fn subtract<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = |kind: &str| Fault::new(format!("{kind} overflow"));
    Ok(match args {
        [Value::Int(a), Value::Int(b)] => {
            Value::Int(a.checked_sub(*b).ok_or_else(|| overflow("integer"))?)
        }
        [Value::Uint(a), Value::Uint(b)] => {
            let difference = a.checked_sub(*b);
            Value::Uint(difference.ok_or_else(|| overflow("unsigned integer"))?)
        }
        [Value::Double(a), Value::Double(b)] => Value::Double(a - b),
        [Value::Duration(a), Value::Duration(b)] => {
            Value::Duration(a.checked_sub(*b).ok_or_else(|| overflow("integer"))?)
        }
        [Value::Timestamp(time), Value::Duration(nanos)] => {
            Value::Timestamp(time.add(-i128::from(*nanos))?)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => Value::Duration(a.since(*b)?),
        [
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ] => return Err(Fault::no_such_overload()),
        _ => return Err(unsupported("_-_", args.first())),
    })
}

fn multiply<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match args {
        [Value::Int(a), Value::Int(b)] => Value::Int(
            a.checked_mul(*b)
                .ok_or_else(|| Fault::new("integer overflow"))?,
        ),
        [Value::Uint(a), Value::Uint(b)] => {
            let product = a.checked_mul(*b);
            Value::Uint(product.ok_or_else(|| Fault::new("unsigned integer overflow"))?)
        }
        [Value::Double(a), Value::Double(b)] => Value::Double(a * b),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => {
            return Err(Fault::no_such_overload());
        }
        _ => return Err(unsupported("_*_", args.first())),
    })
}

fn divide<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err(Fault::new("division by zero"));
        }
        [Value::Int(a), Value::Int(b)] => Value::Int(
            a.checked_div(*b)
                .ok_or_else(|| Fault::new("integer overflow"))?,
        ),
        [Value::Uint(a), Value::Uint(b)] => Value::Uint(a.checked_div(*b).unwrap_or_default()),
        [Value::Double(a), Value::Double(b)] => Value::Double(a / b),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => {
            return Err(Fault::no_such_overload());
        }
        _ => return Err(unsupported("_/_", args.first())),
    })
}

fn modulo<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err(Fault::new("modulus by zero"));
        }
        [Value::Int(a), Value::Int(b)] => Value::Int(
            a.checked_rem(*b)
                .ok_or_else(|| Fault::new("integer overflow"))?,
        ),
        [Value::Uint(a), Value::Uint(b)] => Value::Uint(a.checked_rem(*b).unwrap_or_default()),
        [Value::Int(_) | Value::Uint(_), _] => return Err(Fault::no_such_overload()),
        _ => return Err(unsupported("_%_", args.first())),
    })
}

fn negate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match args {
        [Value::Int(value)] => Value::Int(
            value
                .checked_neg()
                .ok_or_else(|| Fault::new("integer overflow"))?,
        ),
        [Value::Double(value)] => Value::Double(-value),
        [Value::Duration(nanos)] => Value::Duration(
            nanos
                .checked_neg()
                .ok_or_else(|| Fault::new("integer overflow"))?,
        ),
        [Value::Bool(_)] => return Err(Fault::no_such_overload()),
        _ => return Err(unsupported("-_", args.first())),
    })
}

fn not<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(Fault::no_such_overload()),
    }
}

fn ordered<'a>(args: &[Value<'a>], name: &str, holds: fn(Ordering) -> bool) -> Outcome<'a> {
    let [first, second] = args else {
        return Err(Fault::no_such_overload());
    };
    match first {
        Value::List(_)
        | Value::Map(_)
        | Value::Null
        | Value::Type(_)
        | Value::Optional(_)
        | Value::Object(_) => Err(unsupported(name, Some(first))),
        _ => Ok(Value::Bool(holds(compare(first, second)?))),
    }
}

fn is_in<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(match args {
        [wanted, Value::List(list)] => list_contains(list, wanted)?,
        [wanted, Value::Map(map)] => map.find(wanted)?.is_some(),
        _ => return Err(Fault::no_such_overload()),
    }))
}

/// Reports whether a list contains a value. An error of a comparison counts only if the value is
/// not found.
pub(crate) fn list_contains<'a>(list: &List<'a>, wanted: &Value<'a>) -> Result<bool, Fault> {
    let mut fault = None;
    for item in list.iter() {
        match item.and_then(|item| equal(&item, wanted)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(found) => {
                fault.get_or_insert(found);
            }
        }
    }
    fault.map_or(Ok(false), Err)
}

fn contains(list: &[Value<'_>], wanted: &Value<'_>) -> Result<bool, Fault> {
    for item in list {
        if equal(item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn size<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(unsupported("size", args.first())),
    }
}

fn optional_value<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(Fault::new("optional.none() dereference")),
        _ => Err(super::no_overload("value", args)),
    }
}

fn unwrap<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list)] = args else {
        return Err(super::no_overload("optional.unwrap", args));
    };
    let mut present = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(value)) => present.push((*value).clone()),
            Value::Optional(None) => {}
            other => {
                return Err(Fault::new(format!("value {other} is not optional")));
            }
        }
    }
    Ok(Value::list(present))
}

fn map_insert<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Map(map), rest @ ..] => insert(map.clone(), rest).map(Value::Map),
        _ => Err(super::no_overload("cel.@mapInsert", args)),
    }
}

/// Inserts a key and a value, or the entries of a map. The map is changed in place if nothing else
/// refers to it.
pub(crate) fn insert<'a>(map: Map<'a>, added: &[Value<'a>]) -> Result<Map<'a>, Fault> {
    let mut entries = match map.entries {
        Entries::Values(entries) => entries,
        Entries::Json { .. } => {
            let mut copied = Vec::new();
            for key in map.keys() {
                if let Some(value) = map.find(&key)? {
                    copied.push((key, value));
                }
            }
            match Map::new(copied)?.entries {
                Entries::Values(entries) => entries,
                Entries::Json { .. } => return Err(Fault::no_such_overload()),
            }
        }
    };
    let changed = Arc::make_mut(&mut entries);
    let mut put = |key: Value<'a>, value: Value<'a>| {
        let place = Key::of(&key)?;
        if changed.contains_key(&place) {
            let message = format!("insert failed: key {key} already exists");
            return Err(Fault::new(message));
        }
        changed.insert(place, (key, value));
        Ok(())
    };
    match added {
        [key, value] => put(key.clone(), value.clone())?,
        [Value::Map(update)] => {
            for key in update.keys() {
                if let Some(value) = update.find(&key)? {
                    put(key, value)?;
                }
            }
        }
        _ => return Err(Fault::no_such_overload()),
    }
    Ok(Map {
        entries: Entries::Values(entries),
    })
}
