//! Tests that span modules.

mod decisions;
mod fuzz;
