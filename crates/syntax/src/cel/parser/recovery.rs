//! Reading of tokens, syntax errors, and the positions of nodes.

use super::{DEPTH_MAX, Parse, Parser, Stop, call};
use crate::cel::ast::{Expr, ExprId, ExprKind, Literal};
use crate::cel::lexer::{Lexeme, Token};
use crate::cel::source::Issue;

impl Parser<'_> {
    pub(super) fn peek(&self) -> Lexeme {
        let length = self.source.chars().len();
        self.tokens.get(self.at).copied().unwrap_or(Lexeme {
            token: Token::End,
            start: length,
            end: length,
        })
    }

    pub(super) fn ahead(&self, count: usize) -> Token {
        let lexeme = self.tokens.get(self.at + count);
        lexeme.map_or(Token::End, |lexeme| lexeme.token)
    }

    pub(super) fn next(&mut self) -> Lexeme {
        let lexeme = self.peek();
        self.at += 1;
        self.is_recovering = false;
        lexeme
    }

    /// Returns the text of a token as error messages show it.
    pub(super) fn text(&self, lexeme: Lexeme) -> String {
        match lexeme.token {
            Token::End => "<EOF>".to_owned(),
            _ => self
                .source
                .chars()
                .get(lexeme.start..lexeme.end)
                .unwrap_or_default()
                .iter()
                .collect(),
        }
    }

    /// Consumes a token. If the token is missing, this recovers as cel-go does: skips one token, or
    /// continues if the current token can follow the missing one.
    pub(super) fn expect(&mut self, token: Token, can_follow: fn(Token) -> bool) -> Parse<()> {
        let found = self.peek();
        if found.token == token {
            self.next();
            return Ok(());
        }
        if found.token != Token::End && self.ahead(1) == token {
            self.unexpected(token.display(), token);
            return Ok(());
        }
        if can_follow(found.token) {
            let input = self.text(found);
            let message = format!("missing {} at '{input}'", token.display());
            self.syntax_error(found.start, &message);
            return Ok(());
        }
        self.unexpected_set(token.display());
        if self.peek().token == token {
            self.next();
        }
        Ok(())
    }

    /// Reports an unexpected token, and skips it and the token behind it if that is `wanted`.
    pub(super) fn unexpected(&mut self, expected: &str, wanted: Token) {
        let found = self.peek();
        let input = self.text(found);
        let is_extra = self.ahead(1) == wanted;
        let word = if is_extra { "extraneous" } else { "mismatched" };
        let message = format!("{word} input '{input}' expecting {expected}");
        self.syntax_error(found.start, &message);
        if is_extra {
            self.at += 1;
            self.next();
        }
    }

    /// Reports an unexpected token, and skips tokens until one that can follow an operand.
    pub(super) fn unexpected_set(&mut self, expected: &str) {
        let found = self.peek();
        let input = self.text(found);
        let message = format!("mismatched input '{input}' expecting {expected}");
        self.syntax_error(found.start, &message);
        self.skip();
    }

    /// Reports that no name follows a dot.
    pub(super) fn no_alternative(&mut self, dot: Lexeme) {
        let found = self.peek();
        let input = match found.token {
            Token::End => String::new(),
            _ => self.text(found),
        };
        let message = match found.token {
            Token::True | Token::False | Token::Null => {
                format!("mismatched input '{input}' expecting IDENTIFIER")
            }
            _ => {
                let before = self.text(dot);
                format!("no viable alternative at input '{before}{input}'")
            }
        };
        self.syntax_error(found.start, &message);
        self.skip();
    }

    /// Skips tokens until one that can follow an operand.
    pub(super) fn skip(&mut self) {
        while !self.peek().token.follows_operand() {
            self.at += 1;
        }
    }

    /// Returns the node that stands for an operand with a syntax error.
    pub(super) fn nothing(&mut self) -> Expr {
        let id = self.id(self.peek().start);
        Expr {
            id,
            kind: ExprKind::Unspecified,
        }
    }

    pub(super) fn syntax_error(&mut self, offset: usize, message: &str) {
        if !self.is_recovering {
            self.report(Some(offset), format!("Syntax error: {message}"));
        }
        self.is_recovering = true;
    }

    pub(super) fn report(&mut self, offset: Option<usize>, message: String) {
        self.issues.push(Issue { offset, message });
    }

    /// Counts the nesting of expressions, which is limited.
    pub(super) fn enter(&mut self) -> Parse<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("expression recursion limit exceeded: {DEPTH_MAX}");
            self.report(None, message);
            return Err(Stop);
        }
        Ok(())
    }

    /// Returns a new id for a node at a position.
    pub(super) fn id(&mut self, position: usize) -> ExprId {
        self.positions.push(position);
        self.heights.push(0);
        self.positions.len() - 1
    }

    pub(super) fn position(&self, id: ExprId) -> usize {
        self.positions.get(id).copied().unwrap_or_default()
    }

    pub(super) fn height(&self, expr: &Expr) -> usize {
        self.heights.get(expr.id).copied().unwrap_or_default()
    }

    pub(super) fn set_height(&mut self, id: ExprId, height: usize) {
        if let Some(found) = self.heights.get_mut(id) {
            *found = height;
        }
    }

    /// Sets the height of an operator, which is limited. The tree of a chain of operators is as
    /// deep as the chain is long.
    pub(super) fn set_limited_height(&mut self, id: ExprId, height: usize) -> Parse<()> {
        if height > DEPTH_MAX {
            self.report(None, "max recursion depth exceeded".to_owned());
            return Err(Stop);
        }
        self.set_height(id, height);
        Ok(())
    }

    pub(super) fn literal(&mut self, position: usize, literal: Literal) -> Expr {
        Expr {
            id: self.id(position),
            kind: ExprKind::Literal(literal),
        }
    }

    pub(super) fn operator(&mut self, id: ExprId, function: &str, args: Vec<Expr>) -> Parse {
        let height = args.iter().map(|arg| self.height(arg)).max();
        self.set_limited_height(id, height.unwrap_or_default() + 1)?;
        Ok(call(id, function, args))
    }
}

impl Token {
    /// Reports whether an operand can start with the token.
    pub(super) fn starts_operand(self) -> bool {
        matches!(
            self,
            Self::LeftBracket
                | Self::LeftBrace
                | Self::LeftParen
                | Self::Dot
                | Self::Minus
                | Self::Exclam
                | Self::True
                | Self::False
                | Self::Null
                | Self::Float
                | Self::Int
                | Self::Uint
                | Self::String
                | Self::Bytes
                | Self::Ident
        )
    }

    /// Reports whether the token can follow a complete operand.
    pub(super) fn follows_operand(self) -> bool {
        !matches!(
            self,
            Self::LeftBrace
                | Self::LeftParen
                | Self::Exclam
                | Self::True
                | Self::False
                | Self::Null
                | Self::Float
                | Self::Int
                | Self::Uint
                | Self::String
                | Self::Bytes
                | Self::Ident
                | Self::EscapedIdent
        )
    }
}
