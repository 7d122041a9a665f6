//! Defaults of fields: checks a default against the limits of the field, and converts the default
//! to the type of the field.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, Type};

use crate::keywords::{Keywords, check_literal};
use crate::literal;
use crate::types::{self, Class};

/// Checks a literal default against the type, the limits and the allowed values of its field.
pub(crate) fn check(expr: &Expr, class: Class, keywords: &Keywords) -> syn::Result<()> {
    check_literal("the default", expr, class)?;
    keywords.limits.check_default(expr)?;
    let Some(value) = literal::json(expr)? else {
        return Ok(());
    };
    if keywords.allowed.is_empty() || keywords.allowed.contains(&value) {
        return Ok(());
    }
    let allowed = keywords.allowed.join(", ");
    Err(Error::new_spanned(
        expr,
        format!("default {value} is not one of {allowed}"),
    ))
}

/// Returns code that converts `expr` to the type `ty`. For example, string literals are converted
/// to `String`, and arrays to lists.
pub(crate) fn converted(expr: &Expr, ty: &Type, class: Class) -> TokenStream {
    let literal = match expr {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    };
    let name = types::name(ty);
    match (class, name.as_deref(), expr, literal) {
        (Class::String, _, _, Some(Lit::Str(_))) => {
            quote_spanned!(expr.span()=> ::std::string::String::from(#expr))
        }
        (Class::Other, Some("Quantity"), _, Some(Lit::Str(_))) => {
            quote_spanned!(expr.span()=> #ty(::std::string::String::from(#expr)))
        }
        (Class::Other, Some("IntOrString"), _, Some(Lit::Str(_))) => {
            quote_spanned!(expr.span()=> #ty::String(::std::string::String::from(#expr)))
        }
        (Class::Other, Some("IntOrString"), _, Some(Lit::Int(_))) => {
            quote_spanned!(expr.span()=> #ty::Int(#expr))
        }
        (Class::List, _, Expr::Array(array), _) => {
            let element = types::element(ty);
            let elements = array.elems.iter().map(|expr| match element {
                Some(element) => converted(expr, element, types::class(element)),
                None => expr.to_token_stream(),
            });
            quote_spanned!(expr.span()=> ::core::iter::IntoIterator::into_iter([#(#elements),*]).collect())
        }
        _ => expr.to_token_stream(),
    }
}
