//! `#[opkit::reconcile]`: checks the signature of a reconcile or finalizer function, with one
//! message for each mistake.
//!
//! Mistakes that are visible in the tokens are reported by this module. Mistakes that only the type
//! checker sees are reported by generated code in an unnamed constant beside the function. The
//! generated code is compiled but never run.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, ReturnType, Type, TypeParamBound};

use crate::errors::Errors;
use crate::types;

const SHAPE: &str = "async fn reconcile(object: Arc<Robot>, cx: Context) -> Result<Action>";

/// Returns the unchanged function, followed by the generated code that checks its types.
pub(crate) fn expand(attribute: TokenStream, function: &ItemFn) -> TokenStream {
    let checks = match check(attribute, function) {
        Ok(()) => type_checks(function),
        Err(error) => error.into_compile_error(),
    };
    quote! {
        #function
        #checks
    }
}

/// Checks the parts of the signature that are visible in the tokens, such as `async`.
fn check(attribute: TokenStream, function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    let mut errors = Errors::default();
    if !attribute.is_empty() {
        errors.push(Error::new_spanned(
            attribute,
            "#[opkit::reconcile] takes no arguments",
        ));
    }
    if !signature.generics.params.is_empty() {
        let message = "#[opkit::reconcile] cannot check a function with generic parameters: remove the attribute";
        errors.push(Error::new_spanned(&signature.generics, message));
    }
    // A function that is not async but returns a future is checked by its types.
    if signature.asyncness.is_none() && !returns_future(&signature.output) {
        let message = format!("a reconcile function must be async: `{SHAPE}`");
        errors.push(Error::new_spanned(signature.fn_token, message));
    }
    check_arguments(function, &mut errors);
    match &signature.output {
        ReturnType::Default => {
            let message = format!("a reconcile function must return the next action: `{SHAPE}`");
            errors.push(Error::new_spanned(&signature.ident, message));
        }
        ReturnType::Type(_, output) => {
            if let Some(error) = boxed_error(output) {
                errors.push(error);
            }
        }
    }
    errors.none_or(())
}

fn check_arguments(function: &ItemFn, errors: &mut Errors) {
    let inputs = &function.sig.inputs;
    if let Some(FnArg::Receiver(receiver)) = inputs.first() {
        let message =
            "a reconcile function must be a free function: read shared state with `cx.state()`";
        errors.push(Error::new_spanned(receiver, message));
        return;
    }
    if inputs.len() != 2 {
        let message = format!(
            "a reconcile function must have two arguments, the object and the context, but this one has {}: `{SHAPE}`",
            inputs.len()
        );
        errors.push(Error::new_spanned(&function.sig.ident, message));
        return;
    }
    let [object, context] = [inputs.first(), inputs.last()].map(|input| match input {
        Some(FnArg::Typed(argument)) => Some(&*argument.ty),
        _ => None,
    });
    if let Some(Type::Reference(reference)) = object {
        let message = format!(
            "a reconcile function takes its object by value: write `Arc<{}>`",
            plain(&reference.elem)
        );
        errors.push(Error::new_spanned(reference, message));
    }
    if let Some(Type::Reference(reference)) = context {
        let message = format!(
            "a reconcile function takes its context by value: write `{}` without the `&`; cloning it is cheap",
            plain(&reference.elem)
        );
        errors.push(Error::new_spanned(reference, message));
    }
}

/// Returns an error if the tokens of the return type show an error type that cannot be converted to
/// `opkit::Error`, such as `anyhow::Error`.
fn boxed_error(output: &Type) -> Option<Error> {
    let name = types::name(output)?;
    if name != "Result" {
        return None;
    }
    const ANYHOW: &str = "`anyhow::Error` cannot be converted to `opkit::Error` with `?`: return `Result<Action>`, and write \
        `.map_err(|error| Error::from_boxed(error.into()))?` at the failing call";
    if is_of_anyhow(output) {
        return Some(Error::new_spanned(output, ANYHOW));
    }
    let error = types::arguments(output).into_iter().nth(1)?;
    if is_of_anyhow(error) {
        return Some(Error::new_spanned(error, ANYHOW));
    }
    if types::name(error)? != "Box" {
        return None;
    }
    let boxed = types::arguments(error).into_iter().next()?;
    let Type::TraitObject(boxed) = boxed else {
        return None;
    };
    let is_bound = |name: &str| {
        boxed.bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => bound
                .path
                .segments
                .last()
                .is_some_and(|it| it.ident == name),
            _ => false,
        })
    };
    let constructor = match is_bound("Send") && is_bound("Sync") {
        true => "`.map_err(Error::from_boxed)?`",
        false => {
            "`.map_err(Error::msg)?`, or box it as `Box<dyn Error + Send + Sync>` and write `.map_err(Error::from_boxed)?`"
        }
    };
    let message = format!(
        "a boxed error cannot be converted to `opkit::Error` with `?`: return `Result<Action>`, and write {constructor} at the failing call"
    );
    Some(Error::new_spanned(error, message))
}

fn is_of_anyhow(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .segments
            .iter()
            .any(|segment| segment.ident == "anyhow"),
        _ => false,
    }
}

fn returns_future(output: &ReturnType) -> bool {
    let ReturnType::Type(_, output) = output else {
        return false;
    };
    match &**output {
        Type::ImplTrait(_) => true,
        output => types::name(output).is_some_and(|name| name == "BoxFuture" || name == "Pin"),
    }
}

/// Generates the checks that need the type checker. Each check is a separate statement, so that
/// each mistake has its own message.
fn type_checks(function: &ItemFn) -> TokenStream {
    let signature = &function.sig;
    let name = &signature.ident;
    let types: Vec<&Type> = signature
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(argument) => Some(&*argument.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let [object, context] = *types.as_slice() else {
        return TokenStream::new();
    };
    let arguments = [(object, quote!(object)), (context, quote!(context))].map(|(ty, check)| {
        quote_spanned! {ty.span()=>
            ::opkit::__private::signature::#check::<#ty>();
        }
    });
    let output = match (&signature.output, signature.asyncness) {
        (ReturnType::Type(_, output), Some(_)) => output_checks(output),
        _ => TokenStream::new(),
    };
    let send = quote_spanned! {name.span()=>
        ::opkit::__private::signature::is_send(#name(object, context));
    };
    quote! {
        const _: () = {
            #[allow(dead_code, unreachable_code, unused_must_use, clippy::all)]
            fn check(object: #object, context: #context) {
                #(#arguments)*
                #output
                #send
            }
        };
    }
}

/// Generates the checks of the two types in the returned `Result`. The compiler reports a mistake
/// at the position of the wrong type.
fn output_checks(output: &Type) -> TokenStream {
    let arguments = types::arguments(output);
    let span = arguments
        .first()
        .map_or(output.span(), |value| value.span());
    let value = quote_spanned! {span=>
        ::opkit::__private::signature::value::<#output>();
    };
    let span = arguments.get(1).map_or(output.span(), |error| error.span());
    let error = quote_spanned! {span=>
        {
            #[allow(unused_imports)]
            use ::opkit::__private::signature::{NoResult as _, NotConvertible as _};
            ::opkit::__private::signature::error(
                (&::opkit::__private::signature::Probe::<#output>::new()).verdict(),
            );
        }
    };
    quote! {
        #value
        #error
    }
}

fn plain(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}
