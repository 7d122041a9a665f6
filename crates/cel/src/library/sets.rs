//! Functions that treat lists as sets.

use super::lists::contains_all;
use super::operators::list_contains;
use super::{Function, no_overload};
use crate::value::{Outcome, Value};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "sets.contains" => |args| match args {
            [Value::List(list), Value::List(part)] => Ok(Value::Bool(contains_all(list, part)?)),
            _ => Err(no_overload("sets.contains", args)),
        },
        "sets.equivalent" => |args| match args {
            [Value::List(a), Value::List(b)] => {
                Ok(Value::Bool(contains_all(a, b)? && contains_all(b, a)?))
            }
            _ => Err(no_overload("sets.equivalent", args)),
        },
        "sets.intersects" => intersects,
        _ => return None,
    })
}

fn intersects<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(a), Value::List(b)] = args else {
        return Err(no_overload("sets.intersects", args));
    };
    for item in a.iter() {
        if list_contains(b, &item?) == Ok(true) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
