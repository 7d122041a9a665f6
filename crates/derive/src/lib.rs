//! Macros of opkit: declarations of kinds and schemas, the attributes `main`, `test` and
//! `reconcile`, and typed clients.
//!
//! Generated code refers only to `::opkit::__private` and the standard library.

mod apply;
mod arguments;
mod cel;
mod column;
mod default;
mod derives;
mod docs;
mod errors;
mod field;
mod keywords;
mod kind;
mod literal;
mod names;
mod nearest;
mod reconcile;
mod schema;
mod signature;
mod status;
mod typed_client;
mod types;
mod version;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Turns an async function into the `main` of an operator's binary, which runs the function on a
/// multi-threaded runtime. An error is printed as `<binary>: <error>` on one line, and the exit
/// code is 1.
///
/// ```text
/// #[opkit::main]
/// async fn main() -> opkit::Result {
///     operator().run().await
/// }
/// ```
#[proc_macro_attribute]
pub fn main(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    if let Err(error) = signature::check_main(attribute.into(), &function) {
        return error.into_compile_error().into();
    }
    let (attributes, name) = (&function.attrs, &function.sig.ident);
    let inner = signature::without_attributes(&function);
    quote! {
        #(#attributes)*
        fn #name() -> ::std::process::ExitCode {
            #inner
            ::opkit::__private::main(::std::env!("CARGO_PKG_VERSION"), #name)
        }
    }
    .into()
}

/// Turns an async function that takes a control plane into a test. The environment variable
/// `OPKIT_CONTROL_PLANE` names the control plane; the default is the embedded control plane. Needs
/// opkit's feature `test`.
///
/// ```text
/// #[opkit::test]
/// async fn a_robot_becomes_ready(plane: ControlPlane) -> opkit::Result {
///     plane.start(operator()).await?;
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    if let Err(error) = signature::check_test(attribute.into(), &function) {
        return error.into_compile_error().into();
    }
    let (attributes, name) = (&function.attrs, &function.sig.ident);
    let inner = signature::without_attributes(&function);
    quote! {
        #(#attributes)*
        #[::core::prelude::v1::test]
        fn #name() {
            #inner
            ::opkit::__private::test(
                ::std::module_path!(),
                ::std::stringify!(#name),
                |plane| ::std::boxed::Box::pin(#name(plane)),
            )
        }
    }
    .into()
}

/// Declares a custom resource by its spec: `RobotSpec` becomes the spec of the kind `Robot`.
///
/// The guide `docs/kinds.md` lists all arguments. One of the scopes `namespaced` and `cluster` is
/// required.
///
/// ```text
/// /// A fleet of identical robots.
/// #[opkit::kind(group = "robot.opkit.dev", version = "v1", namespaced, status = RobotStatus)]
/// #[opkit(printcolumn("Ready", condition = "Ready"), printcolumn(age))]
/// pub struct RobotSpec {
///     /// Number of robots to keep.
///     #[opkit(default = 1, min = 0, max = 100, printcolumn = "Desired")]
///     pub replicas: i32,
/// }
/// ```
#[proc_macro_attribute]
pub fn kind(attribute: TokenStream, item: TokenStream) -> TokenStream {
    declared(kind::expand, attribute, item)
}

/// Declares a type that is part of a kind: a struct, a struct with one unnamed field and its
/// limits, an enum of strings, or an enum with data, of which exactly one alternative is set.
///
/// ```text
/// #[opkit::schema]
/// pub struct Database {
///     #[opkit(min_length = 1)]
///     pub image: String,
/// }
/// ```
#[proc_macro_attribute]
pub fn schema(attribute: TokenStream, item: TokenStream) -> TokenStream {
    declared(schema::expand, attribute, item)
}

/// Declares another version of a kind by its spec, or of a type within a kind, with the conversions
/// to the hub: the version that controllers and webhooks use. The hub names its versions in
/// `#[opkit::kind(..., versions(...))]`.
///
/// The struct has all fields of the version. `#[opkit(...)]` on a field declares what became of the
/// field in the hub: `renamed`, `moved`, `split`, `removed` or `changed_with`. A field without
/// such an argument has the same name in the hub. `#[opkit(added(...))]` on the struct lists the
/// fields that only the hub has. The guide `docs/versions.md` describes all arguments.
///
/// ```text
/// #[opkit::version(of = super::Robot, version = "v1alpha1", deprecated = "use v1")]
/// #[opkit(added(paused = false))]
/// pub struct RobotSpec {
///     #[opkit(renamed = replicas, min = 0)]
///     pub size: i32,
///     #[opkit(removed)]
///     pub legacy_mode: Option<bool>,
/// }
/// ```
#[proc_macro_attribute]
pub fn version(attribute: TokenStream, item: TokenStream) -> TokenStream {
    declared(version::expand, attribute, item)
}

/// Declares the status of a kind. The struct implements `Default`, and no field is required in the
/// schema. The macro warns if the field `observed_generation` or `conditions` is missing.
///
/// ```text
/// #[opkit::status]
/// pub struct RobotStatus {
///     pub ready_replicas: i32,
///     pub observed_generation: Option<i64>,
///     pub conditions: Conditions,
/// }
/// ```
#[proc_macro_attribute]
pub fn status(attribute: TokenStream, item: TokenStream) -> TokenStream {
    declared(status::expand, attribute, item)
}

fn declared(
    expand: fn(proc_macro2::TokenStream, DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
    attribute: TokenStream,
    item: TokenStream,
) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    match expand(attribute.into(), input) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Checks the signature of a reconcile or finalizer function, so that the compiler reports which
/// part is wrong instead of a missing trait implementation. The function itself is not changed.
///
/// ```text
/// #[opkit::reconcile]
/// async fn reconcile(robot: Arc<Robot>, cx: Context) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// ```
#[proc_macro_attribute]
pub fn reconcile(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    reconcile::expand(attribute.into(), &function).into()
}

/// Generates a typed client for a custom resource that is limited to the listed verbs: calls of
/// other verbs do not compile. Write this derive below `#[opkit::kind(...)]`, or beside kube's
/// `CustomResource` on the spec. In the second case, kind, status and scale come from
/// `#[kube(...)]`.
///
/// The attribute `#[client(...)]` takes these arguments. `verbs(get, list, watch, create, update,
/// patch, delete, deletecollection)` lists the allowed verbs, by default all verbs;
/// `skip_verbs(...)` lists the verbs that are not allowed. `no_status` and `no_scale` leave out a
/// subresource that the kind declares. `name = "..."` sets the name of the client, by default the
/// kind followed by `Client`.
///
/// ```text
/// #[derive(CustomResource, TypedClient, Serialize, Deserialize, JsonSchema, Clone, Debug)]
/// #[kube(group = "robot.opkit.dev", version = "v1", kind = "Robot", namespaced, status = "RobotStatus")]
/// #[client(verbs(get, list, watch), no_status)]
/// pub struct RobotSpec { ... }
///
/// let robot = RobotClient::new(client).get("one").await?;
/// ```
#[proc_macro_derive(TypedClient, attributes(client, kube))]
pub fn typed_client(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    match typed_client::expand(&input) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
