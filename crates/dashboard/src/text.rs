//! Text that fits a number of columns of a terminal.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Formats a duration in a readable unit.
pub fn human(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1_000.0;
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.0} s", ms / 1_000.0),
        ms if ms < 3_600_000.0 => format!("{:.0} min", ms / 60_000.0),
        ms => format!("{:.0} h", ms / 3_600_000.0),
    }
}

/// Converts seconds to a duration; a value that is not valid becomes zero.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Returns the number of columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns text of other programs on one line: control characters are escaped, so that they do not
/// act on the terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\t' => plain.push_str("    "),
            char if char.is_control() => plain.extend(char.escape_default()),
            char => plain.push(char),
        }
    }
    plain
}

/// Cuts a text to a number of columns; a cut text ends with `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for char in text.chars() {
        used += char.width().unwrap_or(0);
        if used > columns {
            break;
        }
        short.push(char);
    }
    if columns > 0 {
        short.push('…');
    }
    short
}

/// Cuts or fills a text to exactly a number of columns.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut text = cut(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Removes the escape sequences of a terminal, such as colours, from the output of the compiler.
pub(crate) fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => {
                // A sequence of the form ESC [ parameters letter.
                if chars.next() == Some('[') {
                    let _ = chars.find(char::is_ascii_alphabetic);
                }
            }
            char => plain.push(char),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits_its_columns() {
        assert_eq!(fit("robot", 7), "robot  ");
        assert_eq!(fit("robot-one", 7), "robot-…");
        assert_eq!(cut("robot", 5), "robot");
        // A character of two columns is not cut in the middle.
        assert_eq!(fit("日本語", 4), "日… ");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn control_characters_do_not_act_on_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\tc"), "a\\u{1b}[2Jb    c");
        assert_eq!(
            without_escapes("\u{1b}[1m\u{1b}[91merror\u{1b}[0m: x"),
            "error: x"
        );
    }
}
