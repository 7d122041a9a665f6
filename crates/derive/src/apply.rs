//! Apply configurations: a twin of a struct in which all fields are optional, for server-side
//! apply. A field that is not set is not written, so that another field manager can own it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{GenericArgument, Path, PathArguments, Type};

use crate::field::Field;
use crate::schema::Struct;
use crate::types::{self, Class};

/// Generates the apply configuration of a struct, such as `RobotSpecApply`.
pub(crate) fn configuration(parsed: &Struct) -> TokenStream {
    let input = parsed.input();
    let (vis, ident) = (&input.vis, &input.ident);
    let name = apply_ident(ident);
    let doc =
        format!("Apply configuration of [`{ident}`]: only the fields that are set are applied.");
    let fields = parsed.fields().iter().map(|field| {
        let (field_name, json, docs) = (field.ident(), &field.json, field.docs());
        let ty = applied_type(field);
        quote! {
            #(#docs)*
            #[serde(
                rename = #json,
                default,
                skip_serializing_if = "::core::option::Option::is_none"
            )]
            #vis #field_name: ::core::option::Option<#ty>,
        }
    });
    let setters = parsed.fields().iter().map(|field| setter(field, vis));
    quote! {
        #[doc = #doc]
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            ::core::default::Default,
            ::opkit::__private::serde::Serialize,
            ::opkit::__private::serde::Deserialize
        )]
        #[serde(crate = "::opkit::__private::serde")]
        #vis struct #name {
            #(#fields)*
        }

        #[automatically_derived]
        #[allow(dead_code)]
        impl #name {
            /// Creates a configuration without fields.
            #vis fn new() -> Self {
                ::core::default::Default::default()
            }

            #(#setters)*
        }
    }
}

/// Generates the apply configuration of a kind, such as `RobotApply`. `span` is that of the
/// argument `apply`.
pub(crate) fn root(spec: &Struct, kind: &Ident, status: Option<&Path>, span: Span) -> TokenStream {
    let vis = &spec.input().vis;
    let (name, spec) = (apply_ident(kind), apply_ident(spec.ident()));
    let doc = format!("Apply configuration of the kind [`{kind}`].");
    let meta =
        quote!(::opkit::__private::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta);
    let status = status.map(|status| {
        let status = apply_path(status, span);
        let field = quote! {
            /// Observed state.
            #[serde(default, skip_serializing_if = "::core::option::Option::is_none")]
            #vis status: ::core::option::Option<#status>,
        };
        let setter = quote! {
            /// Sets the fields of the status.
            #vis fn status(mut self, status: #status) -> Self {
                self.status = ::core::option::Option::Some(status);
                self
            }
        };
        (field, setter)
    });
    let (status_field, status_setter) = status.unzip();
    quote! {
        #[doc = #doc]
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            ::core::default::Default,
            ::opkit::__private::serde::Serialize,
            ::opkit::__private::serde::Deserialize
        )]
        #[serde(crate = "::opkit::__private::serde")]
        #vis struct #name {
            /// Name, namespace, labels and other standard metadata.
            #[serde(default)]
            #vis metadata: #meta,
            /// Desired state.
            #[serde(default, skip_serializing_if = "::core::option::Option::is_none")]
            #vis spec: ::core::option::Option<#spec>,
            #status_field
        }

        #[automatically_derived]
        #[allow(dead_code)]
        impl #name {
            /// Creates a configuration of the object with this name.
            #vis fn new(name: &str) -> Self {
                let mut configuration = Self::default();
                configuration.metadata.name =
                    ::core::option::Option::Some(::std::string::String::from(name));
                configuration
            }

            /// Sets the namespace.
            #vis fn namespace(mut self, namespace: &str) -> Self {
                self.metadata.namespace =
                    ::core::option::Option::Some(::std::string::String::from(namespace));
                self
            }

            /// Adds a label.
            #vis fn label(mut self, key: &str, value: &str) -> Self {
                self.metadata
                    .labels
                    .get_or_insert_default()
                    .insert(::std::string::String::from(key), ::std::string::String::from(value));
                self
            }

            /// Adds an annotation.
            #vis fn annotation(mut self, key: &str, value: &str) -> Self {
                self.metadata
                    .annotations
                    .get_or_insert_default()
                    .insert(::std::string::String::from(key), ::std::string::String::from(value));
                self
            }

            /// Sets the fields of the spec.
            #vis fn spec(mut self, spec: #spec) -> Self {
                self.spec = ::core::option::Option::Some(spec);
                self
            }

            #status_setter
        }

        #[automatically_derived]
        impl ::opkit::__private::ApplyConfiguration for #name {
            type Object = #kind;

            fn metadata(&self) -> &#meta {
                &self.metadata
            }
        }
    }
}

fn setter(field: &Field, vis: &syn::Visibility) -> TokenStream {
    let name = field.ident();
    let ty = applied_type(field);
    let doc = format!("Sets the field `{}`.", field.json);
    let (parameter, value) = match types::class(&ty) {
        Class::String => (
            quote!(impl ::core::convert::Into<#ty>),
            quote!(value.into()),
        ),
        Class::List => {
            let item = types::element(&ty);
            (
                quote!(impl ::core::iter::IntoIterator<Item = #item>),
                quote!(value.into_iter().collect()),
            )
        }
        _ => (quote!(#ty), quote!(value)),
    };
    quote! {
        #[doc = #doc]
        #vis fn #name(mut self, value: #parameter) -> Self {
            self.#name = ::core::option::Option::Some(#value);
            self
        }
    }
}

/// Returns the type of a field in the apply configuration: with `#[opkit(apply)]`, the apply
/// configuration of the field's type, or of its items.
fn applied_type(field: &Field) -> Type {
    let ty = types::in_option(field.ty()).unwrap_or(field.ty());
    match field.has_apply {
        true => with_apply(ty),
        false => ty.clone(),
    }
}

fn with_apply(ty: &Type) -> Type {
    let Type::Path(path) = ty else {
        return ty.clone();
    };
    let mut path = path.clone();
    let is_collection = matches!(types::class(ty), Class::List | Class::Map);
    let Some(last) = path.path.segments.last_mut() else {
        return ty.clone();
    };
    match &mut last.arguments {
        PathArguments::AngleBracketed(arguments) if is_collection => {
            // The items of a list, or the values of a map.
            if let Some(GenericArgument::Type(element)) = arguments.args.last_mut() {
                *element = with_apply(element);
            }
        }
        _ => last.ident = apply_ident(&last.ident),
    }
    Type::Path(path)
}

fn apply_ident(ident: &Ident) -> Ident {
    format_ident!("{ident}Apply", span = ident.span())
}

fn apply_path(path: &Path, span: Span) -> TokenStream {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.ident = format_ident!("{}Apply", last.ident, span = span);
    }
    quote_spanned!(span=> #path)
}
