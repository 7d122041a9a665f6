//! Paths in Rust source, as tokens.

use proc_macro2::{Spacing, Span, TokenStream, TokenTree};

/// Path of identifiers, such as `super::Robot`.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) segments: Vec<String>,
    pub(super) span: Span,
}

/// Returns the paths in tokens that may name an item. An identifier is a path of one segment. The
/// names of fields, arguments and methods are left out.
pub(super) fn of(tokens: TokenStream) -> Vec<Path> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Path>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let start = at;
        at += 1;
        match token {
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Ident(ident) => {
                let mut segments = vec![ident.to_string()];
                while let Some(TokenTree::Ident(ident)) = tokens.get(at + 2)
                    && is_punct(tokens.get(at), ':', Some(Spacing::Joint))
                    && is_punct(tokens.get(at + 1), ':', None)
                {
                    segments.push(ident.to_string());
                    at += 3;
                }
                let before = |back: usize| start.checked_sub(back).and_then(|it| tokens.get(it));
                let is_member = is_punct(before(1), '.', None) && !is_punct(before(2), '.', None);
                let next = tokens.get(at);
                let is_label = is_punct(next, ':', Some(Spacing::Alone))
                    || is_punct(next, '=', Some(Spacing::Alone));
                if !(is_member || is_label && segments.len() == 1) {
                    let span = ident.span();
                    found.push(Path { segments, span });
                }
            }
            _ => {}
        }
    }
}

fn is_punct(token: Option<&TokenTree>, char: char, spacing: Option<Spacing>) -> bool {
    match token {
        Some(TokenTree::Punct(it)) => {
            it.as_char() == char && spacing.is_none_or(|spacing| it.spacing() == spacing)
        }
        _ => false,
    }
}
