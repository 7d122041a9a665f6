//! A Rust file: its text, its syntax tree, and edits of the text at positions of the tree.
//!
//! The syntax tree only finds positions. Text that no edit covers stays as it is, byte by byte,
//! with its comments and its formatting.

use std::ops::Range;

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;

use crate::{Error, Result};

pub(crate) mod attribute;

#[cfg(test)]
mod tests;

/// Parsed Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) file: syn::File,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self> {
        if text.starts_with('\u{feff}') {
            let reason = "opkit does not edit a file with a byte order mark: save it without one";
            return Err(Error::source(path, 1, reason));
        }
        let file: syn::File = syn::parse_str(text).map_err(|error| {
            let line = error.span().start().line;
            Error::source(path, line, format!("this is not valid Rust: {error}"))
        })?;
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            file,
        })
    }

    /// Returns the bytes of a part of the syntax tree, with its attributes.
    pub(crate) fn range(&self, part: &impl ToTokens) -> Range<usize> {
        part.span().byte_range()
    }

    /// Returns the text of a part of the syntax tree.
    pub(crate) fn text_of(&self, part: &impl ToTokens) -> &str {
        self.text.get(self.range(part)).unwrap_or_default()
    }

    /// Returns the error that this file is not as expected.
    pub(crate) fn refuse(&self, span: Span, reason: impl Into<String>) -> Error {
        Error::source(&self.path, span.start().line, reason)
    }

    /// Returns the number of the line that contains a position.
    pub(crate) fn line_of(&self, position: usize) -> usize {
        let before = self.text.get(..position).unwrap_or_default();
        before.matches('\n').count() + 1
    }

    /// Returns the start of the line that contains a position.
    pub(crate) fn line_start(&self, position: usize) -> usize {
        let before = self.text.get(..position).unwrap_or_default();
        before.rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Returns the end of the line that contains a position, without the line ending.
    pub(crate) fn line_end(&self, position: usize) -> usize {
        let after = self.text.get(position..).unwrap_or_default();
        let end = after.find('\n').unwrap_or(after.len());
        let is_crlf = after.get(..end).is_some_and(|line| line.ends_with('\r'));
        position + end - usize::from(is_crlf)
    }

    /// Returns the start of the line after a position, or the end of the file.
    pub(crate) fn next_line(&self, position: usize) -> usize {
        let after = self.text.get(position..).unwrap_or_default();
        after
            .find('\n')
            .map_or(self.text.len(), |newline| position + newline + 1)
    }

    /// Returns the spaces at the start of the line that contains a position.
    pub(crate) fn indent(&self, position: usize) -> &str {
        let line = self.text.get(self.line_start(position)..position);
        let line = line.unwrap_or_default();
        let code = line.trim_start_matches([' ', '\t']);
        line.get(..line.len() - code.len()).unwrap_or_default()
    }

    /// Reports whether only spaces are before a position on its line.
    pub(crate) fn is_first_on_line(&self, position: usize) -> bool {
        let line = self.text.get(self.line_start(position)..position);
        line.is_some_and(|line| line.trim().is_empty())
    }

    /// Returns the end of a comment that follows a position on the same line, if nothing but a
    /// comment follows.
    pub(crate) fn comment_end(&self, position: usize) -> Option<usize> {
        let end = self.line_end(position);
        let rest = self.text.get(position..end)?.trim();
        let is_block = rest.starts_with("/*") && rest.find("*/") == rest.len().checked_sub(2);
        (rest.starts_with("//") || is_block).then_some(end)
    }

    /// Returns the start of an item with the comments directly above it.
    pub(crate) fn start_with_comments(&self, position: usize) -> usize {
        let mut start = self.line_start(position);
        while start > 0 {
            let above = self.line_start(start - 1);
            let line = self.text.get(above..start).unwrap_or_default().trim();
            if !line.starts_with("//") || line.starts_with("//!") {
                break;
            }
            start = above;
        }
        start
    }

    /// Returns the bytes of an item with the lines that it is on, its comments, and one blank line
    /// that would be left over.
    pub(crate) fn lines_of(&self, part: &impl ToTokens) -> Range<usize> {
        let range = self.range(part);
        let start = match self.is_first_on_line(range.start) {
            true => self.start_with_comments(range.start),
            false => range.start,
        };
        let end = self.comment_end(range.end).unwrap_or(range.end);
        if end != self.line_end(range.end) {
            return start..range.end;
        }
        let mut end = self.next_line(end);
        let is_blank = |text: Option<&str>| text.is_some_and(|text| text.trim().is_empty());
        let above = start.checked_sub(1).map(|end| self.line_start(end)..start);
        let is_blank_above = above.is_none_or(|above| is_blank(self.text.get(above)));
        let below = self.next_line(end);
        if is_blank_above && end < self.text.len() && is_blank(self.text.get(end..below)) {
            end = below;
        } else if is_blank_above && end == self.text.len() && start > 0 {
            // The last item: the blank line above it goes.
            return self.line_start(start - 1)..end;
        }
        start..end
    }
}

/// Edits of one text. Positions are those of the text before all edits.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    edits: Vec<(Range<usize>, String)>,
}

impl Edits {
    /// Inserts text at a position, after the text that was inserted there before.
    pub(crate) fn insert(&mut self, position: usize, text: impl Into<String>) {
        self.edits.push((position..position, text.into()));
    }

    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.edits.push((range, text.into()));
    }

    /// Reports whether the edits insert a line break.
    pub(crate) fn has_line_break(&self) -> bool {
        self.edits.iter().any(|(_, text)| text.contains('\n'))
    }

    /// Takes over the first of other edits.
    pub(crate) fn append_first(&mut self, other: Self) {
        self.edits.extend(other.edits.into_iter().next());
    }

    pub(crate) fn delete(&mut self, range: Range<usize>) {
        self.edits.push((range, String::new()));
    }

    /// Returns the text with all edits. Inserted lines end as the lines of the text do.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.edits.sort_by_key(|(range, _)| range.start);
        let is_crlf = text.contains("\r\n");
        let mut edited = String::with_capacity(text.len());
        let mut position = 0;
        for (range, new) in &self.edits {
            let kept = text.get(position..range.start.max(position));
            edited += kept.unwrap_or_default();
            match is_crlf {
                true => edited += &new.replace("\r\n", "\n").replace('\n', "\r\n"),
                false => edited += new,
            }
            position = position.max(range.end);
        }
        edited += text.get(position..).unwrap_or_default();
        edited
    }
}

/// Returns the tokens of a part without spaces, to compare it.
pub(crate) fn tokens(part: &impl ToTokens) -> String {
    let text = part.to_token_stream().to_string();
    text.split_whitespace().collect()
}
