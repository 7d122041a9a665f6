//! `#[opkit::kind(...)]`: generates the spec, the root type with kube's traits, and the definition
//! of the resource.

mod definition;
mod paths;
mod scale;
pub(crate) mod versions;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_quote};

use self::definition::Definition;
use self::versions::Versions;
use crate::apply;
use crate::arguments::{self, KIND, STRUCT};
use crate::errors::Errors;
use crate::field::Role;
use crate::schema::Struct;

pub(crate) fn expand(attribute: TokenStream, mut input: DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let (versions, attribute) = Versions::take(attribute)?;
    let arguments = errors.take(arguments::parse(attribute, KIND));
    let own = errors.take(arguments::take(&mut input.attrs, KIND.and(STRUCT)));
    let ident = input.ident.clone();
    let mut parsed = errors.take(Struct::parse(input, Role::Spec));
    let mut definition = None;
    // If an argument is not valid, it is unknown which ones are missing.
    if let (Some(mut arguments), Some(own)) = (arguments, own) {
        // The arguments of a struct concern the spec, all others the kind.
        let (rules, own): (Vec<_>, Vec<_>) = own
            .into_iter()
            .partition(|argument| argument.is_allowed_at(STRUCT));
        arguments.extend(own);
        errors.take(arguments::reject_repeats(&arguments));
        definition = errors.take(Definition::parse(&ident, &arguments));
        if let Some(parsed) = &mut parsed {
            errors.take(parsed.take(&rules));
        }
    }
    let (Some(mut parsed), Some(definition)) = (parsed, definition) else {
        return errors.none_or(TokenStream::new());
    };
    let Some(checks) = errors.take(paths::checks(&parsed, &definition)) else {
        return errors.none_or(TokenStream::new());
    };
    let root = root(&parsed, &definition, &versions);
    let apply = definition.apply.map(|span| {
        let spec = apply::configuration(&parsed);
        let root = apply::root(&parsed, &definition.kind, definition.status.as_ref(), span);
        quote!(#spec #root)
    });
    if parsed.derives.has("TypedClient") {
        let kind = definition.kind.to_string();
        let status = definition
            .status
            .as_ref()
            .map(|_| quote!(, status = "status"));
        let scale = definition.has_scale().then(|| quote!(, scale()));
        parsed.annotate(parse_quote!(#[kube(kind = #kind #status #scale)]));
    }
    let spec = parsed.tokens();
    errors.none_or(quote! {
        #spec
        #root
        #apply
        #checks
    })
}

/// Generates the root type of the kind: a struct with metadata, spec and status.
fn root(spec: &Struct, definition: &Definition, versions: &Versions) -> TokenStream {
    let input = spec.input();
    let columns = spec.columns();
    let table = definition.table(columns);
    let (vis, spec) = (&input.vis, &input.ident);
    let docs: Vec<_> = input
        .attrs
        .iter()
        .filter(|it| it.path().is_ident("doc"))
        .collect();
    let kind = &definition.kind;
    let kind_name = kind.to_string();
    let docs = match docs.is_empty() {
        _ if definition.description().is_some() => {
            let doc = definition.description();
            quote!(#[doc = #doc])
        }
        true => {
            let doc = format!("Object of the kind `{kind_name}`.");
            quote!(#[doc = #doc])
        }
        false => quote!(#(#docs)*),
    };
    let (status_field, new_status, serialize_status, has_status, status_schema) =
        match &definition.status {
            Some(status) => (
                quote! {
                    /// Observed state, written by the operator.
                    #[serde(default)]
                    #vis status: ::core::option::Option<#status>,
                },
                quote!(status: ::core::option::Option::None,),
                quote! {
                    if let ::core::option::Option::Some(status) = &self.status {
                        object.serialize_field("status", status)?;
                    }
                },
                quote! {
                    #[automatically_derived]
                    impl ::opkit::__private::kube::core::object::HasStatus for #kind {
                        type Status = #status;

                        fn status(&self) -> ::core::option::Option<&#status> {
                            self.status.as_ref()
                        }

                        fn status_mut(&mut self) -> &mut ::core::option::Option<#status> {
                            &mut self.status
                        }
                    }
                },
                quote!(::core::option::Option::Some(
                    ::opkit::__private::schemars::SchemaGenerator::subschema_for::<#status>
                )),
            ),
            None => (
                quote!(),
                quote!(),
                quote!(),
                quote!(),
                quote!(::core::option::Option::None),
            ),
        };
    let spec_default = (definition.is_spec_optional()).then(|| quote!(#[serde(default)]));
    let fields = match definition.status {
        Some(_) => quote!(4 + usize::from(self.status.is_some())),
        None => quote!(4),
    };
    let hub = versions.hub(definition, spec);
    let table_crd = versions.add_to(&quote! {
        TABLE.crd(
            ::opkit::__private::schemars::SchemaGenerator::subschema_for::<#spec>,
            #status_schema,
        )
    });
    let derives = &definition.derives;
    let resource = definition.resource();
    let short_names = &definition.short_names;
    let crd_name = format!("{}.{}", definition.plural, definition.group);
    let meta =
        quote!(::opkit::__private::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta);
    let crd = quote!(::opkit::__private::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition);
    quote! {
        #docs
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            #(#derives,)*
            ::opkit::__private::serde::Deserialize
        )]
        #[serde(crate = "::opkit::__private::serde")]
        #vis struct #kind {
            /// Name, namespace, labels and other standard metadata.
            #[serde(default)]
            #vis metadata: #meta,
            /// Desired state, written by the user.
            #spec_default
            #vis spec: #spec,
            #status_field
        }

        impl #kind {
            /// Creates an object with a name and a spec.
            #vis fn new(name: &str, spec: #spec) -> Self {
                Self {
                    metadata: #meta {
                        name: ::core::option::Option::Some(::std::string::String::from(name)),
                        ..::core::default::Default::default()
                    },
                    spec,
                    #new_status
                }
            }
        }

        #[automatically_derived]
        impl ::opkit::__private::serde::Serialize for #kind {
            fn serialize<S: ::opkit::__private::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                use ::opkit::__private::serde::ser::SerializeStruct as _;
                use ::opkit::__private::kube::Resource as _;
                let mut object = serializer.serialize_struct(#kind_name, #fields)?;
                object.serialize_field("apiVersion", &Self::api_version(&()))?;
                object.serialize_field("kind", &Self::kind(&()))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                #serialize_status
                object.end()
            }
        }

        #resource

        #[automatically_derived]
        impl ::opkit::__private::kube::core::object::HasSpec for #kind {
            type Spec = #spec;

            fn spec(&self) -> &#spec {
                &self.spec
            }

            fn spec_mut(&mut self) -> &mut #spec {
                &mut self.spec
            }
        }

        #has_status

        #hub

        #[automatically_derived]
        impl ::opkit::__private::kube::CustomResourceExt for #kind {
            fn crd() -> #crd {
                const TABLE: ::opkit::__private::kinds::KindTable = #table;
                #table_crd
            }

            fn crd_name() -> &'static str {
                #crd_name
            }

            fn api_resource() -> ::opkit::__private::kube::core::ApiResource {
                ::opkit::__private::kube::core::ApiResource::erase::<Self>(&())
            }

            fn shortnames() -> &'static [&'static str] {
                &[#(#short_names),*]
            }
        }
    }
}
