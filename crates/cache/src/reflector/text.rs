//! Functions that find the end of a JSON value without parsing the value. Invalid JSON is detected
//! later, when the value is parsed.

/// Returns the first position at or after `at` that is not white space.
pub(crate) fn skip_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let space = rest
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r'));
    at.saturating_add(space.unwrap_or(rest.len()))
}

/// Returns the end of the value that starts at `at`; `None` if the text ends before the value does.
pub(crate) fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'{' => object_end(text, at),
        b'[' => balanced_end(text, at),
        b'"' => string_end(text, at.checked_add(1)?),
        b',' | b':' | b']' | b'}' => None,
        _ => {
            let rest = text.get(at..)?;
            let length = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\t' | b'\r'));
            at.checked_add(length.unwrap_or(rest.len()))
        }
    }
}

/// Returns the end of the JSON object that starts at `at`; `None` if the text ends before the
/// object does.
pub(crate) fn object_end(text: &[u8], at: usize) -> Option<usize> {
    end::<b'{', b'}'>(text, at)
}

fn balanced_end(text: &[u8], at: usize) -> Option<usize> {
    end::<b'[', b']'>(text, at)
}

fn end<const OPEN: u8, const CLOSE: u8>(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        let rest = text.get(at..)?;
        let hit = rest
            .iter()
            .position(|byte| *byte == b'"' || *byte == OPEN || *byte == CLOSE)?;
        let byte = rest.get(hit).copied()?;
        at = at.checked_add(hit)?.checked_add(1)?;
        if byte == b'"' {
            at = string_end(text, at)?;
        } else if byte == OPEN {
            depth = depth.checked_add(1)?;
        } else {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        }
    }
}

/// Returns the end of the string whose first character is at `at`.
fn string_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let hit = rest
            .iter()
            .position(|byte| *byte == b'"' || *byte == b'\\')?;
        let escaped = rest.get(hit) == Some(&b'\\');
        at = at.checked_add(hit)?.checked_add(1)?;
        if !escaped {
            return Some(at);
        }
        at = at.checked_add(1)?;
    }
}
