//! Splits the source text into tokens.
//!
//! The texts of errors and the names of tokens are those of cel-go's generated parser.

use super::source::Issue;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclam,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscapedIdent,
    End,
}

impl Token {
    /// Returns the name of the token in error messages.
    pub(crate) fn display(self) -> &'static str {
        match self {
            Self::Equals => "'=='",
            Self::NotEquals => "'!='",
            Self::In => "'in'",
            Self::Less => "'<'",
            Self::LessEquals => "'<='",
            Self::GreaterEquals => "'>='",
            Self::Greater => "'>'",
            Self::And => "'&&'",
            Self::Or => "'||'",
            Self::LeftBracket => "'['",
            Self::RightBracket => "']'",
            Self::LeftBrace => "'{'",
            Self::RightBrace => "'}'",
            Self::LeftParen => "'('",
            Self::RightParen => "')'",
            Self::Dot => "'.'",
            Self::Comma => "','",
            Self::Minus => "'-'",
            Self::Exclam => "'!'",
            Self::Question => "'?'",
            Self::Colon => "':'",
            Self::Plus => "'+'",
            Self::Star => "'*'",
            Self::Slash => "'/'",
            Self::Percent => "'%'",
            Self::True => "'true'",
            Self::False => "'false'",
            Self::Null => "'null'",
            Self::Float => "NUM_FLOAT",
            Self::Int => "NUM_INT",
            Self::Uint => "NUM_UINT",
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Ident => "IDENTIFIER",
            Self::EscapedIdent => "ESC_IDENTIFIER",
            Self::End => "<EOF>",
        }
    }
}

/// A token and its place in the source text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Splits the text into tokens, the last of which is [`Token::End`]. Characters that start no token
/// are reported and skipped.
pub(crate) fn tokens(chars: &[char]) -> (Vec<Lexeme>, Vec<Issue>) {
    let mut found = Vec::new();
    let mut issues = Vec::new();
    let mut start = 0;
    while let Some(c) = chars.get(start) {
        let lexer = Lexer { chars, start };
        let end = match *c {
            ' ' | '\t' | '\r' | '\n' | '\u{0c}' => start + 1,
            '/' if chars.get(start + 1) == Some(&'/') => lexer.skip(start, |c| c != '\n'),
            _ => match lexer.token() {
                Ok((token, end)) => {
                    found.push(Lexeme { token, start, end });
                    end
                }
                Err(wrong) => {
                    let text: String = chars
                        .get(start..=wrong)
                        .or(chars.get(start..))
                        .unwrap_or_default()
                        .iter()
                        .collect();
                    issues.push(Issue {
                        offset: Some(start),
                        message: format!("Syntax error: token recognition error at: '{text}'"),
                    });
                    wrong + 1
                }
            },
        };
        start = end;
    }
    found.push(Lexeme {
        token: Token::End,
        start: chars.len(),
        end: chars.len(),
    });
    (found, issues)
}

struct Lexer<'a> {
    chars: &'a [char],
    start: usize,
}

/// A token and the offset behind it, or the offset of the first character that does not fit.
type Match = Result<(Token, usize), usize>;

impl Lexer<'_> {
    fn at(&self, offset: usize) -> Option<char> {
        self.chars.get(offset).copied()
    }

    fn skip(&self, mut offset: usize, holds: impl Fn(char) -> bool) -> usize {
        while self.at(offset).is_some_and(&holds) {
            offset += 1;
        }
        offset
    }

    fn token(&self) -> Match {
        let Some(first) = self.at(self.start) else {
            return Err(self.start);
        };
        let second = self.at(self.start + 1);
        let one = self.start + 1;
        let two = self.start + 2;
        match (first, second) {
            ('=', Some('=')) => Ok((Token::Equals, two)),
            ('!', Some('=')) => Ok((Token::NotEquals, two)),
            ('<', Some('=')) => Ok((Token::LessEquals, two)),
            ('>', Some('=')) => Ok((Token::GreaterEquals, two)),
            ('&', Some('&')) => Ok((Token::And, two)),
            ('|', Some('|')) => Ok((Token::Or, two)),
            ('=' | '&' | '|', _) => Err(one),
            ('.', Some('0'..='9')) => self.number(),
            ('!', _) => Ok((Token::Exclam, one)),
            ('<', _) => Ok((Token::Less, one)),
            ('>', _) => Ok((Token::Greater, one)),
            ('[', _) => Ok((Token::LeftBracket, one)),
            (']', _) => Ok((Token::RightBracket, one)),
            ('{', _) => Ok((Token::LeftBrace, one)),
            ('}', _) => Ok((Token::RightBrace, one)),
            ('(', _) => Ok((Token::LeftParen, one)),
            (')', _) => Ok((Token::RightParen, one)),
            ('.', _) => Ok((Token::Dot, one)),
            (',', _) => Ok((Token::Comma, one)),
            ('-', _) => Ok((Token::Minus, one)),
            ('?', _) => Ok((Token::Question, one)),
            (':', _) => Ok((Token::Colon, one)),
            ('+', _) => Ok((Token::Plus, one)),
            ('*', _) => Ok((Token::Star, one)),
            ('/', _) => Ok((Token::Slash, one)),
            ('%', _) => Ok((Token::Percent, one)),
            ('0'..='9', _) => self.number(),
            ('"' | '\'', _) => self
                .string(self.start, false)
                .map(|end| (Token::String, end)),
            ('`', _) => self.escaped_ident(),
            ('a'..='z' | 'A'..='Z' | '_', _) => self.word(),
            _ => Err(self.start),
        }
    }

    fn number(&self) -> Match {
        let is_digit = |c: char| c.is_ascii_digit();
        if self.at(self.start) == Some('0')
            && self.at(self.start + 1) == Some('x')
            && self
                .at(self.start + 2)
                .is_some_and(|c| c.is_ascii_hexdigit())
        {
            let end = self.skip(self.start + 2, |c| c.is_ascii_hexdigit());
            return Ok(match self.at(end) {
                Some('u' | 'U') => (Token::Uint, end + 1),
                _ => (Token::Int, end),
            });
        }
        let mut end = self.skip(self.start, is_digit);
        let mut token = Token::Int;
        if self.at(end) == Some('.') && self.at(end + 1).is_some_and(is_digit) {
            end = self.skip(end + 1, is_digit);
            token = Token::Float;
        }
        if matches!(self.at(end), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.at(end + 1), Some('+' | '-')));
            if self.at(end + 1 + sign).is_some_and(is_digit) {
                return Ok((Token::Float, self.skip(end + 1 + sign, is_digit)));
            }
        }
        match (token, self.at(end)) {
            (Token::Int, Some('u' | 'U')) => Ok((Token::Uint, end + 1)),
            _ => Ok((token, end)),
        }
    }

    fn word(&self) -> Match {
        let prefix: String = self
            .chars
            .iter()
            .skip(self.start)
            .take(2)
            .map(char::to_ascii_lowercase)
            .collect();
        let quote = |offset| matches!(self.at(offset), Some('"' | '\''));
        let literal = match prefix.as_bytes() {
            [b'r', _] if quote(self.start + 1) => Some((Token::String, 1, true)),
            [b'b', b'r'] if quote(self.start + 2) => Some((Token::Bytes, 2, true)),
            [b'b', _] if quote(self.start + 1) => Some((Token::Bytes, 1, false)),
            _ => None,
        };
        let end = self.skip(self.start, |c| c.is_ascii_alphanumeric() || c == '_');
        if let Some((token, skipped, is_raw)) = literal
            && let Ok(end) = self.string(self.start + skipped, is_raw)
        {
            return Ok((token, end));
        }
        let word: String = self
            .chars
            .get(self.start..end)
            .unwrap_or_default()
            .iter()
            .collect();
        let token = match word.as_str() {
            "in" => Token::In,
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            _ => Token::Ident,
        };
        Ok((token, end))
    }

    fn escaped_ident(&self) -> Match {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        let end = self.skip(self.start + 1, allowed);
        match self.at(end) {
            Some('`') if end > self.start + 1 => Ok((Token::EscapedIdent, end + 1)),
            _ => Err(end),
        }
    }

    /// Returns the offset behind the string that starts with the quote at `open`.
    fn string(&self, open: usize, is_raw: bool) -> Result<usize, usize> {
        let Some(quote) = self.at(open) else {
            return Err(open);
        };
        let is_long = self.at(open + 1) == Some(quote) && self.at(open + 2) == Some(quote);
        if is_long && let Ok(end) = self.string_body(open + 3, quote, 3, is_raw) {
            return Ok(end);
        }
        self.string_body(open + 1, quote, 1, is_raw)
    }

    fn string_body(
        &self,
        mut at: usize,
        quote: char,
        quotes: usize,
        is_raw: bool,
    ) -> Result<usize, usize> {
        loop {
            let Some(c) = self.at(at) else {
                return Err(at);
            };
            if c == quote && (1..quotes).all(|n| self.at(at + n) == Some(quote)) {
                return Ok(at + quotes);
            }
            if quotes == 1 && matches!(c, '\n' | '\r') {
                return Err(at);
            }
            at = match c {
                '\\' if !is_raw => self.escape(at)?,
                _ => at + 1,
            };
        }
    }

    /// Returns the offset behind the escape sequence at `at`.
    fn escape(&self, at: usize) -> Result<usize, usize> {
        let digits = |from: usize, count: usize, holds: fn(char) -> bool| {
            for offset in from..from + count {
                if !self.at(offset).is_some_and(holds) {
                    return Err(offset);
                }
            }
            Ok(from + count)
        };
        let hexadecimal = |c: char| c.is_ascii_hexdigit();
        match self.at(at + 1) {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => {
                Ok(at + 2)
            }
            Some('x' | 'X') => digits(at + 2, 2, hexadecimal),
            Some('u') => digits(at + 2, 4, hexadecimal),
            Some('U') => digits(at + 2, 8, hexadecimal),
            Some('0'..='3') => digits(at + 2, 2, |c| ('0'..='7').contains(&c)),
            _ => Err(at + 1),
        }
    }
}
