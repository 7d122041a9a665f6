//! `cargo xtask control-plane`: a real Kubernetes control plane, built from Go modules.
//!
//! `tests/control-plane/go.mod` pins the versions and nothing else names them. The executables go
//! into a cache outside the tree, one directory per version of Kubernetes, where tests find them.
//! Go is needed once.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};

#[cfg(test)]
mod tests;

/// What is built, smallest first, so that a machine that cannot build says so early.
const EXECUTABLES: &[&str] = &[
    "etcd",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
];
/// What a directory of the user's own must hold, as `setup-envtest` fills it.
const ASSETS: &[&str] = &["etcd", "kube-apiserver", "kubectl"];
/// The variable that names such a directory.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Where to, and which.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Build into this directory instead of the cache.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print the versions and do nothing else.
    #[arg(long)]
    version: bool,
}

/// The versions that `go.mod` pins, as Go writes them.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Versions {
    kubernetes: String,
    etcd: String,
}

/// Builds what is missing, or prints the versions.
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

/// The directory of the executables, after building those that are not there.
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
                "{ASSETS_VARIABLE} is set to {}, which does not hold {}: it is not used",
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
        println!("Kubernetes {} is built already", versions.kubernetes);
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
        .with_context(|| format!("cannot make {}", directory.display()))?;
    println!(
        "building Kubernetes {} and etcd {}: from cold about five minutes on two cores",
        versions.kubernetes, versions.etcd
    );
    let start = SystemTime::now();
    for name in missing {
        build(name, &directory, &versions)?;
    }
    println!("built in {} s", elapsed(start).as_secs());
    Ok(directory)
}

/// Whether there is a Go to build with.
pub(crate) fn has_go() -> bool {
    Command::new("go")
        .arg("version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Static and reproducible. Whoever is interrupted leaves no half of an executable under its name.
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
        bail!("go does not build {name}; its messages are above");
    }
    fs::rename(&partial, directory.join(name))
        .with_context(|| format!("cannot put {name} into {}", directory.display()))?;
    println!("built {name} in {} s", elapsed(start).as_secs());
    Ok(())
}

fn elapsed(start: SystemTime) -> Duration {
    start.elapsed().unwrap_or_default()
}

/// Those of `names` that `directory` does not hold.
fn missing<'a>(directory: &Path, names: &[&'a str]) -> Vec<&'a str> {
    let there = |name: &&&str| !directory.join(name).is_file();
    names.iter().filter(there).copied().collect()
}

/// `$XDG_CACHE_HOME/opkit-control-plane`, where `opkit-envtest` looks as well.
fn cache() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value: &_| value != OsStr::new(""));
    let base = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => Path::new(&home).join(".cache"),
        (None, None) => bail!("neither XDG_CACHE_HOME nor HOME is set: use --dir"),
    };
    Ok(base.join("opkit-control-plane"))
}

/// The Go module, in the repository that cargo runs this program for.
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
