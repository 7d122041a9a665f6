//! Output of this command.

use std::io::{self, Write};

/// Prints to stdout. If the reader has closed the pipe, the operator and the control plane keep
/// running.
pub(crate) fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a progress line with a label.
pub(crate) fn line(what: &str, text: &str) {
    write(&format!("   {what:<14} {text}\n"));
}

/// Returns text from other programs on one line. Control characters are escaped, so that they do
/// not act on the terminal.
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
