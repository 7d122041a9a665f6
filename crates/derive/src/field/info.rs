//! The constant `FIELDS` of a struct, and the checks that other types make with it when they are
//! compiled.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{LitStr, Type};

use super::Field;
use crate::keywords::{Keywords, Rule};
use crate::types::{self, Class};

impl Field {
    /// Generates the `FieldInfo` of the field.
    pub(crate) fn info(&self) -> TokenStream {
        let (name, is_present) = (&self.json, !self.is_absent);
        let ty = types::in_option(&self.ty).unwrap_or(&self.ty);
        let is_replaced = self.keywords.replaces_schema;
        let shape = match types::class(ty) {
            _ if is_replaced => quote!(Unknown),
            Class::Bool | Class::Integer | Class::Float | Class::String => quote!(Scalar),
            Class::List => quote!(List),
            Class::Map => quote!(Unknown),
            // The fields of a generic type are those of its argument, such as those of a `Box`.
            Class::Other if !types::arguments(ty).is_empty() => quote!(Unknown),
            Class::Other => {
                let fields = probe(ty);
                quote!(Type(#fields))
            }
        };
        quote!(::opkit::__private::kinds::FieldInfo {
            name: #name,
            is_present: #is_present,
            shape: ::opkit::__private::kinds::Shape::#shape,
        })
    }

    /// Generates the checks of the keys of `list_map = ...`.
    pub(crate) fn key_checks(&self) -> TokenStream {
        key_checks(&self.keywords, &self.ty)
    }
}

/// Generates the checks that the items of a list have the keys of `list_map = ...`. A check fails
/// at compile time, when the constant is evaluated.
pub(crate) fn key_checks(keywords: &Keywords, ty: &Type) -> TokenStream {
    let ty = types::in_option(ty).unwrap_or(ty);
    let Some(item) = types::element(ty).filter(|item| types::class(item) == Class::Other) else {
        return TokenStream::new();
    };
    let checks = keywords.map_keys.iter().map(|key| {
        let item_name = item.to_token_stream().to_string().replace(' ', "");
        let name = key.value();
        let message = format!(
            "list_map = {name:?}: {item_name} has no field `{name}` that is always set and is a string, a number or a bool"
        );
        let fields = probe(item);
        let holds = quote!(::opkit::__private::kinds::has_key(#fields, #name));
        assertion(key, &holds, &message)
    });
    quote!(#(#checks)*)
}

/// Generates an expression with the `FIELDS` of a type, or `None` if the type is not declared with
/// an attribute of opkit.
pub(crate) fn probe(ty: &impl ToTokens) -> TokenStream {
    quote! {
        {
            #[allow(unused_imports)]
            use ::opkit::__private::kinds::UnknownFields as _;
            ::opkit::__private::kinds::Probe::<#ty>::FIELDS
        }
    }
}

/// Generates a constant whose evaluation fails with `message` unless `holds` is true. The error
/// points at `literal`.
pub(crate) fn assertion(literal: &LitStr, holds: &TokenStream, message: &str) -> TokenStream {
    let span = literal.span();
    quote_spanned! {span=>
        const _: () = ::opkit::__private::kinds::require(#holds, #message);
    }
}

/// Generates the check that a type has the fields of a path. `what` names the path in the error,
/// such as `printcolumn "Node"`.
pub(crate) fn path_check(
    literal: &LitStr,
    what: &str,
    ty: &impl ToTokens,
    path: &[String],
) -> TokenStream {
    let ty_name = ty.to_token_stream().to_string().replace(' ', "");
    let message = match path {
        [name] => format!("{what}: {ty_name} has no field `{name}`"),
        path => format!("{what}: {ty_name} has no field at `.{}`", path.join(".")),
    };
    let fields = probe(ty);
    let holds = quote!(::opkit::__private::kinds::has_path(#fields, &[#(#path),*]));
    assertion(literal, &holds, &message)
}

/// Generates the checks that the fields exist that the rules of a struct use below its own fields,
/// such as `size` in `self.node.size`. The macro has already checked the fields of the struct.
pub(crate) fn rule_checks<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    fields: &[Field],
) -> TokenStream {
    let checks = rules.filter_map(Rule::paths).flat_map(|(rule, paths)| {
        paths.into_iter().filter_map(move |path| {
            let (first, below) = path.split_first()?;
            let field = fields.iter().find(|field| field.json == *first)?;
            let ty = types::in_option(&field.ty).unwrap_or(&field.ty);
            let is_declared = types::class(ty) == Class::Other && types::arguments(ty).is_empty();
            let is_checked = is_declared && !field.keywords.replaces_schema && !below.is_empty();
            is_checked.then(|| path_check(rule, "rule", ty, below))
        })
    });
    quote!(#(#checks)*)
}

/// Generates the implementation of `Fields` for a struct.
pub(crate) fn fields(ident: &Ident, fields: &[Field]) -> TokenStream {
    let infos = fields.iter().map(Field::info);
    quote! {
        #[automatically_derived]
        impl ::opkit::__private::kinds::Fields for #ident {
            const FIELDS: &'static [::opkit::__private::kinds::FieldInfo] = &[#(#infos),*];
        }
    }
}
