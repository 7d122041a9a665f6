//! Size of a value as JSON. API servers limit this size for requests and stored objects.

use std::io::{self, Write};

use serde_json::Value;

/// Returns the number of bytes of a value as compact JSON, without allocating memory.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::size::json_size;
/// use serde_json::json;
///
/// assert_eq!(json_size(&json!({"a": [1, "b"]})), r#"{"a":[1,"b"]}"#.len());
/// ```
pub fn json_size(value: &Value) -> usize {
    let mut count = Count(0);
    // Neither serializing a `Value` nor counting bytes can fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
