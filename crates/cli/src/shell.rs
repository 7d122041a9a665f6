//! `opkit version`, `opkit completion` and `opkit man`: what a shell and a manual need to know.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap_complete::Shell;

use crate::output;

/// Prints the version.
pub(crate) fn version() {
    output::write(&format!("opkit {}\n", env!("CARGO_PKG_VERSION")));
}

/// Prints the completion script of a shell.
pub(crate) fn completion(shell: Shell, mut command: clap::Command) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "opkit", &mut script);
    output::write(&String::from_utf8_lossy(&script));
}

/// Writes one manual page for each command to a directory.
pub(crate) fn man(command: clap::Command, out: &Path) -> Result<()> {
    let fail = || format!("cannot write manual pages to {}", out.display());
    fs::create_dir_all(out).with_context(fail)?;
    clap_mangen::generate_to(command, out).with_context(fail)?;
    let pages = fs::read_dir(out).with_context(fail)?.count();
    output::line("man", &format!("{pages} pages in {}", out.display()));
    Ok(())
}
