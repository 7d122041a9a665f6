//! Search for the executables, by the conventions of controller-runtime's envtest and of
//! `cargo xtask control-plane`.

use std::fs;
use std::path::{Path, PathBuf};

use super::BinariesError;

#[cfg(test)]
mod tests;

/// Variable with the directory of a control plane that `setup-envtest` created.
const DIRECTORY: &str = "KUBEBUILDER_ASSETS";
/// Default directory of kubebuilder.
const KUBEBUILDER: &str = "/usr/local/kubebuilder/bin";

/// The executables of a control plane.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Assets {
    pub(crate) etcd: PathBuf,
    pub(crate) apiserver: PathBuf,
    /// kube-controller-manager, which `setup-envtest` does not install.
    pub(crate) controller_manager: Option<PathBuf>,
    pub(crate) kubectl: Option<PathBuf>,
}

impl Assets {
    /// Finds the executables; `variable` reads the environment. An executable is at the path in its
    /// own variable, such as `TEST_ASSET_ETCD`, or else in the directory of `KUBEBUILDER_ASSETS`.
    /// Without these variables, the executables that `cargo xtask control-plane` has built are
    /// used, or those in kubebuilder's default directory.
    pub(crate) fn find(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Box<BinariesError>> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let directory = match (set(DIRECTORY), cache(set)) {
            (Some(directory), _) => PathBuf::from(directory),
            (None, Some(directory)) => directory,
            (None, None) => PathBuf::from(KUBEBUILDER),
        };
        let find = |name: &'static str, own: &str| match set(own) {
            Some(path) => PathBuf::from(path),
            None => directory.join(name),
        };
        let needed = |name, own| {
            let path = find(name, own);
            match path.is_file() {
                true => Ok(path),
                false => Err(Box::new(BinariesError::Missing { name, path })),
            }
        };
        let optional = |name, own| Some(find(name, own)).filter(|path| path.is_file());
        Ok(Self {
            etcd: needed("etcd", "TEST_ASSET_ETCD")?,
            apiserver: needed("kube-apiserver", "TEST_ASSET_KUBE_APISERVER")?,
            controller_manager: optional(
                "kube-controller-manager",
                "TEST_ASSET_KUBE_CONTROLLER_MANAGER",
            ),
            kubectl: optional("kubectl", "TEST_ASSET_KUBECTL"),
        })
    }
}

impl Assets {
    /// Reports whether the server has the feature gate `ShardedListAndWatch`, because a server does
    /// not start with an unknown feature gate. The version of the server is read from the name of
    /// its directory, such as `v1.36.3` (`cargo xtask control-plane`) or `1.36.0-linux-amd64`
    /// (`setup-envtest`).
    pub(crate) fn has_shards(&self) -> bool {
        let directory = self.apiserver.parent().and_then(Path::file_name);
        let name = directory.map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let mut numbers = name.trim_start_matches('v').split(['.', '-']);
        let mut next = || numbers.next()?.parse::<u32>().ok();
        next() == Some(1) && next() >= Some(36)
    }
}

/// Returns the directory of the newest version that `cargo xtask control-plane` has built.
fn cache(set: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let base = match set("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => Path::new(&set("HOME")?).join(".cache"),
    };
    let entries = fs::read_dir(base.join("opkit-control-plane")).ok()?;
    let versions = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let version: Result<Vec<u32>, _> =
            name.strip_prefix('v')?.split('.').map(str::parse).collect();
        Some((version.ok()?, entry.path()))
    });
    versions.max().map(|(_, path)| path)
}
