//! `cargo xtask control-plane`: a real Kubernetes control plane, built from Go modules.
//!
//! `tests/control-plane/go.mod` is the only place that pins the versions. The executables are
//! stored in a cache outside the tree, one directory per version of Kubernetes, where tests find
//! them. Go is needed for the build only.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};
use std::{env, fs, io};

use anyhow::{Context, Result, bail};

#[cfg(test)]
mod tests;

/// Executables to build, smallest first, so that a machine that cannot build them fails early.
const EXECUTABLES: &[&str] = &[
    "etcd",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
];
/// Executables that a directory of the user must contain, as `setup-envtest` creates it.
const ASSETS: &[&str] = &["etcd", "kube-apiserver", "kubectl"];
/// Variable with the path of such a directory.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Directory to build into.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Build into this directory instead of the cache
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print the versions and exit
    #[arg(long)]
    version: bool,
}

/// Versions that `go.mod` pins, in Go's format.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Versions {
    kubernetes: String,
    etcd: String,
}

/// Builds missing executables, or prints the versions.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.version {
        let versions = versions()?;
        println!("Kubernetes {}", versions.kubernetes);
        println!("etcd {}", versions.etcd);
        return Ok(ExitCode::SUCCESS);
    }
    let directory = ensure(args.dir.as_deref())?;
    println!("{}", directory.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the directory of the executables, after building missing ones.
pub(crate) fn ensure(explicit: Option<&Path>) -> Result<PathBuf> {
    if explicit.is_none()
        && let Some(assets) = env::var_os(ASSETS_VARIABLE).filter(|path| !path.is_empty())
    {
        let assets = PathBuf::from(assets);
        match missing(&assets, ASSETS).as_slice() {
            [] => {
                println!("{ASSETS_VARIABLE} is set: nothing is built");
                return Ok(assets);
            }
            missing => println!(
                "{ASSETS_VARIABLE} is set to {}, which does not contain {}: it is not used",
                assets.display(),
                missing.join(", ")
            ),
        }
    }
    let versions = versions()?;
    let directory = match explicit {
        Some(directory) => std::path::absolute(directory)?,
        None => cache()?.join(&versions.kubernetes),
    };
    let missing = missing(&directory, EXECUTABLES);
    if missing.is_empty() {
        println!("Kubernetes {} is already built", versions.kubernetes);
        return Ok(directory);
    }
    if !has_go() {
        bail!(
            "Go is needed to build {} of Kubernetes {}, and `go` is not on the PATH",
            missing.join(", "),
            versions.kubernetes
        );
    }
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    println!(
        "building Kubernetes {} and etcd {}: a first build takes about five minutes on two cores",
        versions.kubernetes, versions.etcd
    );
    let start = SystemTime::now();
    for name in missing {
        build(name, &directory, &versions)?;
    }
    println!("built in {} s", elapsed(start).as_secs());
    Ok(directory)
}

/// Reports whether Go is installed.
pub(crate) fn has_go() -> bool {
    Command::new("go")
        .arg("version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Builds one executable, static and reproducible. An interrupted build leaves no partial
/// executable under its name.
fn build(name: &str, directory: &Path, versions: &Versions) -> Result<()> {
    println!("building {name}");
    let start = SystemTime::now();
    let partial = directory.join(format!(".{name}.{}", std::process::id()));
    let package = match name {
        "etcd" => "./etcd".to_owned(),
        name => format!("k8s.io/kubernetes/cmd/{name}"),
    };
    let version = format!(
        "-s -w -X k8s.io/component-base/version.gitVersion={}",
        versions.kubernetes
    );
    let status = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", &version, "-o"])
        .arg(&partial)
        .arg(package)
        .current_dir(module()?)
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=readonly -buildvcs=false")
        .status()
        .context("cannot run go")?;
    if !status.success() {
        let _ = fs::remove_file(&partial);
        bail!("go build of {name} failed; see its messages above");
    }
    fs::rename(&partial, directory.join(name))
        .with_context(|| format!("cannot move {name} into {}", directory.display()))?;
    println!("built {name} in {} s", elapsed(start).as_secs());
    Ok(())
}

fn elapsed(start: SystemTime) -> Duration {
    start.elapsed().unwrap_or_default()
}

/// Returns those of `names` that `directory` does not contain.
fn missing<'a>(directory: &Path, names: &[&'a str]) -> Vec<&'a str> {
    let there = |name: &&&str| !directory.join(name).is_file();
    names.iter().filter(there).copied().collect()
}

/// Returns `$XDG_CACHE_HOME/opkit-control-plane`, which `opkit-envtest` searches as well.
fn cache() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value: &_| value != OsStr::new(""));
    let base = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => Path::new(&home).join(".cache"),
        (None, None) => bail!("neither XDG_CACHE_HOME nor HOME is set: use --dir"),
    };
    Ok(base.join("opkit-control-plane"))
}

/// Returns the directory of the Go module, in the repository that cargo runs this program for.
fn module() -> io::Result<PathBuf> {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = package.as_deref().and_then(Path::parent);
    std::path::absolute(root.unwrap_or(Path::new(".")).join("tests/control-plane"))
}

fn versions() -> Result<Versions> {
    let path = module()?.join("go.mod");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text)
}

fn parse(go_mod: &str) -> Result<Versions> {
    let version = |module: &str| {
        let mut lines = go_mod.lines().map(str::split_whitespace);
        let found = lines.find_map(|words| {
            let mut words = words.skip_while(|word| *word == "require");
            (words.next() == Some(module))
                .then(|| words.next())
                .flatten()
        });
        let found = found.filter(|version| version.starts_with('v'));
        found
            .map(str::to_owned)
            .with_context(|| format!("go.mod does not require {module}"))
    };
    Ok(Versions {
        kubernetes: version("k8s.io/kubernetes")?,
        etcd: version("go.etcd.io/etcd/server/v3")?,
    })
}
