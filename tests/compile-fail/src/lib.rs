//! Code that must not compile, and the messages that it must get.
//!
//! Each file of `cases` is compiled as a crate of its own that depends on `opkit` alone; what the
//! compiler reports is compared with the `.txt` beside it.
//! `OPKIT_BLESS=1 cargo test -p compile-fail` writes those files.

#[cfg(test)]
mod compiler;
#[cfg(test)]
mod report;
#[cfg(test)]
mod tests;
