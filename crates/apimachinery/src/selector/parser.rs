//! Parser of label selectors.

use std::collections::BTreeSet;

use super::lexer::{Token, lex};
use super::{LabelRequirement, Operator, SelectorError, names};

/// Parses the terms of a selector, in the order in which they are written.
pub(super) fn parse(text: &str) -> Result<Vec<LabelRequirement>, SelectorError> {
    let tokens = lex(text);
    Parser {
        tokens: &tokens,
        position: 0,
    }
    .parse()
}

struct Parser<'t> {
    tokens: &'t [Token<'t>],
    position: usize,
}

impl<'t> Parser<'t> {
    fn parse(mut self) -> Result<Vec<LabelRequirement>, SelectorError> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Identifier(_) | Token::Not => {}
                Token::End => return Ok(requirements),
                other => {
                    return Err(expected(
                        other,
                        ", expected: !, identifier, or 'end of string'",
                    ));
                }
            }
            let requirement = self.requirement().map_err(|error| {
                SelectorError::new(format!("unable to parse requirement: {error}"))
            })?;
            requirements.push(requirement);
            match self.take() {
                Token::End => return Ok(requirements),
                Token::Comma => match self.peek() {
                    Token::Identifier(_) | Token::Not => {}
                    other => return Err(expected(other, ", expected: identifier after ','")),
                },
                other => return Err(expected(other, ", expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, SelectorError> {
        let negated = self.peek() == Token::Not;
        if negated {
            self.take();
        }
        let key = match self.take() {
            Token::Identifier(key) => key,
            other => return Err(expected(other, ", expected: identifier")),
        };
        names::check_key(key).map_err(SelectorError::new)?;
        let ends = matches!(self.peek(), Token::End | Token::Comma);
        if negated {
            return LabelRequirement::new(key, Operator::DoesNotExist, []);
        }
        if ends {
            return LabelRequirement::new(key, Operator::Exists, []);
        }
        let operator = match self.take_operator() {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::GreaterThan => Operator::GreaterThan,
            Token::LessThan => Operator::LessThan,
            other => return Err(expected(other, ", expected: in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => [self.exact_value()?].into(),
        };
        LabelRequirement::new(key, operator, values)
    }

    fn exact_value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Identifier(value) => {
                self.take();
                Ok(value.to_owned())
            }
            other => Err(expected(other, ", expected: identifier")),
        }
    }

    /// Parses a list of values, such as `(a,b)`. A missing value between commas is an empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        match self.take() {
            Token::Open => {}
            other => return Err(expected(other, " expected: '('")),
        }
        if !matches!(
            self.peek(),
            Token::Identifier(_) | Token::Comma | Token::Close
        ) {
            return Err(expected(self.peek(), ", expected: ',', ')' or identifier"));
        }
        let mut values = BTreeSet::new();
        loop {
            match self.peek() {
                Token::Identifier(value) => {
                    self.take();
                    values.insert(value.to_owned());
                }
                Token::Comma | Token::Close => {
                    values.insert(String::new());
                }
                other => return Err(expected(other, ", expected: ',', or identifier")),
            }
            match self.take() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                other => return Err(expected(other, ", expected: ',' or ')'")),
            }
        }
    }

    fn peek(&self) -> Token<'t> {
        self.tokens
            .get(self.position)
            .copied()
            .unwrap_or(Token::End)
            .as_value()
    }

    fn take(&mut self) -> Token<'t> {
        self.take_operator().as_value()
    }

    fn take_operator(&mut self) -> Token<'t> {
        let token = self
            .tokens
            .get(self.position)
            .copied()
            .unwrap_or(Token::End);
        self.position += 1;
        token
    }
}

fn expected(found: Token<'_>, rest: &str) -> SelectorError {
    SelectorError::new(format!("found '{}'{rest}", found.literal()))
}
