//! Values of literals.

use super::{Parse, Parser};
use crate::cel::ast::{Expr, Literal};
use crate::cel::lexer::Token;

impl Parser<'_> {
    /// A literal. A number may have a sign.
    pub(super) fn constant(&mut self) -> Parse {
        let first = self.peek();
        let is_negative = first.token == Token::Minus;
        if is_negative {
            self.next();
        }
        let lexeme = self.next();
        let text = self.text(lexeme);
        let value = match lexeme.token {
            Token::Int => int(&text, is_negative).ok_or("invalid int literal"),
            Token::Uint => uint(&text).ok_or("invalid uint literal"),
            Token::Float => double(&text, is_negative).ok_or("invalid double literal"),
            Token::String => unescape(&text, false).and_then(|bytes| {
                let text = String::from_utf8(bytes).map_err(|_| "unable to unescape string")?;
                Ok(Literal::String(text))
            }),
            Token::Bytes => unescape(text.get(1..).unwrap_or_default(), true).map(Literal::Bytes),
            Token::True => Ok(Literal::Bool(true)),
            Token::False => Ok(Literal::Bool(false)),
            _ => Ok(Literal::Null),
        };
        Ok(self.checked(first.start, value))
    }

    fn checked(&mut self, position: usize, value: Result<Literal, &str>) -> Expr {
        let value = value.unwrap_or_else(|message| {
            self.report(Some(position), message.to_owned());
            Literal::Null
        });
        self.literal(position, value)
    }
}

fn int(text: &str, is_negative: bool) -> Option<Literal> {
    let (digits, base) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let sign = if is_negative { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), base)
        .ok()
        .map(Literal::Int)
}

fn uint(text: &str) -> Option<Literal> {
    let text = text.strip_suffix(['u', 'U'])?;
    let (digits, base) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    u64::from_str_radix(digits, base).ok().map(Literal::Uint)
}

fn double(text: &str, is_negative: bool) -> Option<Literal> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    Some(Literal::Double(if is_negative { -value } else { value }))
}

/// Removes the quotes and replaces the escape sequences of a string literal.
pub(super) fn unescape(literal: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    const FAILED: &str = "unable to unescape string";
    let literal = literal.replace("\r\n", "\n").replace('\r', "\n");
    let (body, is_raw) = match literal.strip_prefix(['r', 'R']) {
        Some(body) => (body, true),
        None => (literal.as_str(), false),
    };
    let quotes = match body {
        _ if body.len() >= 6 && (body.starts_with("'''") || body.starts_with("\"\"\"")) => 3,
        _ => 1,
    };
    let end = body.len().checked_sub(quotes).ok_or(FAILED)?;
    let body = body.get(quotes..end).ok_or(FAILED)?;
    if is_raw || !body.contains('\\') {
        return Ok(body.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut chars = body.chars();
    let push = |out: &mut Vec<u8>, c: char| {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    };
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        let kind = chars
            .next()
            .ok_or("unable to unescape string, found '\\' as last character")?;
        let simple = match kind {
            'a' => Some('\u{07}'),
            'b' => Some('\u{08}'),
            'f' => Some('\u{0c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{0b}'),
            '\\' | '\'' | '"' | '`' | '?' => Some(kind),
            _ => None,
        };
        if let Some(c) = simple {
            push(&mut out, c);
            continue;
        }
        let (count, base) = match kind {
            'x' | 'X' => (2, 16),
            'u' if !is_bytes => (4, 16),
            'U' if !is_bytes => (8, 16),
            '0'..='3' => (2, 8),
            _ => return Err(FAILED),
        };
        let mut digits: String = chars.by_ref().take(count).collect();
        if base == 8 {
            digits.insert(0, kind);
        }
        let code = u32::from_str_radix(&digits, base).map_err(|_| FAILED)?;
        if is_bytes {
            out.push(u8::try_from(code).map_err(|_| FAILED)?);
        } else {
            let c = char::from_u32(code).ok_or("invalid unicode code point")?;
            push(&mut out, c);
        }
    }
    Ok(out)
}
