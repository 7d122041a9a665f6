//! Code that must not compile, and its expected messages.
//!
//! Each file of `cases` is compiled as a separate crate that depends only on `opkit`; the
//! compiler's messages are compared with the `.txt` file beside it.
//! `OPKIT_BLESS=1 cargo test -p compile-fail` rewrites those files.

#[cfg(test)]
mod compiler;
#[cfg(test)]
mod report;
#[cfg(test)]
mod tests;
