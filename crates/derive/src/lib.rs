//! opkit's macros: the main and test attributes, and the derive of typed clients.
//!
//! Generated code names nothing but `::opkit::__private` and the standard library.

mod signature;
mod typed_client;

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

/// Makes a typed client for a custom resource, limited to the verbs that are listed: another one does
/// not compile. It stands beside kube's `CustomResource` on the spec, and reads kind, status and
/// scale from the same `#[kube(...)]`.
///
/// `#[client(...)]` takes `verbs(get, list, watch, create, update, patch, delete, deletecollection)`, all
/// of them if it is left out; `no_status` and `no_scale`, which take away what kube declares; and
/// `name = "..."` for another name than the kind's with `Client` behind it.
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
