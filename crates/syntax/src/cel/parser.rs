//! Parses an expression into a syntax tree and expands the macros.
//!
//! The grammar is CEL's, with the optional syntax (`a.?b`, `a[?b]`, `[?e]`, `{?k: v}`). The parser
//! reports the first syntax error from which it cannot recover. It recovers, as cel-go's parser
//! does, by skipping one token or by assuming one missing token.

mod literals;
mod macros;
mod recovery;

use super::ast::{Element, Entry, Expr, ExprId, ExprKind, Literal, StructField};
use super::lexer::{self, Lexeme, Token};
use super::source::{Issue, Source};

/// Maximum depth of an expression, as in cel-go.
const DEPTH_MAX: usize = 250;
/// Maximum length of an expression in code points, as in cel-go.
const LENGTH_MAX: usize = 100_000;

/// Tokens with which an operand can start.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
    NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// Tokens that can follow the opening parenthesis of a call.
const ARGUMENTS: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', \
    NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// Tokens that can follow the opening bracket of an index.
const INDEX: &str = "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, \
    NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Identifiers that cannot be names of variables or functions.
pub const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// Root of the syntax tree.
    pub expr: Expr,
    /// Offset of each node in the source text, by id.
    pub positions: Vec<usize>,
}

/// Parses the text.
///
/// # Errors
/// Returns the syntax errors.
pub fn parse(source: &Source) -> Result<Parsed, Vec<Issue>> {
    let length = source.chars().len();
    if length > LENGTH_MAX {
        let message =
            format!("expression code point size exceeds limit: size: {length}, limit {LENGTH_MAX}");
        return Err(vec![Issue {
            offset: None,
            message,
        }]);
    }
    let (tokens, issues) = lexer::tokens(source.chars());
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        positions: Vec::new(),
        heights: Vec::new(),
        depth: 0,
        issues,
        is_recovering: false,
    };
    let parsed = parser.start();
    match parsed {
        Ok(expr) if parser.issues.is_empty() => Ok(Parsed {
            expr,
            positions: parser.positions,
        }),
        _ => Err(parser.issues),
    }
}

/// Signals that the parser reported an error and cannot continue.
struct Stop;

type Parse<T = Expr> = Result<T, Stop>;

struct Parser<'a> {
    source: &'a Source,
    tokens: Vec<Lexeme>,
    at: usize,
    positions: Vec<usize>,
    /// Number of nested operators below each node, by id.
    heights: Vec<usize>,
    /// Number of expressions around the current token.
    depth: usize,
    issues: Vec<Issue>,
    /// Whether a syntax error was reported and no token was consumed since. Further errors are not
    /// reported then.
    is_recovering: bool,
}

impl Parser<'_> {
    fn start(&mut self) -> Parse {
        let expr = self.expr()?;
        if self.peek().token != Token::End {
            self.unexpected("<EOF>", Token::End);
        }
        Ok(expr)
    }

    /// `conditionalOr ('?' conditionalOr ':' expr)?`
    fn expr(&mut self) -> Parse {
        self.enter()?;
        let condition = self.logic(Token::Or)?;
        let result = match self.peek().token {
            Token::Question => {
                let operator = self.next();
                let truthy = self.logic(Token::Or)?;
                self.expect(Token::Colon, |token| token.starts_operand())?;
                let falsy = self.expr()?;
                let id = self.id(operator.start);
                self.operator(id, "_?_:_", vec![condition, truthy, falsy])?
            }
            _ => condition,
        };
        self.depth = self.depth.saturating_sub(1);
        Ok(result)
    }

    /// A chain of `||`, or of `&&` below it. The operators form a balanced tree, as in cel-go.
    fn logic(&mut self, operator: Token) -> Parse {
        let (function, is_or) = match operator {
            Token::Or => ("_||_", true),
            _ => ("_&&_", false),
        };
        let term = |parser: &mut Self| match is_or {
            true => parser.logic(Token::And),
            false => parser.relation(),
        };
        let mut terms = vec![Some(term(self)?)];
        let mut operators = Vec::new();
        while self.peek().token == operator {
            let position = self.next().start;
            terms.push(Some(term(self)?));
            operators.push(self.id(position));
        }
        match operators.len().checked_sub(1) {
            None => terms.pop().flatten().ok_or(Stop),
            Some(last) => self.balance(function, &mut terms, &operators, (0, last)),
        }
    }

    fn balance(
        &mut self,
        function: &str,
        terms: &mut [Option<Expr>],
        operators: &[ExprId],
        (low, high): (usize, usize),
    ) -> Parse {
        let middle = (low + high).div_ceil(2);
        let take = |terms: &mut [Option<Expr>], index: usize| {
            terms.get_mut(index).and_then(Option::take).ok_or(Stop)
        };
        let left = match middle == low {
            true => take(terms, middle)?,
            false => self.balance(function, terms, operators, (low, middle - 1))?,
        };
        let right = match middle == high {
            true => take(terms, middle + 1)?,
            false => self.balance(function, terms, operators, (middle + 1, high))?,
        };
        let id = operators.get(middle).copied().ok_or(Stop)?;
        let height = self.height(&left).max(self.height(&right));
        self.set_height(id, height);
        Ok(call(id, function, vec![left, right]))
    }

    fn relation(&mut self) -> Parse {
        let mut left = self.calc(0)?;
        loop {
            let function = match self.peek().token {
                Token::Less => "_<_",
                Token::LessEquals => "_<=_",
                Token::GreaterEquals => "_>=_",
                Token::Greater => "_>_",
                Token::Equals => "_==_",
                Token::NotEquals => "_!=_",
                Token::In => "@in",
                _ => break,
            };
            let position = self.next().start;
            let right = self.calc(0)?;
            let id = self.id(position);
            left = self.operator(id, function, vec![left, right])?;
        }
        Ok(left)
    }

    /// Sums at level 0, products at level 1.
    fn calc(&mut self, level: u8) -> Parse {
        let operand = |parser: &mut Self| match level {
            0 => parser.calc(1),
            _ => parser.unary(),
        };
        let mut left = operand(self)?;
        loop {
            let function = match (level, self.peek().token) {
                (0, Token::Plus) => "_+_",
                (0, Token::Minus) => "_-_",
                (1, Token::Star) => "_*_",
                (1, Token::Slash) => "_/_",
                (1, Token::Percent) => "_%_",
                _ => break,
            };
            let position = self.next().start;
            let right = operand(self)?;
            let id = self.id(position);
            left = self.operator(id, function, vec![left, right])?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parse {
        let first = self.peek();
        let is_number = matches!(self.ahead(1), Token::Int | Token::Float);
        let function = match first.token {
            Token::Exclam => "!_",
            Token::Minus if !is_number => "-_",
            _ => return self.member(),
        };
        let mut count = 0;
        while self.peek().token == first.token {
            self.next();
            count += 1;
        }
        if self.peek().token == Token::End && function == "!_" {
            let message = format!("extraneous input '<EOF>' expecting {OPERAND}");
            self.syntax_error(self.peek().start, &message);
            return Ok(self.nothing());
        }
        if self.peek().token == Token::End && count == 1 {
            self.syntax_error(self.peek().start, "no viable alternative at input '-'");
            self.is_recovering = false;
        }
        let operand = self.member()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let id = self.id(first.start);
        let height = self.height(&operand);
        self.set_height(id, height);
        Ok(call(id, function, vec![operand]))
    }

    fn member(&mut self) -> Parse {
        let mut operand = self.primary()?;
        while matches!(self.peek().token, Token::Dot | Token::LeftBracket) {
            operand = match self.peek().token {
                Token::Dot => self.select(operand)?,
                _ => self.index(operand)?,
            };
        }
        Ok(operand)
    }

    fn select(&mut self, operand: Expr) -> Parse {
        let dot = self.next();
        let is_optional = self.peek().token == Token::Question;
        if is_optional {
            self.next();
        }
        let name = self.peek();
        match name.token {
            Token::Ident => {}
            Token::EscapedIdent => {
                self.report(Some(name.start), "unsupported syntax: '`'".to_owned());
            }
            token if is_optional => {
                let input = self.text(name);
                let message =
                    format!("mismatched input '{input}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}");
                self.syntax_error(name.start, &message);
                if token == Token::End {
                    self.report(Some(name.start), "unsupported ident kind".to_owned());
                }
                return Err(Stop);
            }
            _ => {
                self.no_alternative(dot);
                return Ok(operand);
            }
        }
        self.next();
        let field = self.text(name);
        if is_optional {
            let id = self.id(dot.start);
            let literal = self.literal(name.start, Literal::String(field));
            return self.operator(id, "_?._", vec![operand, literal]);
        }
        if name.token == Token::Ident && self.peek().token == Token::LeftParen {
            let open = self.next();
            let args = self.arguments()?;
            let id = self.id(open.start);
            return self.member_call(id, field, operand, args);
        }
        let id = self.id(dot.start);
        let height = self.height(&operand) + 1;
        self.set_limited_height(id, height)?;
        Ok(Expr {
            id,
            kind: ExprKind::Select {
                operand: Box::new(operand),
                field,
                is_test: false,
            },
        })
    }

    fn index(&mut self, operand: Expr) -> Parse {
        let open = self.next();
        let function = match self.peek().token {
            Token::Question => {
                self.next();
                "_[?_]"
            }
            token if !token.starts_operand() => {
                self.unexpected_set(INDEX);
                return Ok(operand);
            }
            _ => "_[_]",
        };
        let index = self.expr()?;
        self.expect(Token::RightBracket, |token| token.follows_operand())?;
        let id = self.id(open.start);
        self.operator(id, function, vec![operand, index])
    }

    /// Arguments of a call, behind the opening parenthesis.
    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        match self.peek().token {
            Token::RightParen => {
                self.next();
                return Ok(args);
            }
            token if !token.starts_operand() => {
                self.unexpected_set(ARGUMENTS);
                return Ok(args);
            }
            _ => {}
        }
        loop {
            args.push(self.expr()?);
            if self.peek().token != Token::Comma {
                break;
            }
            self.next();
        }
        self.expect(Token::RightParen, |token| token.follows_operand())?;
        Ok(args)
    }

    fn primary(&mut self) -> Parse {
        let first = self.peek();
        match first.token {
            Token::Dot => {
                let dot = self.next();
                match self.peek().token {
                    Token::Ident => self.name(true),
                    _ => {
                        self.no_alternative(dot);
                        Ok(self.nothing())
                    }
                }
            }
            Token::Ident => self.name(false),
            Token::LeftParen => {
                self.next();
                let inner = self.expr()?;
                self.expect(Token::RightParen, |token| token.follows_operand())?;
                Ok(inner)
            }
            Token::LeftBracket => self.list(),
            Token::LeftBrace => self.map(),
            Token::Minus
            | Token::Int
            | Token::Float
            | Token::Uint
            | Token::String
            | Token::Bytes
            | Token::True
            | Token::False
            | Token::Null => self.constant(),
            // One wrong token before an operand is skipped.
            _ if self.ahead(1).starts_operand() => {
                let input = self.text(first);
                let message = format!("extraneous input '{input}' expecting {OPERAND}");
                self.syntax_error(first.start, &message);
                self.at += 1;
                self.unary()
            }
            _ => {
                self.unexpected_set(OPERAND);
                Ok(self.nothing())
            }
        }
    }

    /// An identifier, a call of a global function, or a message literal.
    fn name(&mut self, has_leading_dot: bool) -> Parse {
        let first = self.next();
        let word = self.text(first);
        let is_reserved = RESERVED.contains(&word.as_str());
        if let Some(type_name) = self.message_name(&word, has_leading_dot) {
            return self.message(type_name);
        }
        let name = match has_leading_dot {
            true => format!(".{word}"),
            false => word.clone(),
        };
        if self.peek().token == Token::LeftParen {
            let open = self.next();
            let args = self.arguments()?;
            if is_reserved {
                return Ok(self.reserved(first.start, &word));
            }
            let id = self.id(open.start);
            return self.global_call(id, name, args);
        }
        if is_reserved {
            return Ok(self.reserved(first.start, &word));
        }
        let id = self.id(first.start);
        Ok(Expr {
            id,
            kind: ExprKind::Ident(name),
        })
    }

    fn reserved(&mut self, position: usize, word: &str) -> Expr {
        self.report(Some(position), format!("reserved identifier: {word}"));
        let id = self.id(position);
        Expr {
            id,
            kind: ExprKind::Unspecified,
        }
    }

    /// Returns the name of the message type if a message literal follows, and skips the name.
    fn message_name(&mut self, first: &str, has_leading_dot: bool) -> Option<String> {
        let mut name = match has_leading_dot {
            true => format!(".{first}"),
            false => first.to_owned(),
        };
        let mut skipped = 0;
        while self.ahead(skipped) == Token::Dot && self.ahead(skipped + 1) == Token::Ident {
            let lexeme = self.tokens.get(self.at + skipped + 1).copied()?;
            name = format!("{name}.{}", self.text(lexeme));
            skipped += 2;
        }
        if self.ahead(skipped) != Token::LeftBrace {
            return None;
        }
        self.at += skipped;
        Some(name)
    }

    fn message(&mut self, type_name: String) -> Parse {
        let open = self.next();
        let id = self.id(open.start);
        let mut fields = Vec::new();
        while matches!(
            self.peek().token,
            Token::Ident | Token::EscapedIdent | Token::Question
        ) {
            let is_optional = self.peek().token == Token::Question;
            if is_optional {
                self.next();
            }
            let name = self.peek();
            match name.token {
                Token::Ident => {}
                Token::EscapedIdent => {
                    self.report(Some(name.start), "unsupported syntax: '`'".to_owned());
                }
                _ => {
                    self.unexpected_set("{IDENTIFIER, ESC_IDENTIFIER}");
                    break;
                }
            }
            self.next();
            let name = self.text(name).to_owned();
            self.expect(Token::Colon, |token| token.starts_operand())?;
            let value = self.expr()?;
            fields.push(StructField {
                name,
                value,
                is_optional,
            });
            if self.peek().token != Token::Comma {
                break;
            }
            self.next();
        }
        self.close(Token::RightBrace, "{'}', ','}", !fields.is_empty())?;
        Ok(Expr {
            id,
            kind: ExprKind::Struct { type_name, fields },
        })
    }

    fn list(&mut self) -> Parse {
        let open = self.next();
        let id = self.id(open.start);
        let mut elements = Vec::new();
        let mut height = 0;
        while self.peek().token.starts_operand() || self.peek().token == Token::Question {
            let is_optional = self.peek().token == Token::Question;
            if is_optional {
                self.next();
            }
            let value = self.expr()?;
            height = height.max(self.height(&value));
            elements.push(Element { value, is_optional });
            if self.peek().token != Token::Comma {
                break;
            }
            self.next();
        }
        if elements.is_empty() && self.peek().token == Token::Comma {
            self.next();
        }
        self.close(Token::RightBracket, "{']', ','}", !elements.is_empty())?;
        self.set_height(id, height);
        Ok(Expr {
            id,
            kind: ExprKind::List(elements),
        })
    }

    fn map(&mut self) -> Parse {
        let open = self.next();
        let id = self.id(open.start);
        let mut entries = Vec::new();
        let mut height = 0;
        while self.peek().token.starts_operand() || self.peek().token == Token::Question {
            let is_optional = self.peek().token == Token::Question;
            if is_optional {
                self.next();
            }
            let key = self.expr()?;
            self.expect(Token::Colon, |token| token.starts_operand())?;
            let value = self.expr()?;
            height = height.max(self.height(&key)).max(self.height(&value));
            entries.push(Entry {
                key,
                value,
                is_optional,
            });
            if self.peek().token != Token::Comma {
                break;
            }
            self.next();
        }
        if entries.is_empty() && self.peek().token == Token::Comma {
            self.next();
        }
        self.close(Token::RightBrace, "{'}', ','}", !entries.is_empty())?;
        self.set_height(id, height);
        Ok(Expr {
            id,
            kind: ExprKind::Map(entries),
        })
    }

    /// Consumes the closing token of a literal. `expected` lists the tokens that may follow an
    /// element.
    fn close(&mut self, token: Token, expected: &str, has_elements: bool) -> Parse<()> {
        let follows_comma = self
            .at
            .checked_sub(1)
            .and_then(|before| self.tokens.get(before))
            .is_some_and(|before| before.token == Token::Comma);
        match self.peek().token {
            found if found == token => {
                self.next();
                Ok(())
            }
            Token::End if has_elements && !follows_comma => {
                self.unexpected_set(expected);
                Ok(())
            }
            _ => self.expect(token, |token| token.follows_operand()),
        }
    }
}

fn call(id: ExprId, function: &str, args: Vec<Expr>) -> Expr {
    Expr {
        id,
        kind: ExprKind::Call {
            target: None,
            function: function.to_owned(),
            args,
        },
    }
}

#[cfg(test)]
mod tests;
