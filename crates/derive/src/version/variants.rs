//! Conversions between an enum of a version and the enum of the hub.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Fields, Token, Variant};

use super::conversion::{Direction, carried};
use super::{Version, segments};
use crate::arguments::{Argument, Value};
use crate::errors::Errors;

/// Arguments on a variant of a version.
const OF_VARIANT: [&str; 2] = ["renamed", "removed"];

/// Removes the declarations from the attributes of an enum, and generates the implementation of
/// `Version` for it.
pub(super) fn expand(version: &Version, input: &mut DeriveInput) -> syn::Result<TokenStream> {
    if let Some(name) = &version.name {
        let message = "a kind is declared by its spec, which is a struct";
        return Err(Error::new_spanned(name, message));
    }
    let mut errors = Errors::default();
    let added = segments::take_from(&mut input.attrs, &["added"])?;
    let added: Vec<(Ident, Ident)> = added
        .iter()
        .filter_map(|argument| errors.take(parse_added(argument)))
        .flatten()
        .collect();
    let ident = input.ident.clone();
    let Data::Enum(data) = &mut input.data else {
        return Err(Error::new_spanned(&ident, "expected an enum"));
    };
    let (mut to_hub, mut from_hub) = (Vec::new(), Vec::new());
    let (mut has_removed, mut has_payload) = (false, false);
    for variant in &mut data.variants {
        has_payload |= !matches!(variant.fields, Fields::Unit);
        let Some(fate) = errors.take(Fate::take(variant)) else {
            continue;
        };
        let Some(arms) = errors.take(arms(variant, &fate)) else {
            continue;
        };
        has_removed |= matches!(fate, Fate::Removed(_));
        to_hub.push(arms.0);
        from_hub.extend(arms.1);
    }
    for (only_hub, own) in &added {
        from_hub.push(quote!(OpkitHub::#only_hub { .. } => Self::#own));
    }
    let of = &version.of;
    // The JSON of variants with values is not known here, so such values are not compared.
    let (has_removed, has_added) = (has_removed || has_payload, !added.is_empty() || has_payload);
    errors.none_or(quote! {
        #[automatically_derived]
        impl ::opkit::__private::kinds::versions::Version for #ident {
            type Hub = #of;

            #[allow(unused_imports)]
            fn to_hub(self) -> Self::Hub {
                use ::opkit::__private::kinds::versions::Unchanged as _;
                type OpkitHub = #of;
                match self { #(#to_hub),* }
            }

            #[allow(unused_imports)]
            fn from_hub(hub: Self::Hub) -> Self {
                use ::opkit::__private::kinds::versions::UnchangedTarget as _;
                type OpkitHub = #of;
                match hub { #(#from_hub),* }
            }

            fn notes() -> ::opkit::__private::kinds::versions::Notes {
                ::opkit::__private::kinds::versions::Notes {
                    has_removed_values: #has_removed,
                    has_added_values: #has_added,
                    ..::opkit::__private::kinds::versions::Notes::NONE
                }
            }
        }
    })
}

/// What became of a variant in the hub.
enum Fate {
    /// The hub has the variant, with this name.
    At(Ident),
    /// The hub does not have the variant. Its values become this value of the hub.
    Removed(TokenStream),
}

impl Fate {
    fn take(variant: &mut Variant) -> syn::Result<Self> {
        let arguments = segments::take_from(&mut variant.attrs, &OF_VARIANT)?;
        let mut fate = Self::At(variant.ident.clone());
        for argument in &arguments {
            let Value::Expr(expr) = &argument.value else {
                let message = match argument.is("removed") {
                    true => "write `removed = Eu`, the variant of the hub that such values become",
                    false => "write `renamed = UsEast`, the variant of the hub",
                };
                return Err(Error::new(argument.name.span(), message));
            };
            let name = match &**expr {
                Expr::Path(path) => path.path.get_ident().cloned(),
                _ => None,
            };
            fate = match (argument.is("renamed"), name) {
                (true, Some(name)) => Self::At(name),
                (true, None) => return Err(argument.expected("renamed = UsEast")),
                (false, Some(name)) => Self::Removed(quote!(OpkitHub::#name)),
                (false, None) => Self::Removed(quote!(#expr)),
            };
        }
        Ok(fate)
    }
}

/// Returns the arms of a variant in the conversions to the hub and from the hub.
fn arms(variant: &Variant, fate: &Fate) -> syn::Result<(TokenStream, Option<TokenStream>)> {
    let ident = &variant.ident;
    let span = ident.span();
    let hub = match fate {
        Fate::Removed(value) => {
            return Ok((quote_spanned!(span=> Self::#ident { .. } => #value), None));
        }
        Fate::At(hub) => hub,
    };
    match &variant.fields {
        Fields::Unit => Ok((
            quote_spanned!(span=> Self::#ident => OpkitHub::#hub),
            Some(quote_spanned!(span=> OpkitHub::#hub => Self::#ident)),
        )),
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            let ty = fields.unnamed.iter().next().map(|field| &field.ty);
            let convert = |direction| {
                ty.map(|ty| carried(ty, &quote!(value), direction))
                    .unwrap_or_default()
            };
            let (up, down) = (convert(Direction::ToHub), convert(Direction::FromHub));
            Ok((
                quote_spanned!(span=> Self::#ident(value) => OpkitHub::#hub(#up)),
                Some(quote_spanned!(span=> OpkitHub::#hub(value) => Self::#ident(#down))),
            ))
        }
        fields => Err(Error::new(
            fields.span(),
            "a variant of a version has no value, or one value in parentheses",
        )),
    }
}

/// Parses an argument such as `added(Asia = Eu)`.
fn parse_added(argument: &Argument) -> syn::Result<Vec<(Ident, Ident)>> {
    let shape = || argument.expected("added(Asia = Eu)");
    let Value::List(tokens) = &argument.value else {
        return Err(shape());
    };
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    let listed = syn::parse::Parser::parse2(parser, tokens.clone())?;
    let name = |expr: &Expr| match expr {
        Expr::Path(path) => path.path.get_ident().cloned(),
        _ => None,
    };
    let pairs = listed.iter().map(|expr| match expr {
        Expr::Assign(assign) => Some((name(&assign.left)?, name(&assign.right)?)),
        _ => None,
    });
    pairs.collect::<Option<_>>().ok_or_else(shape)
}
