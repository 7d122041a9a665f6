//! Derives of a type with an attribute of opkit: the derives that opkit needs, and the derives that
//! the user wrote.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Path, Token};

/// Derives that the user wrote, removed from the attributes of the type.
pub(crate) struct Derives(Vec<Path>);

impl Derives {
    pub(crate) fn take(attributes: &mut Vec<Attribute>) -> syn::Result<Self> {
        let mut paths = Vec::new();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("derive")) {
            let parser = Punctuated::<Path, Token![,]>::parse_terminated;
            paths.extend(attribute.parse_args_with(parser)?);
        }
        attributes.retain(|attribute| !attribute.path().is_ident("derive"));
        Ok(Self(paths))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|path| is(path, name))
    }

    /// Removes a derive, and returns whether the user had written this derive.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|path| !is(path, name));
        self.0.len() < before
    }

    /// Returns the attribute `#[derive(...)]` for a type whose traits of serde and schemars opkit
    /// implements itself: the derives that the user wrote, `Clone` and `Debug`.
    pub(crate) fn plain_tokens(&self) -> TokenStream {
        let own = &self.0;
        let clone = (!self.has("Clone")).then(|| quote!(::core::clone::Clone,));
        let debug = (!self.has("Debug")).then(|| quote!(::core::fmt::Debug,));
        quote!(#[derive(#(#own,)* #clone #debug)])
    }

    /// Returns the attribute `#[derive(...)]` with all derives: the derives that the user wrote,
    /// the derives that opkit always adds, and the derives of the standard library that `more`
    /// names.
    pub(crate) fn tokens(&self, more: &[&str]) -> TokenStream {
        let own = &self.0;
        let std = [
            ("Clone", quote!(::core::clone::Clone)),
            ("Copy", quote!(::core::marker::Copy)),
            ("Debug", quote!(::core::fmt::Debug)),
            ("PartialEq", quote!(::core::cmp::PartialEq)),
            ("Eq", quote!(::core::cmp::Eq)),
            ("Default", quote!(::core::default::Default)),
        ];
        let always = ["Clone", "Debug"];
        let std = std.iter().filter_map(|(name, path)| {
            let is_wanted = always.contains(name) || more.contains(name);
            (is_wanted && !self.has(name)).then_some(path)
        });
        quote! {
            #[derive(
                #(#own,)*
                #(#std,)*
                ::opkit::__private::serde::Serialize,
                ::opkit::__private::serde::Deserialize,
                ::opkit::__private::schemars::JsonSchema
            )]
        }
    }
}

fn is(path: &Path, name: &str) -> bool {
    path.segments.last().is_some_and(|last| last.ident == name)
}
