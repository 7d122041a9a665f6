//! The steps of a new user: copies the README's operator into an empty directory, runs its tests,
//! and runs it with `opkit dev`; follows the tour and the walkthroughs in `docs`.

#[cfg(test)]
mod guide;
#[cfg(test)]
mod imported;
#[cfg(test)]
mod others;
#[cfg(test)]
mod project;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod real;
#[cfg(test)]
mod running;
#[cfg(test)]
mod tests;
