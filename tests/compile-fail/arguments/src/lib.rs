//! A macro that returns the arguments that rustc was called with.
//!
//! A macro runs inside the compiler, so the arguments of its process are the compiler's. They
//! include the path of each dependency that cargo has built for this crate. So a test can compile
//! other files against the same dependencies, without building them again and without guessing
//! which files in `target` are current.

use proc_macro::{Delimiter, Group, Literal, Punct, Spacing, TokenStream, TokenTree};

/// Returns the compiler and its arguments, as an array of strings.
#[proc_macro]
pub fn rustc_arguments(_: TokenStream) -> TokenStream {
    let compiler = std::env::current_exe().unwrap_or_else(|_| "rustc".into());
    let compiler = compiler.to_string_lossy().into_owned();
    let arguments = std::iter::once(compiler).chain(std::env::args().skip(1));
    let literals = arguments.flat_map(|argument| {
        [
            TokenTree::from(Literal::string(&argument)),
            TokenTree::from(Punct::new(',', Spacing::Alone)),
        ]
    });
    TokenTree::from(Group::new(Delimiter::Bracket, literals.collect())).into()
}
