//! The versions of a kind: the arguments `versions` and `storage` of `#[opkit::kind(...)]`, and the
//! root type of a version.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, LitStr, Path, Token, parse_quote};

use super::definition::Definition;
use crate::arguments::{self, Argument, KIND, STRUCT, Value};
use crate::errors::Errors;
use crate::field::Role;
use crate::schema::Struct;
use crate::version::{self, Version};

/// Arguments of `#[opkit::kind(...)]` about the other versions of a kind.
#[derive(Default)]
pub(super) struct Versions {
    paths: Vec<Path>,
    storage: Option<LitStr>,
}

/// Arguments that a version takes from its hub.
const OF_HUB: [&str; 7] = [
    "group",
    "plural",
    "singular",
    "namespaced",
    "cluster",
    "shortname",
    "category",
];

impl Versions {
    /// Removes the arguments about versions from the arguments of `#[opkit::kind(...)]`.
    pub(super) fn take(attribute: TokenStream) -> syn::Result<(Self, TokenStream)> {
        let (own, rest) = version::take(attribute, &["versions", "storage"])?;
        arguments::reject_repeats(&own)?;
        let mut versions = Self::default();
        for argument in &own {
            match (argument.is("storage"), &argument.value) {
                (true, _) => versions.storage = Some(argument.string()?),
                (false, Value::List(tokens)) => {
                    let parser = Punctuated::<Path, Token![,]>::parse_terminated;
                    let paths = syn::parse::Parser::parse2(parser, tokens.clone())?;
                    versions.paths = paths.into_iter().collect();
                }
                (false, _) => return Err(argument.expected("versions(v1alpha1::Robot)")),
            }
        }
        if let (true, Some(storage)) = (versions.paths.is_empty(), &versions.storage) {
            let message = "a kind with one version stores that version: remove `storage`, or add `versions(...)`";
            return Err(Error::new_spanned(storage, message));
        }
        Ok((versions, rest))
    }

    /// Generates the implementation of `Hub`, and the checks of the versions.
    pub(super) fn hub(&self, definition: &Definition, spec: &Ident) -> TokenStream {
        let kind = &definition.kind;
        let version = definition.version();
        let (status, schema) = match &definition.status {
            Some(status) => (
                quote!(#status),
                quote!(::core::option::Option::Some(
                    ::opkit::__private::schemars::SchemaGenerator::subschema_for::<#status>
                )),
            ),
            None => (
                quote!(::opkit::__private::kinds::versions::NoStatus),
                quote!(::core::option::Option::None),
            ),
        };
        let checks = self.checks(kind);
        quote! {
            #[automatically_derived]
            impl ::opkit::__private::kinds::versions::Hub for #kind {
                type Spec = #spec;
                type Status = #status;
                const VERSION: &'static str = #version;
                const STATUS_SCHEMA: ::core::option::Option<::opkit::__private::kinds::SchemaOf> =
                    #schema;
            }

            #checks
        }
    }

    /// Generates checks in a constant, because only the compiler knows the names of the versions.
    fn checks(&self, kind: &Ident) -> TokenStream {
        if self.paths.is_empty() {
            return TokenStream::new();
        }
        let names = self.names(kind);
        let storage = self.storage.as_ref().map(|storage| {
            let message = format!(
                "storage = {:?}: {kind} has no such version",
                storage.value()
            );
            quote_spanned! {storage.span()=>
                if !::opkit::__private::kinds::versions::is_version(VERSIONS, #storage) {
                    ::core::panic!(#message);
                }
            }
        });
        let span = self
            .paths
            .first()
            .map_or_else(Span::call_site, Spanned::span);
        let message = format!("two versions of {kind} have the same name");
        let distinct = quote_spanned! {span=>
            if !::opkit::__private::kinds::versions::are_distinct(VERSIONS) {
                ::core::panic!(#message);
            }
        };
        quote! {
            const _: () = {
                const VERSIONS: &[&str] = &[#names];
                #storage
                #distinct
            };
        }
    }

    /// Returns expressions for the names of all versions.
    fn names(&self, kind: &Ident) -> TokenStream {
        let paths = &self.paths;
        quote! {
            <#kind as ::opkit::__private::kinds::versions::Hub>::VERSION,
            #(<#paths as ::opkit::__private::kinds::versions::SpokeOf<#kind>>::VERSION),*
        }
    }

    /// Generates the expression that adds the versions to `crd`.
    pub(super) fn add_to(&self, crd: &TokenStream) -> TokenStream {
        let paths = &self.paths;
        if paths.is_empty() {
            return crd.clone();
        }
        let storage = match &self.storage {
            Some(storage) => quote!(#storage),
            None => quote!(<Self as ::opkit::__private::kinds::versions::Hub>::VERSION),
        };
        quote! {
            ::opkit::__private::kinds::versions::with_versions(
                #crd,
                #storage,
                ::std::vec![
                    #(<#paths as ::opkit::__private::kinds::versions::SpokeOf<Self>>::version()),*
                ],
                ::opkit::__private::CONVERSIONS,
            )
        }
    }
}

/// Returns the name of the kind with this spec.
pub(crate) fn kind_of(spec: &Ident) -> syn::Result<Ident> {
    super::definition::kind(spec, None)
}

/// Expands `#[opkit::version(...)]` on the spec of a kind. `rest` contains the arguments of
/// `#[opkit::kind(...)]` that a version may have.
pub(crate) fn expand(
    version: &Version,
    rest: TokenStream,
    mut input: DeriveInput,
) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let name = &version.name;
    // Group and scope are those of the hub; the definition is used for its version only.
    let rest = match rest.is_empty() {
        true => quote!(),
        false => quote!(#rest,),
    };
    let own = errors.take(arguments::take(&mut input.attrs, KIND.and(STRUCT)));
    reject_arguments_of_hub(rest.clone(), own.as_deref())?;
    let ident = input.ident.clone();
    let parsed = errors.take(Struct::parse(input, Role::Spec));
    let (Some(own), Some(mut parsed)) = (own, parsed) else {
        return errors.none_or(TokenStream::new());
    };
    let inherited =
        quote!(#rest group = "hub.opkit.dev", cluster, version = #name, status = Inherited);
    let mut arguments = arguments::parse(inherited, KIND)?;
    let (rules, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|argument| argument.is("rule"));
    arguments.extend(own);
    errors.take(arguments::reject_repeats(&arguments));
    errors.take(parsed.take(&rules));
    let definition = errors.take(Definition::parse(&ident, &arguments));
    let Some(definition) = definition else {
        return errors.none_or(TokenStream::new());
    };
    let root = root(version, &parsed, &definition);
    if parsed.derives.has("TypedClient") {
        let kind = definition.kind.to_string();
        let scale = definition.has_scale().then(|| quote!(, scale()));
        parsed.annotate(parse_quote!(#[kube(kind = #kind, status = "status" #scale)]));
    }
    let spec = parsed.tokens();
    errors.none_or(quote! {
        #spec
        #root
    })
}

fn reject_arguments_of_hub(rest: TokenStream, own: Option<&[Argument]>) -> syn::Result<()> {
    let (found, _) = version::take(rest, &OF_HUB)?;
    let mut all = found.iter().chain(own.into_iter().flatten());
    match all.find(|argument| OF_HUB.iter().any(|name| argument.is(name))) {
        Some(argument) => {
            let name = &argument.name;
            let message = format!("`{name}` is that of the hub: remove it");
            Err(Error::new(name.span(), message))
        }
        None => Ok(()),
    }
}

/// Generates the root type of a version, whose names and scope are those of the hub.
fn root(version: &Version, spec: &Struct, definition: &Definition) -> TokenStream {
    let input = spec.input();
    let table = definition.table(spec.columns());
    let (vis, spec) = (&input.vis, &input.ident);
    let kind = &definition.kind;
    let of = &version.of;
    let derives = &definition.derives;
    let kinds = quote!(::opkit::__private::kinds);
    let hub = quote!(<#of as #kinds::versions::Hub>);
    let resource = quote!(::opkit::__private::kube::Resource);
    let (status, status_schema, functions) = match version.status() {
        Some(status) => (
            quote!(#status),
            quote!(::core::option::Option::Some(
                ::opkit::__private::schemars::SchemaGenerator::subschema_for::<#status>
            )),
            quote!(#kinds::versions::of_spec_and_status::<#spec, #status>()),
        ),
        None => (
            quote!(#hub::Status),
            quote!(#hub::STATUS_SCHEMA),
            quote!(#kinds::versions::of_spec::<#spec>()),
        ),
    };
    let functions = match version.has_functions() {
        true => quote!(#kinds::versions::of_object::<#kind>()),
        false => functions,
    };
    let name = version.name.as_ref().map(LitStr::value).unwrap_or_default();
    let name = LitStr::new(&name, Span::call_site());
    let is_served = version.is_served;
    let deprecated = match &version.deprecated {
        Some(warning) => quote!(::core::option::Option::Some(#warning)),
        None => quote!(::core::option::Option::None),
    };
    let doc = format!("Object of the kind `{kind}`, version {}.", name.value());
    let meta =
        quote!(::opkit::__private::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta);
    let crd = quote!(::opkit::__private::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition);
    let text = quote!(::std::borrow::Cow<'_, str>);
    quote! {
        #[doc = #doc]
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
            #vis spec: #spec,
            /// Observed state, written by the operator.
            #[serde(default)]
            #vis status: ::core::option::Option<#status>,
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
                    status: ::core::option::Option::None,
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
                use #resource as _;
                let fields = 4 + usize::from(self.status.is_some());
                let mut object = serializer.serialize_struct(::core::stringify!(#kind), fields)?;
                object.serialize_field("apiVersion", &Self::api_version(&()))?;
                object.serialize_field("kind", &Self::kind(&()))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                if let ::core::option::Option::Some(status) = &self.status {
                    object.serialize_field("status", status)?;
                }
                object.end()
            }
        }

        #[automatically_derived]
        impl #resource for #kind {
            type DynamicType = ();
            type Scope = <#of as #resource>::Scope;

            fn kind(_: &()) -> #text {
                <#of as #resource>::kind(&())
            }

            fn group(_: &()) -> #text {
                <#of as #resource>::group(&())
            }

            fn version(_: &()) -> #text {
                #name.into()
            }

            fn api_version(_: &()) -> #text {
                ::std::format!("{}/{}", <#of as #resource>::group(&()), #name).into()
            }

            fn plural(_: &()) -> #text {
                <#of as #resource>::plural(&())
            }

            fn meta(&self) -> &#meta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut #meta {
                &mut self.metadata
            }
        }

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

        #[automatically_derived]
        impl ::opkit::__private::kube::CustomResourceExt for #kind {
            /// Returns the definition of the kind with all its versions.
            fn crd() -> #crd {
                <#of as ::opkit::__private::kube::CustomResourceExt>::crd()
            }

            fn crd_name() -> &'static str {
                <#of as ::opkit::__private::kube::CustomResourceExt>::crd_name()
            }

            fn api_resource() -> ::opkit::__private::kube::core::ApiResource {
                ::opkit::__private::kube::core::ApiResource::erase::<Self>(&())
            }

            fn shortnames() -> &'static [&'static str] {
                <#of as ::opkit::__private::kube::CustomResourceExt>::shortnames()
            }
        }

        #[automatically_derived]
        impl #kinds::versions::SpokeOf<#of> for #kind {
            const VERSION: &'static str = #name;

            fn version() -> #kinds::versions::SpokeVersion {
                const TABLE: #kinds::KindTable = #table;
                let crd = TABLE.crd(
                    ::opkit::__private::schemars::SchemaGenerator::subschema_for::<#spec>,
                    #status_schema,
                );
                #kinds::versions::SpokeVersion::new(crd, #is_served, #deprecated, #functions)
            }
        }
    }
}
