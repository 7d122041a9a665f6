//! A chain of method calls, with the position of each call.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::{Expr, ExprMethodCall, GenericArgument, ItemFn, Stmt};

use super::Call;
use crate::source::tokens;

/// Chain of method calls.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    /// The expression that the first method is called on.
    pub(super) root: &'a Expr,
    /// Whether the root is `Operator::new(..)`.
    pub(super) has_constructor: bool,
    pub(super) links: Vec<Link>,
}

/// Method call of a chain.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) call: Call,
    /// The bytes from the dot to the closing parenthesis.
    pub(super) range: Range<usize>,
}

impl<'a> Chain<'a> {
    /// Returns the chain at the end of a function's body.
    pub(super) fn of_function(function: &'a ItemFn) -> Option<Self> {
        match function.block.stmts.as_slice() {
            [Stmt::Expr(expression, None)] => Self::of(expression).or_else(|| {
                matches!(expression, Expr::Call(_)).then_some(Self {
                    root: expression,
                    has_constructor: true,
                    links: Vec::new(),
                })
            }),
            _ => None,
        }
    }

    /// Reports whether the body of a function is a chain with this method.
    pub(crate) fn has_method(function: &'a ItemFn, method: &str) -> bool {
        Self::of_function(function).is_some_and(|it| it.after(&[method]).is_some())
    }

    /// Returns the argument of each call of a method in the body of a function.
    pub(crate) fn arguments(function: &'a ItemFn, method: &str) -> Vec<String> {
        let links = Self::of_function(function).map(|it| it.links);
        let links = links.unwrap_or_default().into_iter();
        let links = links.filter(|link| link.call.method == method);
        links.map(|link| link.call.arguments).collect()
    }

    pub(super) fn of(expression: &'a Expr) -> Option<Self> {
        let mut links = Vec::new();
        let mut root = expression;
        while let Expr::MethodCall(method) = root {
            let start = method.dot_token.span().byte_range().start;
            let end = method.paren_token.span.close().byte_range().end;
            links.push(Link {
                call: call(method),
                range: start..end,
            });
            root = &method.receiver;
        }
        links.reverse();
        let has_constructor = matches!(root, Expr::Call(it) if is_constructor(&it.func));
        let is_chain = has_constructor || !links.is_empty();
        is_chain.then_some(Self {
            root,
            has_constructor,
            links,
        })
    }

    /// Returns the index after the last link with one of these methods.
    pub(super) fn after(&self, methods: &[&str]) -> Option<usize> {
        let mut links = self.links.iter();
        let last = links.rposition(|link| methods.contains(&link.call.method.as_str()))?;
        Some(last + 1)
    }
}

/// Reports whether a called expression is `Operator::new`, with any path in front of it.
pub(super) fn is_constructor(function: &Expr) -> bool {
    let path = tokens(function);
    path == "Operator::new" || path.ends_with("::Operator::new")
}

pub(super) fn call(method: &ExprMethodCall) -> Call {
    let ty = method
        .turbofish
        .as_ref()
        .and_then(|it| match it.args.first() {
            Some(GenericArgument::Type(syn::Type::Path(path))) => path.path.segments.last(),
            _ => None,
        });
    Call {
        method: method.method.to_string(),
        ty: ty.map(|segment| segment.ident.to_string()),
        arguments: tokens(&method.args),
    }
}
