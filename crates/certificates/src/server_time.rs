//! The clock of the API server, as seen in its responses.

use jiff::Timestamp;
use serde_json::Value;

/// Difference between two clocks that is usual, in seconds. A larger one is logged, and a report
/// that is further in the future is wrong.
pub(crate) const TOLERANCE: i64 = 5 * 60;

/// Returns the time at which the API server stored the last write of `manager` to an object, in
/// seconds since 1970.
pub(crate) fn of_last_write(object: &Value, manager: &str) -> Option<i64> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    entries
        .iter()
        .filter(|entry| entry.get("manager").and_then(Value::as_str) == Some(manager))
        .filter_map(|entry| entry.get("time")?.as_str()?.parse::<Timestamp>().ok())
        .map(Timestamp::as_second)
        .max()
}
