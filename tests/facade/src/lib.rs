//! Everything that a public signature of opkit or a guide names, named through `opkit` alone.

#[cfg(test)]
mod kinds;
#[cfg(test)]
mod names;
