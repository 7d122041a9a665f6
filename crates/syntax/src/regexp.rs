//! Syntax of Go's regular expressions (RE2), which Kubernetes uses for `pattern`.
//!
//! The crate `regex` accepts expressions that Go refuses, such as set operations in character
//! classes and `\<`, so a pattern that Rust compiles is not necessarily valid in a CRD. This module
//! checks the syntax only: it does not match. Names of Unicode scripts and the total size of nested
//! repetitions are not checked.

/// Maximum number of a repetition, as in Go.
const REPEAT_MAX: u32 = 1_000;

/// General categories of Unicode, and the classes that Go defines itself.
const CATEGORIES: [&str; 40] = [
    "Any", "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "LC", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc",
    "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc",
    "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs", "ASCII",
];

/// Names in `[:alpha:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Returns Go's error for an expression, or `None` if the expression is valid.
///
/// # Examples
/// ```
/// use opkit_syntax::regexp;
///
/// assert_eq!(regexp::error("^[a-z]+$"), None);
/// assert_eq!(regexp::error("^[a-z+$").as_deref(), Some("missing closing ]: `[a-z+$`"));
/// assert_eq!(
///     regexp::error("(?=a)").as_deref(),
///     Some("invalid or unsupported Perl syntax: `(?=`"),
/// );
/// ```
pub fn error(expression: &str) -> Option<String> {
    let mut parser = Parser {
        rest: expression,
        groups: 0,
        has_operand: false,
    };
    parser.parse(expression).err()
}

/// An expression of which a part was parsed.
struct Parser<'a> {
    rest: &'a str,
    /// Number of groups that are open.
    groups: usize,
    /// Whether the previous part can be repeated.
    has_operand: bool,
}

type Parsed<T = ()> = Result<T, String>;

/// Returns an error about a part of the expression, in Go's form.
fn invalid<T>(what: &str, part: &str) -> Parsed<T> {
    Err(format!("{what}: `{part}`"))
}

/// Returns the text of `before` that was consumed until only `after` was left.
fn consumed<'a>(before: &'a str, after: &str) -> &'a str {
    let length = before.len().saturating_sub(after.len());
    before.get(..length).unwrap_or(before)
}

impl Parser<'_> {
    fn parse(&mut self, whole: &str) -> Parsed {
        let mut last_repeat = None;
        while let Some(next) = self.rest.chars().next() {
            let before = self.rest;
            let mut repeat = None;
            match next {
                '(' if before.starts_with("(?") => self.flags()?,
                '(' => {
                    self.skip(1);
                    self.groups = self.groups.saturating_add(1);
                    self.has_operand = false;
                }
                '|' => {
                    self.skip(1);
                    self.has_operand = false;
                }
                ')' => {
                    let Some(groups) = self.groups.checked_sub(1) else {
                        return invalid("unexpected )", whole);
                    };
                    self.groups = groups;
                    self.skip(1);
                    self.has_operand = true;
                }
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.repeat(before, last_repeat)?;
                    repeat = Some(before);
                }
                '{' => {
                    if let Some((min, max, after)) = counts(before) {
                        let is_too_large =
                            min > REPEAT_MAX || max.is_some_and(|max| max > REPEAT_MAX);
                        if is_too_large || max.is_some_and(|max| min > max) {
                            return invalid("invalid repeat count", consumed(before, after));
                        }
                        self.rest = after;
                        self.repeat(before, last_repeat)?;
                        repeat = Some(before);
                    } else {
                        self.skip(1);
                        self.has_operand = true;
                    }
                }
                '\\' => self.escape()?,
                next => {
                    self.skip(next.len_utf8());
                    self.has_operand = true;
                }
            }
            last_repeat = repeat;
        }
        match self.groups {
            0 => Ok(()),
            _ => invalid("missing closing )", whole),
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Checks a repetition that starts at `before`; the parser is after its operator.
    fn repeat(&mut self, before: &str, last_repeat: Option<&str>) -> Parsed {
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
        }
        if let Some(last) = last_repeat {
            let operators = consumed(last, self.rest);
            return invalid("invalid nested repetition operator", operators);
        }
        match self.has_operand {
            true => Ok(()),
            false => {
                let operator = consumed(before, self.rest);
                invalid("missing argument to repetition operator", operator)
            }
        }
    }

    /// Parses the start of a group with a name or with flags, such as `(?P<name>` or `(?i:`.
    fn flags(&mut self) -> Parsed {
        let start = self.rest;
        let name = start
            .strip_prefix("(?P<")
            .or_else(|| start.strip_prefix("(?<"));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let Some((name, rest)) = name.split_once('>') else {
                return invalid("invalid named capture", start);
            };
            let is_word = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return invalid("invalid named capture", consumed(start, rest));
            }
            self.rest = rest;
            self.groups = self.groups.saturating_add(1);
            self.has_operand = false;
            return Ok(());
        }
        self.skip(2);
        let (mut is_negative, mut has_flag) = (false, false);
        while let Some(letter) = self.rest.chars().next() {
            self.skip(letter.len_utf8());
            match letter {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_negative => (is_negative, has_flag) = (true, false),
                ':' | ')' if !is_negative || has_flag => {
                    if letter == ':' {
                        self.groups = self.groups.saturating_add(1);
                        self.has_operand = false;
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        let operator = consumed(start, self.rest);
        invalid("invalid or unsupported Perl syntax", operator)
    }

    /// Parses an escape sequence outside of a character class.
    fn escape(&mut self) -> Parsed {
        self.has_operand = true;
        match self.rest.chars().nth(1) {
            Some('A' | 'b' | 'B' | 'z' | 'd' | 'D' | 's' | 'S' | 'w' | 'W') => {
                self.skip(2);
                Ok(())
            }
            Some('C') => invalid("invalid escape sequence", "\\C"),
            Some('Q') => {
                let literal = self.rest.get(2..).unwrap_or_default();
                self.rest = literal.split_once("\\E").map_or("", |(_, rest)| rest);
                Ok(())
            }
            Some('p' | 'P') => self.unicode_class(),
            _ => self.character_escape().map(drop),
        }
    }

    /// Parses `\pN` or `\p{Name}`.
    fn unicode_class(&mut self) -> Parsed {
        let start = self.rest;
        self.skip(2);
        let name = match self.rest.strip_prefix('{') {
            Some(braced) => {
                let Some((name, rest)) = braced.split_once('}') else {
                    return invalid("invalid character class range", start);
                };
                self.rest = rest;
                name
            }
            None => {
                let before = self.rest;
                let length = before.chars().next().map_or(0, char::len_utf8);
                self.skip(length);
                consumed(before, self.rest)
            }
        };
        let name = name.strip_prefix('^').unwrap_or(name);
        // Names of scripts have more than two letters.
        let is_script = name.len() > 2
            && name.starts_with(|first: char| first.is_ascii_uppercase())
            && name
                .chars()
                .all(|letter| letter == '_' || letter.is_ascii_alphabetic());
        match is_script || CATEGORIES.contains(&name) {
            true => Ok(()),
            false => invalid("invalid character class range", consumed(start, self.rest)),
        }
    }

    /// Parses an escape sequence for one character, and returns the character's number.
    fn character_escape(&mut self) -> Parsed<u32> {
        let start = self.rest;
        self.skip(1);
        let Some(letter) = self.rest.chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        self.skip(letter.len_utf8());
        let found = match letter {
            '1'..='7' if !self.rest.starts_with(|next| matches!(next, '0'..='7')) => None,
            '0'..='7' => Some(self.octal(letter)),
            'x' => self.hexadecimal(),
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            letter if letter.is_ascii() && !letter.is_ascii_alphanumeric() => {
                Some(u32::from(letter))
            }
            _ => None,
        };
        match found {
            Some(found) => Ok(found),
            None => invalid("invalid escape sequence", consumed(start, self.rest)),
        }
    }

    fn octal(&mut self, first: char) -> u32 {
        let mut value = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|next| next.to_digit(8)) else {
                break;
            };
            value = value.saturating_mul(8).saturating_add(digit);
            self.skip(1);
        }
        value
    }

    /// Parses the digits of `\x41` or `\x{10FFFF}`. The parser stops after the digit that is not
    /// valid, which is where Go's message ends.
    fn hexadecimal(&mut self) -> Option<u32> {
        if !self.rest.starts_with('{') {
            let high = self.next()?;
            let low = self.next()?;
            return Some(
                high.to_digit(16)?
                    .saturating_mul(16)
                    .saturating_add(low.to_digit(16)?),
            );
        }
        self.skip(1);
        let mut value = None;
        loop {
            let digit = self.next()?;
            if digit == '}' {
                return value;
            }
            let digit = digit.to_digit(16)?;
            let next = value
                .unwrap_or(0_u32)
                .saturating_mul(16)
                .saturating_add(digit);
            if next > u32::from(char::MAX) {
                return None;
            }
            value = Some(next);
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    /// Parses a character class in brackets.
    fn class(&mut self) -> Parsed {
        let start = self.rest;
        self.skip(1);
        if self.rest.starts_with('^') {
            self.skip(1);
        }
        let mut is_first = true;
        while self.rest.is_empty() || !self.rest.starts_with(']') || is_first {
            is_first = false;
            if self.rest.starts_with("[:")
                && let Some((name, rest)) = self.rest.get(2..).and_then(|it| it.split_once(":]"))
            {
                if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    let part = format!("[:{name}:]");
                    return invalid("invalid character class range", &part);
                }
                self.rest = rest;
                continue;
            }
            if self.rest.starts_with("\\p") || self.rest.starts_with("\\P") {
                self.unicode_class()?;
                continue;
            }
            let second = self.rest.chars().nth(1);
            if self.rest.starts_with('\\')
                && matches!(second, Some('d' | 'D' | 's' | 'S' | 'w' | 'W'))
            {
                self.skip(2);
                continue;
            }
            self.range(start)?;
        }
        self.skip(1);
        self.has_operand = true;
        Ok(())
    }

    /// Parses one character of a class, or a range of characters.
    fn range(&mut self, class: &str) -> Parsed {
        let start = self.rest;
        let low = self.class_character(class)?;
        let Some(after) = self
            .rest
            .strip_prefix('-')
            .filter(|it| !it.starts_with(']'))
        else {
            return Ok(());
        };
        self.rest = after;
        let high = self.class_character(class)?;
        match high < low {
            true => invalid("invalid character class range", consumed(start, self.rest)),
            false => Ok(()),
        }
    }

    fn class_character(&mut self, class: &str) -> Parsed<u32> {
        match self.rest.chars().next() {
            None => invalid("missing closing ]", class),
            Some('\\') => self.character_escape(),
            Some(letter) => {
                self.skip(letter.len_utf8());
                Ok(u32::from(letter))
            }
        }
    }
}

/// Parses `{2}`, `{2,}` or `{2,4}`, and returns the limits and the text after the braces. A number
/// that is too large is larger than [`REPEAT_MAX`] in the result.
fn counts(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (counts, after) = text.strip_prefix('{')?.split_once('}')?;
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit());
        let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
        (is_number && !has_leading_zero).then(|| digits.parse().unwrap_or(u32::MAX))
    };
    match counts.split_once(',') {
        None => {
            let count = number(counts)?;
            Some((count, Some(count), after))
        }
        Some((min, "")) => Some((number(min)?, None, after)),
        Some((min, max)) => Some((number(min)?, Some(number(max)?), after)),
    }
}

#[cfg(test)]
mod tests;
