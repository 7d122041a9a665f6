//! opkit's macros: the main and test attributes.
//!
//! Generated code names nothing but `::opkit::__private` and the standard library.

mod signature;

use proc_macro::TokenStream;
use quote::quote;
use syn::{ItemFn, parse_macro_input};

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
