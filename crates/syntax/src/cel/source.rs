//! Source text of an expression, and the errors that refer to positions in it.

use std::fmt::Write;

/// Number of errors that are reported for one expression, as in cel-go.
const ERRORS_MAX: usize = 100;

/// Source text with the positions of its lines. Offsets count code points.
#[derive(Debug, Clone)]
pub struct Source {
    chars: Vec<char>,
    /// Offset of the first code point of each line.
    lines: Vec<usize>,
}

/// An error at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Offset in code points, or `None` if the error concerns the whole expression.
    pub offset: Option<usize>,
    /// Message, in the words of cel-go.
    pub message: String,
}

impl Source {
    /// Creates the source of an expression.
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let ends = chars.iter().enumerate().filter(|(_, c)| **c == '\n');
        let lines = std::iter::once(0)
            .chain(ends.map(|(index, _)| index + 1))
            .collect();
        Self { chars, lines }
    }

    /// Returns the code points of the text.
    pub fn chars(&self) -> &[char] {
        &self.chars
    }

    /// Returns the line, from 1, and the column, from 0, of an offset.
    pub fn location(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self
            .lines
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        (line, offset.saturating_sub(start))
    }

    fn line(&self, line: usize) -> &[char] {
        let start = self
            .lines
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        let end = match self.lines.get(line) {
            Some(next) => next.saturating_sub(1),
            None => self.chars.len(),
        };
        self.chars.get(start..end).unwrap_or_default()
    }

    /// Formats errors as cel-go prints them: ordered by position, with the line and a mark.
    pub fn display(&self, issues: &[Issue]) -> String {
        let mut sorted: Vec<&Issue> = issues.iter().take(ERRORS_MAX).collect();
        sorted.sort_by_key(|issue| issue.offset.map(|offset| self.location(offset)));
        let mut texts: Vec<String> = sorted.iter().map(|issue| self.display_one(issue)).collect();
        if let Some(more) = issues
            .len()
            .checked_sub(ERRORS_MAX)
            .filter(|more| *more > 0)
        {
            texts.push(format!("{more} more errors were truncated"));
        }
        texts.join("\n")
    }

    fn display_one(&self, issue: &Issue) -> String {
        /// Maximum length of a line that is printed, in bytes, as in cel-go.
        const SNIPPET_MAX: usize = 16_384;
        let Some(offset) = issue.offset else {
            return format!("ERROR: <input>:-1:0: {}", issue.message);
        };
        let (line, column) = self.location(offset);
        let mut text = format!("ERROR: <input>:{line}:{}: {}", column + 1, issue.message);
        let snippet = self.line(line);
        if snippet.iter().map(|c| c.len_utf8()).sum::<usize>() > SNIPPET_MAX {
            return text;
        }
        let shown: String = snippet
            .iter()
            .map(|c| if *c == '\t' { ' ' } else { *c })
            .collect();
        let dots: String = snippet
            .iter()
            .take(column)
            .map(|c| if c.is_ascii() { '.' } else { '\u{ff0e}' })
            .collect();
        let mark = match snippet.get(column) {
            Some(c) if !c.is_ascii() => '\u{ff3e}',
            _ => '^',
        };
        let _ = write!(text, "\n | {shown}\n | {dots}{mark}");
        text
    }
}
