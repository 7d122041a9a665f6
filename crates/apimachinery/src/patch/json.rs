//! JSON patch with the rules of the API server.
//!
//! Kubernetes' library is laxer than RFC 6902 in details that clients rely on: `replace` sets a
//! missing field, `copy` of a missing field copies null, a missing field passes a `test` for null,
//! and a negative index counts from the end.

use serde_json::{Map, Value};

use super::PatchError;
use crate::golang;
use crate::size::json_size;

/// Maximum nesting depth of an object, which is the depth that serde_json parses at most.
const DEPTH_MAX: usize = 127;
/// Maximum size of all values that the `copy` operations of a patch add, in bytes of JSON. The
/// limit prevents a small patch from creating a huge object. The API server has the same limit for
/// `copy` operations and for request bodies.
const COPIED_MAX: usize = 3 * 1024 * 1024;

/// Applies an RFC 6902 JSON patch. If an operation fails, the object is unchanged.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::patch::json_patch;
/// use serde_json::json;
///
/// let mut object = json!({"spec": {"size": 1}});
/// json_patch(&mut object, &json!([{"op": "replace", "path": "/spec/size", "value": 2}]))?;
/// assert_eq!(object, json!({"spec": {"size": 2}}));
/// # Ok::<(), opkit_apimachinery::patch::PatchError>(())
/// ```
///
/// # Errors
///
/// [`PatchError::Malformed`] if the document is not a list of operations.
/// [`PatchError::Unprocessable`] if an operation is unknown or cannot be applied to the object, or
/// if the `copy` operations together add more than 3 MiB.
pub fn json_patch(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = patch
        .as_array()
        .ok_or_else(|| not_a(patch, "[]handlers.jsonPatchOp"))?;
    let mut patched = object.clone();
    let mut copies = COPIED_MAX;
    for operation in operations {
        let operation = operation
            .as_object()
            .ok_or_else(|| not_a(operation, "handlers.jsonPatchOp"))?;
        apply(&mut patched, operation, &mut copies)?;
    }
    *object = patched;
    Ok(())
}

/// Applies one operation. `copies` is the number of bytes that `copy` operations may still add.
fn apply(
    object: &mut Value,
    operation: &Map<String, Value>,
    copies: &mut usize,
) -> Result<(), PatchError> {
    let name = text(operation, "op")?;
    let path = Path::parse(text(operation, "path")?)?;
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match name {
        "add" => {
            path.check_depth(operation.get("value").unwrap_or(&Value::Null))?;
            path.add(object, value())
                .map_err(|flaw| flaw.of("add", &path))
        }
        "remove" => path
            .remove(object)
            .map(drop)
            .map_err(|flaw| flaw.of("remove", &path)),
        "replace" => {
            path.check_depth(operation.get("value").unwrap_or(&Value::Null))?;
            path.replace(object, value())
                .map_err(|flaw| flaw.of_replace(&path))
        }
        "move" => {
            let from = Path::parse(text(operation, "from")?)?;
            let moved = from.remove(object);
            let moved = moved.map_err(|flaw| flaw.of_source("move", &from))?;
            path.check_depth(&moved)?;
            path.add(object, moved)
                .map_err(|flaw| flaw.of_destination("move", &path))
        }
        "copy" => {
            let from = Path::parse(text(operation, "from")?)?;
            let copied = from.get(object);
            let copied = copied.map_err(|flaw| flaw.of_source("copy", &from))?;
            let copied = copied.unwrap_or(&Value::Null);
            path.check_depth(copied)?;
            *copies = copies
                .checked_sub(json_size(copied))
                .ok_or_else(copy_limit_exceeded)?;
            let copied = copied.clone();
            path.add(object, copied)
                .map_err(|flaw| flaw.of_destination("copy", &path))
        }
        "test" => {
            let actual = path.get(object).map_err(|flaw| flaw.of_test(&path))?;
            let actual = actual.unwrap_or(&Value::Null);
            if *actual == value() {
                return Ok(());
            }
            Err(unprocessable(format!(
                "testing value {} failed: test failed",
                path.text
            )))
        }
        other => Err(unprocessable(format!("Unexpected kind: {other}"))),
    }
}

/// The reason why an operation does not apply at a path.
enum Flaw {
    /// There is no object or list that could contain the path.
    NoParent,
    /// The parent has no such key or index.
    NoKey(String),
}

impl Flaw {
    fn of(self, operation: &str, path: &Path<'_>) -> PatchError {
        unprocessable(match self {
            Self::NoParent => format!(
                "{operation} operation does not apply: doc is missing path: {}: missing value",
                golang::quote(path.text)
            ),
            Self::NoKey(why) => format!("error in {operation} for path: '{}': {why}", path.text),
        })
    }

    fn of_replace(self, path: &Path<'_>) -> PatchError {
        let missing = match self {
            Self::NoParent => "path",
            Self::NoKey(_) => "key",
        };
        unprocessable(format!(
            "replace operation does not apply: doc is missing {missing}: {}: missing value",
            path.text
        ))
    }

    fn of_source(self, operation: &str, from: &Path<'_>) -> PatchError {
        unprocessable(match self {
            Self::NoParent => format!(
                "{operation} operation does not apply: doc is missing from path: {}: missing value",
                from.text
            ),
            Self::NoKey(why) if operation == "copy" => {
                format!("error in copy for from: '{}': {why}", from.text)
            }
            Self::NoKey(why) => format!("error in {operation} for path: '{}': {why}", from.last),
        })
    }

    fn of_destination(self, operation: &str, path: &Path<'_>) -> PatchError {
        unprocessable(match self {
            Self::NoParent => format!(
                "{operation} operation does not apply: doc is missing destination path: {}: \
                 missing value",
                path.text
            ),
            Self::NoKey(why) if operation == "copy" => {
                format!("error while adding value during copy: {why}")
            }
            Self::NoKey(why) => format!("error in {operation} for path: '{}': {why}", path.text),
        })
    }

    fn of_test(self, path: &Path<'_>) -> PatchError {
        unprocessable(match self {
            Self::NoParent => format!(
                "test operation does not apply: is missing path: {}: missing value",
                path.text
            ),
            Self::NoKey(why) => format!("error in test for path: '{}': {why}", path.text),
        })
    }
}

/// A JSON pointer, split into its last segment and the segments of the parent.
struct Path<'t> {
    text: &'t str,
    parents: Vec<String>,
    last: String,
}

impl<'t> Path<'t> {
    fn parse(text: &'t str) -> Result<Self, PatchError> {
        let steps = text.strip_prefix('/').map(|rest| rest.split('/'));
        let mut parents: Vec<String> = steps
            .into_iter()
            .flatten()
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect();
        let last = parents.pop().ok_or_else(|| missing(text))?;
        Ok(Self {
            text,
            parents,
            last,
        })
    }

    fn parent<'o>(&self, object: &'o mut Value) -> Result<&'o mut Value, Flaw> {
        let step = |at: Option<&'o mut Value>, step: &String| match at? {
            Value::Object(fields) => fields.get_mut(step),
            Value::Array(items) => {
                let index = index(step, items.len())?;
                items.get_mut(index)
            }
            _ => None,
        };
        let parent = self.parents.iter().fold(Some(object), step);
        parent
            .filter(|parent| parent.is_object() || parent.is_array())
            .ok_or(Flaw::NoParent)
    }

    /// Returns the value at this path, or `None` if the parent is an object without the field.
    fn get<'o>(&self, object: &'o mut Value) -> Result<Option<&'o Value>, Flaw> {
        match self.parent(object)? {
            Value::Object(fields) => Ok(fields.get(&self.last)),
            Value::Array(items) => {
                let found = index(&self.last, items.len()).and_then(|index| items.get(index));
                found.map(Some).ok_or_else(|| self.bad_index())
            }
            _ => Err(Flaw::NoParent),
        }
    }

    fn add(&self, object: &mut Value, value: Value) -> Result<(), Flaw> {
        match self.parent(object)? {
            Value::Object(fields) => {
                fields.insert(self.last.clone(), value);
                Ok(())
            }
            Value::Array(items) if self.last == "-" => {
                items.push(value);
                Ok(())
            }
            Value::Array(items) => {
                // For an insertion, a negative index counts from the position after the last item.
                let place = index(&self.last, items.len() + 1);
                let place = place.filter(|place| *place <= items.len());
                items.insert(place.ok_or_else(|| self.bad_index())?, value);
                Ok(())
            }
            _ => Err(Flaw::NoParent),
        }
    }

    fn remove(&self, object: &mut Value) -> Result<Value, Flaw> {
        match self.parent(object)? {
            Value::Object(fields) => fields.remove(&self.last).ok_or_else(|| {
                let key = &self.last;
                Flaw::NoKey(format!(
                    "Unable to remove nonexistent key: {key}: missing value"
                ))
            }),
            Value::Array(items) => {
                let place = index(&self.last, items.len()).filter(|place| *place < items.len());
                Ok(items.remove(place.ok_or_else(|| self.bad_index())?))
            }
            _ => Err(Flaw::NoParent),
        }
    }

    fn replace(&self, object: &mut Value, value: Value) -> Result<(), Flaw> {
        match self.parent(object)? {
            Value::Object(fields) => {
                fields.insert(self.last.clone(), value);
                Ok(())
            }
            Value::Array(items) => {
                let found = index(&self.last, items.len()).and_then(|index| items.get_mut(index));
                *found.ok_or_else(|| self.bad_index())? = value;
                Ok(())
            }
            _ => Err(Flaw::NoParent),
        }
    }

    /// Returns an error if the object would exceed [`DEPTH_MAX`] with the value at this path.
    fn check_depth(&self, value: &Value) -> Result<(), PatchError> {
        if self.parents.len() + 1 + depth(value) <= DEPTH_MAX {
            return Ok(());
        }
        Err(unprocessable(format!(
            "the value is too deep: {}",
            self.text
        )))
    }

    fn bad_index(&self) -> Flaw {
        let index = &self.last;
        Flaw::NoKey(format!(
            "Unable to access invalid index: {index}: invalid index referenced"
        ))
    }
}

/// Returns the nesting depth of a value. The recursion is bounded because every value was parsed by
/// serde_json or checked by `check_depth`.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Converts a segment of a path to an index into a list of this length.
fn index(step: &str, length: usize) -> Option<usize> {
    match step.strip_prefix('-') {
        Some(back) => length.checked_sub(back.parse().ok()?),
        None => step.parse().ok(),
    }
}

fn text<'o>(operation: &'o Map<String, Value>, name: &str) -> Result<&'o str, PatchError> {
    match operation.get(name) {
        None => Err(unprocessable(format!("operation missing {name} field"))),
        Some(Value::String(text)) => Ok(text),
        Some(other) => {
            let field = format!("Go struct field jsonPatchOp.{name} of type string");
            Err(PatchError::Malformed(format!(
                "error decoding patch: json: cannot unmarshal {} into {field}",
                json_kind(other)
            )))
        }
    }
}

fn missing(path: &str) -> PatchError {
    unprocessable(format!("doc is missing path: {}", golang::quote(path)))
}

fn copy_limit_exceeded() -> PatchError {
    unprocessable(format!(
        "Unable to complete the copy, the accumulated size increase of copy exceeds the limit {COPIED_MAX}"
    ))
}

fn unprocessable(message: String) -> PatchError {
    PatchError::Unprocessable(message)
}

fn not_a(value: &Value, wanted: &str) -> PatchError {
    let kind = json_kind(value);
    PatchError::Malformed(format!(
        "error decoding patch: json: cannot unmarshal {kind} into Go value of type {wanted}"
    ))
}

/// Returns the JSON type of a value as Go's JSON decoder names it in errors.
pub(super) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
