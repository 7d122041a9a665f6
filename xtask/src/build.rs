//! How programs are built for a release, and for comparison with programs in Go.

use std::process::Command;

use anyhow::{Context, Result};

/// The flags that link statically, as Go does. On this target the linker of the compiler is lld,
/// which can merge equal functions.
pub(crate) const STATIC_FLAGS: &str = if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
    "-C target-feature=+crt-static -C relocation-model=static -C link-arg=-Wl,--icf=all"
} else {
    "-C target-feature=+crt-static -C relocation-model=static"
};

/// Returns the target that the compiler builds for by default.
pub(crate) fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.context("cannot run rustc")?.stdout;
    let output = String::from_utf8_lossy(&output);
    let mut lines = output.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc prints no host")?.to_owned())
}
