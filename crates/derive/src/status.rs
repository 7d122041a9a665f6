//! `#[opkit::status]`: a struct without required fields.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{DeriveInput, Error};

use crate::apply;
use crate::arguments::{self, STRUCT};
use crate::field::Role;
use crate::schema::{self, Struct};

/// Fields that every status should have: JSON name, declaration, and the consequence of leaving out
/// the field.
const EXPECTED: [(&str, &str, &str); 2] = [
    (
        "observedGeneration",
        "observed_generation: Option<i64>",
        "clients cannot know whether the status is up to date",
    ),
    (
        "conditions",
        "conditions: Conditions",
        "the status cannot report that the object is Ready",
    ),
];

pub(crate) fn expand(attribute: TokenStream, mut input: DeriveInput) -> syn::Result<TokenStream> {
    let own = schema::own_arguments(attribute)?;
    if let Some(union) = own.iter().find(|argument| argument.is("union")) {
        let message = "`union` applies to an enum, but a status is a struct";
        return Err(Error::new(union.name.span(), message));
    }
    let arguments = arguments::take(&mut input.attrs, STRUCT)?;
    let mut parsed = Struct::parse(input, Role::Status)?;
    parsed.take(&arguments)?;
    let warnings = warnings(&parsed);
    let apply = (!own.is_empty()).then(|| apply::configuration(&parsed));
    let tokens = parsed.tokens();
    Ok(quote! {
        #tokens
        #apply
        #warnings
    })
}

/// Returns a warning for each expected field that is missing. On stable Rust a macro can warn only
/// by using a deprecated item. `#[allow(deprecated)]` on the struct turns the warning off.
fn warnings(parsed: &Struct) -> TokenStream {
    let ident = parsed.ident();
    let levels = parsed.input().attrs.iter().filter(|attribute| {
        ["allow", "expect", "warn", "deny"]
            .iter()
            .any(|level| attribute.path().is_ident(level))
    });
    let levels: Vec<_> = levels.collect();
    let missing = EXPECTED.iter().filter(|(json, ..)| !parsed.has_field(json));
    let warnings = missing.map(|(json, declared, consequence)| {
        let name = format_ident!("status_without_{json}", span = ident.span());
        let note = format!("`{ident}` has no `{declared}`: {consequence}");
        quote_spanned! {ident.span()=>
            #[allow(non_upper_case_globals)]
            #(#levels)*
            const _: () = {
                #[deprecated(note = #note)]
                const #name: () = ();
                #name
            };
        }
    });
    quote!(#(#warnings)*)
}
