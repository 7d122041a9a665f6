//! The generated code.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Ident, Path, Token};

use crate::names::field_name;
use crate::table::{Definition, FieldType, Table};

/// The kinds in a call of the macro.
pub(crate) type Kinds = Punctuated<Path, Token![,]>;

/// Returns the code for a call of the macro.
pub(crate) fn generate(kinds: &Kinds) -> Result<TokenStream, Error> {
    let table = Table::read();
    if kinds.is_empty() {
        let message = "no kind is given: write `apply_types!(Deployment, Service)`";
        return Err(Error::new(Span::call_site(), message));
    }
    let mut types = Types {
        table: &table,
        names: BTreeMap::new(),
        code: TokenStream::new(),
    };
    for kind in kinds {
        let name = find(&table, kind)?;
        types.add(name, kind.span())?;
    }
    Ok(types.code)
}

/// Returns the name of a kind in the table.
fn find(table: &Table, kind: &Path) -> Result<&'static str, Error> {
    let segments: Vec<String> = kind
        .segments
        .iter()
        .map(|it| it.ident.to_string())
        .collect();
    let wanted = segments.join(".");
    let found = table.kinds(&wanted);
    let paths = |names: &[&str]| names.join("`, `").replace('.', "::");
    match found.as_slice() {
        [name] => Ok(name),
        [] => {
            let last = segments.last().cloned().unwrap_or_default();
            let similar = table.kinds(&last);
            let hint = match similar.as_slice() {
                [] => {
                    "built-in kinds of Kubernetes 1.36 are named as in k8s-openapi; for your own \
                     kinds write `apply` in #[opkit::kind(...)]"
                        .to_owned()
                }
                names => format!("did you mean `{}`?", paths(names)),
            };
            Err(Error::new(
                kind.span(),
                format!(
                    "there is no built-in kind `{}`: {hint}",
                    wanted.replace('.', "::")
                ),
            ))
        }
        names => Err(Error::new(
            kind.span(),
            format!(
                "several kinds are named `{wanted}`: write one of `{}`",
                paths(names)
            ),
        )),
    }
}

/// The types that are generated.
struct Types<'a> {
    table: &'a Table,
    /// Generated structs, and the types that they are for.
    names: BTreeMap<String, &'a str>,
    code: TokenStream,
}

impl<'a> Types<'a> {
    /// Adds a type and the types of its fields.
    fn add(&mut self, name: &'a str, span: Span) -> Result<(), Error> {
        let mut waiting = vec![name];
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            let short = short(name);
            match self.names.insert(short.to_owned(), name) {
                None => {}
                Some(other) if other == name => continue,
                Some(other) => {
                    return Err(Error::new(
                        span,
                        format!(
                            "{other} and {name} are both needed, and both are called {short}: \
                             call the macro for one of the kinds in another module"
                        ),
                    ));
                }
            }
            let Some(definition) = self.table.get(name) else {
                continue;
            };
            for (_, ty) in &definition.fields {
                waiting.extend(fields_of(ty).filter(|name| seen.insert(*name)));
            }
            self.code.extend(structure(name, definition, span));
        }
        Ok(())
    }
}

/// Returns the name of the type with fields in a type, if there is one.
fn fields_of(ty: &str) -> impl Iterator<Item = &str> {
    let mut ty = ty;
    loop {
        match FieldType::of(ty) {
            FieldType::List(inner) | FieldType::Map(inner) => ty = inner,
            FieldType::Fields(name) => return Some(name).into_iter(),
            FieldType::Leaf(_) => return None.into_iter(),
        }
    }
}

/// Returns the last segment of a name.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn struct_name(name: &str, span: Span) -> Ident {
    format_ident!("{}Apply", short(name), span = span)
}

/// Returns the struct of a type, with its methods.
fn structure(name: &str, definition: &Definition, span: Span) -> TokenStream {
    let ident = struct_name(name, span);
    let is_root = |json: &str| definition.is_kind && ["apiVersion", "kind"].contains(&json);
    let is_metadata = |json: &str| definition.is_kind && json == "metadata";
    let fields = definition.fields.iter().filter(|(json, _)| !is_root(json));
    let (mut declared, mut methods) = (TokenStream::new(), TokenStream::new());
    for (json, ty) in fields {
        let field = format_ident!("{}", field_name(json), span = span);
        let (parameter, value) = parameter(ty, span);
        let ty = rust_type(ty, span);
        if is_metadata(json) {
            declared.extend(quote! {
                /// Name, namespace, labels and other standard metadata.
                #[serde(default)]
                pub metadata: #ty,
            });
            continue;
        }
        let doc = format!("The field `{json}`.");
        declared.extend(quote! {
            #[doc = #doc]
            #[serde(
                rename = #json,
                default,
                skip_serializing_if = "::core::option::Option::is_none"
            )]
            pub #field: ::core::option::Option<#ty>,
        });
        let doc = format!("Sets the field `{json}`.");
        methods.extend(quote! {
            #[doc = #doc]
            pub fn #field(mut self, value: #parameter) -> Self {
                self.#field = ::core::option::Option::Some(#value);
                self
            }
        });
    }
    let doc = format!("Apply configuration of `{name}`: only the fields that are set are applied.");
    let constructors = match definition.is_kind {
        true => metadata_methods(),
        false => quote! {
            /// Creates a configuration without fields.
            pub fn new() -> Self {
                ::core::default::Default::default()
            }
        },
    };
    let implementation = definition
        .is_kind
        .then(|| apply_configuration(name, &ident, span));
    quote_spanned! {span=>
        #[doc = #doc]
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            ::core::default::Default,
            ::core::cmp::PartialEq,
            ::opkit::__private::serde::Serialize,
            ::opkit::__private::serde::Deserialize
        )]
        #[serde(crate = "::opkit::__private::serde")]
        #[allow(unreachable_pub)]
        pub struct #ident {
            #declared
        }

        #[allow(dead_code, unreachable_pub)]
        impl #ident {
            #constructors
            #methods
        }

        #implementation
    }
}

/// Returns the methods for the metadata of a kind.
fn metadata_methods() -> TokenStream {
    quote! {
        /// Creates a configuration of the object with this name.
        pub fn new(name: impl ::core::convert::Into<::std::string::String>) -> Self {
            let mut configuration = Self::default();
            configuration.metadata.name = ::core::option::Option::Some(name.into());
            configuration
        }

        /// Sets the namespace.
        pub fn namespace(
            mut self,
            namespace: impl ::core::convert::Into<::std::string::String>,
        ) -> Self {
            self.metadata.namespace = ::core::option::Option::Some(namespace.into());
            self
        }

        /// Adds a label.
        pub fn label(
            mut self,
            key: impl ::core::convert::Into<::std::string::String>,
            value: impl ::core::convert::Into<::std::string::String>,
        ) -> Self {
            let labels = self.metadata.labels.get_or_insert_default();
            labels.insert(key.into(), value.into());
            self
        }

        /// Adds an annotation.
        pub fn annotation(
            mut self,
            key: impl ::core::convert::Into<::std::string::String>,
            value: impl ::core::convert::Into<::std::string::String>,
        ) -> Self {
            let annotations = self.metadata.annotations.get_or_insert_default();
            annotations.insert(key.into(), value.into());
            self
        }
    }
}

fn apply_configuration(name: &str, ident: &Ident, span: Span) -> TokenStream {
    let meta = object_meta();
    let segments = name.split('.').map(|it| format_ident!("{it}", span = span));
    quote! {
        #[automatically_derived]
        impl ::opkit::__private::ApplyConfiguration for #ident {
            type Object = ::opkit::__private::k8s_openapi::api #(::#segments)*;

            fn metadata(&self) -> &#meta {
                &self.metadata
            }
        }
    }
}

/// Returns the type of the parameter `value` of a method that sets a field, and the expression for
/// the field: the same as in the apply configurations of own kinds.
fn parameter(ty: &str, span: Span) -> (TokenStream, TokenStream) {
    let rust = rust_type(ty, span);
    match FieldType::of(ty) {
        FieldType::List(item) => {
            let item = rust_type(item, span);
            (
                quote!(impl ::core::iter::IntoIterator<Item = #item>),
                quote!(value.into_iter().collect()),
            )
        }
        FieldType::Leaf("string") => (
            quote!(impl ::core::convert::Into<#rust>),
            quote!(value.into()),
        ),
        _ => (rust, quote!(value)),
    }
}

fn rust_type(ty: &str, span: Span) -> TokenStream {
    match FieldType::of(ty) {
        FieldType::Fields(name) => {
            let ident = struct_name(name, span);
            quote!(#ident)
        }
        FieldType::List(item) => {
            let item = rust_type(item, span);
            quote!(::std::vec::Vec<#item>)
        }
        FieldType::Map(value) => {
            let value = rust_type(value, span);
            quote!(::std::collections::BTreeMap<::std::string::String, #value>)
        }
        FieldType::Leaf(name) => leaf(name).unwrap_or_default(),
    }
}

fn object_meta() -> TokenStream {
    quote!(::opkit::__private::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta)
}

/// Returns the Rust type of a type without fields.
pub(crate) fn leaf(name: &str) -> Option<TokenStream> {
    let k8s = quote!(::opkit::__private::k8s_openapi);
    Some(match name {
        "string" => quote!(::std::string::String),
        "boolean" => quote!(bool),
        "int32" => quote!(i32),
        "int64" => quote!(i64),
        "double" => quote!(f64),
        "bytes" => quote!(#k8s::ByteString),
        "any" => quote!(::opkit::__private::serde_json::Value),
        "quantity" => quote!(#k8s::apimachinery::pkg::api::resource::Quantity),
        "int-or-string" => quote!(#k8s::apimachinery::pkg::util::intstr::IntOrString),
        "time" => quote!(#k8s::apimachinery::pkg::apis::meta::v1::Time),
        "micro-time" => quote!(#k8s::apimachinery::pkg::apis::meta::v1::MicroTime),
        "metadata" => object_meta(),
        _ => return None,
    })
}
