//! Defaults of fields: checks a default against the limits of the field, and converts the default
//! to the type of the field.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, Type};

use crate::arguments::integer_of;
use crate::keywords::Keywords;
use crate::types::{self, Class};

/// Checks a literal default against the limits of its field.
pub(crate) fn check(expr: &Expr, limits: &Keywords) -> syn::Result<()> {
    if let Some((value, span)) = integer_of(expr)? {
        let message = match (limits.min, limits.max) {
            (Some(min), _) if value < min => format!("default {value} is below min = {min}"),
            (_, Some(max)) if value > max => format!("default {value} is above max = {max}"),
            _ => return Ok(()),
        };
        return Err(Error::new(span, message));
    }
    let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = expr
    else {
        return Ok(());
    };
    let length = i64::try_from(text.value().chars().count()).unwrap_or(i64::MAX);
    let (min, max) = (limits.min_length, limits.max_length);
    let message = match (min, max) {
        (Some(min), _) if length < min => {
            format!(
                "default {:?} is shorter than min_length = {min}",
                text.value()
            )
        }
        (_, Some(max)) if length > max => {
            format!(
                "default {:?} is longer than max_length = {max}",
                text.value()
            )
        }
        _ => return Ok(()),
    };
    Err(Error::new_spanned(text, message))
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
