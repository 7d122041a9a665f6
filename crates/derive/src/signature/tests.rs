use quote::quote;

use super::*;

fn message(check: fn(TokenStream, &ItemFn) -> Result<(), Error>, function: TokenStream) -> String {
    let function: ItemFn = syn::parse2(function).unwrap();
    check(TokenStream::new(), &function)
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default()
}

#[test]
fn messages_for_wrong_mains_show_the_right_shape() {
    let check = |function, expected: &str| {
        let message = message(check_main, function);
        assert!(message.contains(expected), "{message:?}");
    };
    assert_eq!(
        message(
            check_main,
            quote! { async fn main() -> opkit::Result { Ok(()) } }
        ),
        ""
    );
    check(
        quote! { fn main() -> opkit::Result { Ok(()) } },
        "an async function",
    );
    check(quote! { async fn main() {} }, "returns opkit::Result");
    check(
        quote! { async fn main(a: u8) -> opkit::Result { Ok(()) } },
        "without arguments",
    );
}

#[test]
fn messages_for_wrong_tests_show_the_right_shape() {
    let check = |function, expected: &str| {
        let message = message(check_test, function);
        assert!(message.contains(expected), "{message:?}");
    };
    let right = quote! { async fn t(plane: ControlPlane) -> opkit::Result { Ok(()) } };
    assert_eq!(message(check_test, right), "");
    check(
        quote! { async fn t() -> opkit::Result { Ok(()) } },
        "one argument",
    );
    check(
        quote! { async fn t(a: A, b: B) -> opkit::Result { Ok(()) } },
        "one argument",
    );
    check(
        quote! { async fn t<T>(a: T) -> opkit::Result { Ok(()) } },
        "generic",
    );
}

#[test]
fn arguments_of_the_attribute_are_refused() {
    let function: ItemFn = syn::parse_quote! { async fn main() -> opkit::Result { Ok(()) } };
    let error = check_main(quote! { flavor = "x" }, &function).unwrap_err();
    assert_eq!(error.to_string(), "#[opkit::main] takes no arguments");
}
