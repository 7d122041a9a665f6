//! Checks of the functions under `#[opkit::main]` and `#[opkit::test]`, with error messages for
//! users.

use proc_macro2::TokenStream;
use syn::{Error, FnArg, ItemFn, ReturnType, Visibility};

/// Checks the function under `#[opkit::main]`.
pub(crate) fn check_main(attribute: TokenStream, function: &ItemFn) -> Result<(), Error> {
    check(
        attribute,
        function,
        "#[opkit::main]",
        "async fn main() -> opkit::Result",
    )?;
    match function.sig.inputs.first() {
        Some(argument) => Err(Error::new_spanned(
            argument,
            "#[opkit::main] requires a function without arguments: `async fn main() -> opkit::Result`",
        )),
        None => Ok(()),
    }
}

/// Checks the function under `#[opkit::test]`.
pub(crate) fn check_test(attribute: TokenStream, function: &ItemFn) -> Result<(), Error> {
    const SHAPE: &str = "async fn name(plane: ControlPlane) -> opkit::Result";
    check(attribute, function, "#[opkit::test]", SHAPE)?;
    let mut inputs = function.sig.inputs.iter();
    match (inputs.next(), inputs.next()) {
        (Some(FnArg::Typed(_)), None) => Ok(()),
        _ => Err(Error::new_spanned(
            &function.sig.ident,
            format!("#[opkit::test] requires a function with one argument: `{SHAPE}`"),
        )),
    }
}

fn check(
    attribute: TokenStream,
    function: &ItemFn,
    macro_name: &str,
    shape: &str,
) -> Result<(), Error> {
    let signature = &function.sig;
    if !attribute.is_empty() {
        return Err(Error::new_spanned(
            attribute,
            format!("{macro_name} takes no arguments"),
        ));
    }
    if signature.asyncness.is_none() {
        let message = format!("{macro_name} requires an async function: `{shape}`");
        return Err(Error::new_spanned(signature.fn_token, message));
    }
    if !signature.generics.params.is_empty() {
        let message =
            format!("{macro_name} requires a function without generic parameters: `{shape}`");
        return Err(Error::new_spanned(&signature.generics, message));
    }
    if matches!(signature.output, ReturnType::Default) {
        let message =
            format!("{macro_name} requires a function that returns opkit::Result: `{shape}`");
        return Err(Error::new_spanned(&signature.ident, message));
    }
    Ok(())
}

/// Returns the function without its attributes and visibility. The macro nests the result in the
/// generated function that calls it.
pub(crate) fn without_attributes(function: &ItemFn) -> ItemFn {
    ItemFn {
        attrs: Vec::new(),
        vis: Visibility::Inherited,
        ..function.clone()
    }
}

#[cfg(test)]
mod tests;
