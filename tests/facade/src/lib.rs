//! Use of everything that a public signature of opkit or a guide names, through the crate `opkit`
//! only.

#[cfg(test)]
mod kinds;
#[cfg(test)]
mod names;
