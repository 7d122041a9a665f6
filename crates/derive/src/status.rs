//! `#[opkit::status]`: a struct of which nothing is required.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{DeriveInput, Error};

use crate::field::Role;
use crate::schema::Struct;
use crate::words::{self, STRUCT};

/// The fields that every status should have: on the wire, as they are declared, and what they are
/// for.
const EXPECTED: [(&str, &str, &str); 2] = [
    (
        "observedGeneration",
        "observed_generation: Option<i64>",
        "nobody can tell whether the status is up to date",
    ),
    (
        "conditions",
        "conditions: Conditions",
        "it cannot say that the object is Ready",
    ),
];

pub(crate) fn expand(attribute: TokenStream, mut input: DeriveInput) -> syn::Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(Error::new_spanned(
            attribute,
            "#[opkit::status] takes no arguments",
        ));
    }
    let words = words::take(&mut input.attrs, STRUCT)?;
    let mut parsed = Struct::parse(input, Role::Status)?;
    parsed.take(&words)?;
    let warnings = warnings(&parsed);
    let tokens = parsed.tokens();
    Ok(quote! {
        #tokens
        #warnings
    })
}

/// A warning for each expected field that is missing. Stable Rust lets a macro warn in one way
/// only: by the use of something deprecated. `#[allow(deprecated)]` on the struct turns it off.
fn warnings(parsed: &Struct) -> TokenStream {
    let ident = parsed.ident();
    let levels = parsed.input().attrs.iter().filter(|attribute| {
        ["allow", "expect", "warn", "deny"]
            .iter()
            .any(|level| attribute.path().is_ident(level))
    });
    let levels: Vec<_> = levels.collect();
    let missing = EXPECTED.iter().filter(|(json, ..)| !parsed.has_field(json));
    let warnings = missing.map(|(json, declared, why)| {
        let name = format_ident!("status_without_{json}", span = ident.span());
        let note = format!("`{ident}` has no `{declared}`: {why}");
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
