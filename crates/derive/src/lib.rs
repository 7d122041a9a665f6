//! opkit's macros: kinds and their schemas, the main, test and reconcile attributes, typed clients.
//!
//! Generated code names nothing but `::opkit::__private` and the standard library.

mod column;
mod default;
mod derives;
mod errors;
mod field;
mod keywords;
mod kind;
mod names;
mod nearest;
mod reconcile;
mod schema;
mod signature;
mod status;
mod typed_client;
mod types;
mod words;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Makes an async function the `main` of an operator's binary: runs it on a multi-threaded runtime,
/// prints an error as `<binary>: <error>` in one line, and then exits with code 1.
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

/// Makes an async function that takes a control plane a test, run on the control plane that
/// `OPKIT_CONTROL_PLANE` names; the embedded one by default. Needs opkit's feature `test`.
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
/// The guide `docs/kinds.md` has all words. The scope, `namespaced` or `cluster`, has no default.
///
/// ```text
/// /// A fleet of identical robots.
/// #[opkit::kind(group = "robot.opkit.dev", version = "v1", namespaced, status = RobotStatus)]
/// #[opkit(printcolumn("Ready", condition = "Ready"), printcolumn(age))]
/// pub struct RobotSpec {
///     /// How many robots to keep.
///     #[opkit(default = 1, min = 0, max = 100, printcolumn = "Desired")]
///     pub replicas: i32,
/// }
/// ```
#[proc_macro_attribute]
pub fn kind(attribute: TokenStream, item: TokenStream) -> TokenStream {
    declared(kind::expand, attribute, item)
}

/// Declares a type that is part of a kind: a struct, or an enum of plain variants.
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

/// Declares the status of a kind: it has a `Default`, and nothing in it is required. Without
/// `observed_generation` or `conditions` it gives a warning.
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

/// Checks the signature of a reconcile function, or of a finalizer's: the compiler reports which
/// part of it is wrong, instead of that it is none. The function itself stays as it is.
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

/// Makes a typed client for a custom resource, limited to the verbs that are listed: another one
/// does not compile. It stands below `#[opkit::kind(...)]`, or beside kube's `CustomResource` on
/// the spec, where it reads kind, status and scale from the same `#[kube(...)]`.
///
/// `#[client(...)]` takes
/// `verbs(get, list, watch, create, update, patch, delete, deletecollection)`, all of them if it is
/// left out; `no_status` and `no_scale`, which take away what kube declares; and `name = "..."` for
/// another name than the kind's with `Client` behind it.
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
