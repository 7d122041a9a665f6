//! Functions of lists: cel-go's list library, and Kubernetes' own.

use std::cmp::Ordering;

use super::operators::list_contains;
use super::{Function, no_overload, strings};
use crate::value::{Fault, Items, List, Outcome, Value, compare, equal};

/// Maximum number of items of a list that a function creates. The cost limit of an expression is
/// lower than this number.
const ITEMS_MAX: i64 = 2_000_000;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "isSorted" => is_sorted,
        "sum" => |args| sum(args, Value::Int(0)),
        "max" => |args| extreme(args, "max", Ordering::Less),
        "min" => |args| extreme(args, "min", Ordering::Greater),
        "indexOf" => index_of,
        "lastIndexOf" => last_index_of,
        "slice" => slice,
        "flatten" => flatten,
        "sort" => |args| match args {
            [Value::List(list)] => sort(list, list),
            _ => Err(no_overload("sort", args)),
        },
        "@sortByAssociatedKeys" => |args| match args {
            [Value::List(list), Value::List(keys)] => sort(list, keys),
            _ => Err(no_overload("@sortByAssociatedKeys", args)),
        },
        "lists.range" => range,
        "reverse" => reverse,
        "distinct" => distinct,
        "first" => |args| edge(args, "first"),
        "last" => |args| edge(args, "last"),
        _ => return None,
    })
}

fn is_sorted<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list)] = args else {
        return Err(no_overload("isSorted", args));
    };
    let mut before: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(before) = &before
            && compare(before, &item).is_ok_and(Ordering::is_gt)
        {
            return Ok(Value::Bool(false));
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

/// Adds the items of a list. The sum of an empty list is `zero`.
pub(crate) fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> Outcome<'a> {
    let [Value::List(list)] = args else {
        return Err(no_overload("sum", args));
    };
    let add = super::find("_+_").ok_or_else(Fault::no_such_overload)?;
    let mut total: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        total = Some(match total {
            Some(total) => add(&[total, item])?,
            None => item,
        });
    }
    Ok(total.unwrap_or(zero))
}

/// Returns the greatest or smallest item: the item that replaces the one before it if their order
/// is `replaced`.
fn extreme<'a>(args: &[Value<'a>], name: &str, replaced: Ordering) -> Outcome<'a> {
    let [Value::List(list)] = args else {
        return Err(no_overload(name, args));
    };
    let mut found: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        found = Some(match found {
            Some(found) if compare(&found, &item) != Ok(replaced) => found,
            _ => item,
        });
    }
    found.ok_or_else(|| Fault::new(format!("{name} called on empty list")))
}

fn index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(match args {
        [Value::String(text), Value::String(part)] => strings::index_of(text, part, 0)?,
        [Value::String(text), Value::String(part), Value::Int(offset)] => {
            strings::index_of(text, part, *offset)?
        }
        [Value::List(list), wanted] => position(list.iter().enumerate(), wanted),
        _ => return Err(no_overload("indexOf", args)),
    }))
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(match args {
        [Value::String(text), Value::String(part)] => strings::last_index_of(text, part, None)?,
        [Value::String(text), Value::String(part), Value::Int(offset)] => {
            strings::last_index_of(text, part, Some(*offset))?
        }
        [Value::List(list), wanted] => {
            let backwards = (0..list.len()).rev();
            let items = backwards.filter_map(|index| Some((index, list.get(index)?)));
            position(items, wanted)
        }
        _ => return Err(no_overload("lastIndexOf", args)),
    }))
}

fn position<'a>(items: impl Iterator<Item = (usize, Outcome<'a>)>, wanted: &Value<'a>) -> i64 {
    for (index, item) in items {
        if item.and_then(|item| equal(&item, wanted)) == Ok(true) {
            return i64::try_from(index).unwrap_or(-1);
        }
    }
    -1
}

fn slice<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return Err(no_overload("slice", args));
    };
    let refused = |why: String| Fault::new(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(refused("negative indexes not supported".to_owned()));
    };
    if from > to {
        let why = "start index must be less than or equal to end index";
        return Err(refused(why.to_owned()));
    }
    if list.len() < to {
        return Err(refused(format!("list is length {}", list.len())));
    }
    let items: Result<Vec<Value<'a>>, Fault> =
        (from..to).filter_map(|index| list.get(index)).collect();
    Ok(Value::list(items?))
}

fn flatten<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (list, depth) = match args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return Err(no_overload("flatten", args)),
    };
    if depth < 0 {
        return Err(Fault::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list, depth, &mut flat)?;
    Ok(Value::list(flat))
}

fn flatten_into<'a>(list: &List<'a>, depth: i64, flat: &mut Vec<Value<'a>>) -> Result<(), Fault> {
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, flat)?,
            other => flat.push(other),
        }
    }
    Ok(())
}

/// Sorts a list by keys, one for each item.
fn sort<'a>(list: &List<'a>, keys: &List<'a>) -> Outcome<'a> {
    if list.len() != keys.len() {
        return Err(Fault::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let keys = keys.values()?;
    let Some(first) = keys.first() else {
        return Ok(Value::List(list.clone()));
    };
    if compare(first, first).is_err() && !matches!(first, Value::Double(_)) {
        return Err(Fault::new("list elements must be comparable"));
    }
    let name = first.type_name();
    if keys.iter().any(|key| key.type_name() != name) {
        return Err(Fault::new("list elements must have the same type"));
    }
    let mut sorted: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(list.values()?).collect();
    sorted.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or(Ordering::Equal));
    Ok(Value::list(
        sorted.into_iter().map(|(_, item)| item).collect(),
    ))
}

fn range<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(count)] if *count > ITEMS_MAX => Err(Fault::Budget),
        [Value::Int(count)] => Ok(Value::list((0..*count).map(Value::Int).collect())),
        _ => Err(no_overload("lists.range", args)),
    }
}

fn reverse<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list)] = args else {
        return Err(no_overload("reverse", args));
    };
    let mut items = list.values()?;
    items.reverse();
    Ok(Value::list(items))
}

fn distinct<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::List(list)] = args else {
        return Err(no_overload("distinct", args));
    };
    if list.len() == 0 {
        return Ok(Value::List(list.clone()));
    }
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        if !unique.iter().any(|known| equal(&item, known) == Ok(true)) {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}

fn edge<'a>(args: &[Value<'a>], name: &str) -> Outcome<'a> {
    let [Value::List(list)] = args else {
        return Err(no_overload(name, args));
    };
    let index = match name {
        "first" => 0,
        _ => list.len().saturating_sub(1),
    };
    let item = list.get(index).transpose()?;
    Ok(Value::optional(item))
}

/// Returns the number of items that adding two lists copies.
pub(crate) fn copied(first: &List<'_>, second: &List<'_>) -> u64 {
    let first = match &first.items {
        Items::Values(values) if std::sync::Arc::strong_count(values) == 1 => 0,
        _ => first.len(),
    };
    (first + second.len()) as u64
}

/// Reports whether all items of one list are in another.
pub(super) fn contains_all<'a>(list: &List<'a>, part: &List<'a>) -> Result<bool, Fault> {
    for item in part.iter() {
        if !list_contains(list, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
