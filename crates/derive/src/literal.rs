//! Literals in attributes: numbers, and JSON values.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use proc_macro2::Span;
use syn::{Expr, ExprLit, ExprUnary, Lit, UnOp};

use crate::arguments::integer_of;

/// Number in an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    /// Returns the value and the span of an expression, if the expression is a number.
    pub(crate) fn of(expr: &Expr) -> syn::Result<Option<(Self, Span)>> {
        if let Some((integer, span)) = integer_of(expr)? {
            return Ok(Some((Self::Integer(integer), span)));
        }
        let (sign, expr) = match expr {
            Expr::Unary(ExprUnary {
                op: UnOp::Neg(_),
                expr,
                ..
            }) => (-1.0, &**expr),
            expr => (1.0, expr),
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Float(literal),
            ..
        }) = expr
        else {
            return Ok(None);
        };
        let value: f64 = literal.base10_parse()?;
        Ok(Some((Self::Float(sign * value), literal.span())))
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Reports whether the number is a multiple of `divisor`.
    pub(crate) fn is_multiple_of(self, divisor: Self) -> bool {
        match (self, divisor) {
            (Self::Integer(value), Self::Integer(divisor)) => {
                value.checked_rem(divisor).is_none_or(|rest| rest == 0)
            }
            (value, divisor) => {
                let quotient = value.as_f64() / divisor.as_f64();
                (quotient - quotient.round()).abs() < 1e-9
            }
        }
    }

    pub(crate) fn is_positive(self) -> bool {
        self.as_f64() > 0.0
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Integer(_))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.partial_cmp(right),
            (left, right) => left.as_f64().partial_cmp(&right.as_f64()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// Returns the JSON text of a literal, or of an array of literals. Returns `None` for other
/// expressions.
pub(crate) fn json(expr: &Expr) -> syn::Result<Option<String>> {
    if let Some((number, _)) = Number::of(expr)? {
        return Ok(Some(number.to_string()));
    }
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(Some(quoted(&text.value()))),
        Expr::Lit(ExprLit {
            lit: Lit::Bool(value),
            ..
        }) => Ok(Some(value.value.to_string())),
        Expr::Array(array) => {
            let mut items = Vec::new();
            for item in &array.elems {
                match json(item)? {
                    Some(item) => items.push(item),
                    None => return Ok(None),
                }
            }
            Ok(Some(format!("[{}]", items.join(","))))
        }
        _ => Ok(None),
    }
}

/// Returns a string as a JSON literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            letter if letter.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
