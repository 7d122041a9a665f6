//! Splits a label selector into tokens.

/// One token of a label selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    Close,
    Comma,
    DoubleEquals,
    End,
    Equals,
    GreaterThan,
    Identifier(&'t str),
    In,
    LessThan,
    Not,
    NotEquals,
    NotIn,
    Open,
}

impl<'t> Token<'t> {
    /// Returns the token as written in the selector.
    pub(super) fn literal(self) -> &'t str {
        match self {
            Token::Close => ")",
            Token::Comma => ",",
            Token::DoubleEquals => "==",
            Token::End => "",
            Token::Equals => "=",
            Token::GreaterThan => ">",
            Token::Identifier(text) => text,
            Token::In => "in",
            Token::LessThan => "<",
            Token::Not => "!",
            Token::NotEquals => "!=",
            Token::NotIn => "notin",
            Token::Open => "(",
        }
    }

    /// Returns the token as read at a position where a value is expected. At such a position, `in`
    /// and `notin` are values rather than operators.
    pub(super) fn as_value(self) -> Self {
        match self {
            Token::In | Token::NotIn => Token::Identifier(self.literal()),
            other => other,
        }
    }
}

/// Splits a selector into tokens.
pub(super) fn lex(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let (token, length) = next(rest);
        tokens.push(token);
        rest = rest
            .get(length..)
            .unwrap_or_default()
            .trim_start_matches(is_space);
    }
    tokens.push(Token::End);
    tokens
}

fn next(rest: &str) -> (Token<'_>, usize) {
    const SYMBOLS: [(&str, Token<'_>); 9] = [
        ("==", Token::DoubleEquals),
        ("!=", Token::NotEquals),
        ("=", Token::Equals),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
        (">", Token::GreaterThan),
        ("<", Token::LessThan),
    ];
    for (symbol, token) in SYMBOLS {
        if rest.starts_with(symbol) {
            return (token, symbol.len());
        }
    }
    let end = rest
        .find(|c| is_space(c) || "=!(),><".contains(c))
        .unwrap_or(rest.len());
    let word = rest.get(..end).unwrap_or_default();
    let token = match word {
        "in" => Token::In,
        "notin" => Token::NotIn,
        word => Token::Identifier(word),
    };
    (token, end)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}
