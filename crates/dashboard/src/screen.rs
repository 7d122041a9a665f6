//! Lines of styled text.

use std::fmt::Write;

use crate::text::{cut, fit, width};

/// Style of a part of a line. Nothing depends on colour alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Style {
    /// Plain text.
    #[default]
    Plain,
    /// Headings.
    Bold,
    /// Text that matters less: rules, ages, hints.
    Dim,
    /// The selected row.
    Selected,
    /// Something is as it should be.
    Good,
    /// A warning.
    Warning,
    /// An error.
    Error,
}

impl Style {
    /// Returns the parameters of the escape sequence that selects the style.
    pub fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Bold => "0;1",
            Self::Dim => "0;2",
            Self::Selected => "0;7",
            Self::Good => "0;32",
            Self::Warning => "0;33",
            Self::Error => "0;31",
        }
    }
}

/// Part of a line with one style.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The text, without control characters.
    pub text: String,
    /// Its style.
    pub style: Style,
}

/// One line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Parts, from left to right.
    pub spans: Vec<Span>,
}

impl Line {
    /// Creates a line with one style.
    pub(crate) fn of(text: impl Into<String>, style: Style) -> Self {
        Self::default().then(text, style)
    }

    /// Adds a part.
    #[must_use]
    pub(crate) fn then(mut self, text: impl Into<String>, style: Style) -> Self {
        self.spans.push(Span {
            text: text.into(),
            style,
        });
        self
    }

    /// Returns the number of columns.
    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// Cuts or fills the line to exactly a number of columns.
    #[must_use]
    pub(crate) fn fit(self, columns: usize) -> Self {
        let mut fitted = Self::default();
        let mut free = columns;
        let last = self.spans.len().saturating_sub(1);
        for (index, span) in self.spans.into_iter().enumerate() {
            let text = match index == last {
                true => fit(&span.text, free),
                false => cut(&span.text, free),
            };
            free = free.saturating_sub(width(&text));
            fitted = fitted.then(text, span.style);
        }
        match free {
            0 => fitted,
            free => fitted.then(" ".repeat(free), Style::Plain),
        }
    }

    /// Returns the text without styles and without spaces at the end.
    pub fn text(&self) -> String {
        let text: String = self.spans.iter().map(|span| span.text.as_str()).collect();
        text.trim_end().to_owned()
    }
}

/// Lines that fill a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Screen {
    /// All lines, each as wide as the terminal.
    pub lines: Vec<Line>,
}

impl Screen {
    /// Returns the text without styles, one line for each line of the screen.
    pub fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| line.text() + "\n");
        lines.collect()
    }

    /// Returns the escape sequences that change a terminal from the screen `before` to this one;
    /// without `before`, that draw all lines.
    pub fn ansi(&self, before: Option<&Self>) -> String {
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            if before.and_then(|before| before.lines.get(index)) == Some(line) {
                continue;
            }
            let _ = write!(text, "\x1b[{};1H", index.saturating_add(1));
            for span in &line.spans {
                let _ = write!(text, "\x1b[{}m{}", span.style.code(), span.text);
            }
            text.push_str("\x1b[0m");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_are_drawn() {
        let screen = |second: &str| Screen {
            lines: vec![
                Line::of("a", Style::Plain).fit(3),
                Line::of(second, Style::Error).fit(3),
            ],
        };
        assert_eq!(screen("b").ansi(Some(&screen("b"))), "");
        assert_eq!(
            screen("c").ansi(Some(&screen("b"))),
            "\x1b[2;1H\x1b[0;31mc  \x1b[0m"
        );
        assert!(screen("c").ansi(None).starts_with("\x1b[1;1H\x1b[0ma  "));
    }

    #[test]
    fn a_line_fits_its_columns() {
        let line = Line::of("ab", Style::Bold).then("cdef", Style::Plain);
        assert_eq!(line.clone().fit(4).text(), "abc…");
        assert_eq!(line.clone().fit(8).width(), 8);
        assert_eq!(line.fit(1).text(), "…");
    }
}
