//! What this command prints.

use std::io::{self, Write};

/// Prints. A reader that went away is no reason to stop an operator or a control plane.
pub(crate) fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// One line of what goes on.
pub(crate) fn line(what: &str, text: &str) {
    write(&format!("   {what:<14} {text}\n"));
}

/// Text of others on one line: what would control the terminal is shown instead.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => plain.extend(char.escape_default()),
            false => plain.push(char),
        }
    }
    plain
}
