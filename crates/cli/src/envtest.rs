//! Stand-ins for the programs of a Kubernetes control plane, for test suites that start them.
//!
//! controller-runtime's envtest, and every other tool that reads `KUBEBUILDER_ASSETS`, starts the
//! programs `etcd` and `kube-apiserver` of a directory with flags of its own. `opkit envtest
//! assets` fills such a directory with copies of this command, which acts as the program by whose
//! name it is started.

mod apiserver;
mod assets;
mod etcd;
mod flags;
mod kubectl;
mod storage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The subcommands of `opkit envtest`.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvtestCommand {
    /// Write kube-apiserver, etcd and kubectl to a directory, for KUBEBUILDER_ASSETS
    #[command(after_help = "\
Example:
  opkit envtest assets bin/k8s
  KUBEBUILDER_ASSETS=$PWD/bin/k8s go test ./...")]
    Assets {
        /// Directory to write to
        directory: PathBuf,
    },
}

/// A program that this command can act as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Program {
    Etcd,
    KubeApiserver,
    Kubectl,
}

impl Program {
    const ALL: [Self; 3] = [Self::Etcd, Self::KubeApiserver, Self::Kubectl];

    const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::Kubectl => "kubectl",
        }
    }

    /// Returns the program by whose name this command was started, or `None` if it was started by
    /// its own name.
    pub(crate) fn of_argument_zero(argument: &Path) -> Option<Self> {
        let name = argument.file_stem()?.to_str()?;
        Self::ALL.into_iter().find(|program| program.name() == name)
    }

    /// Acts as the program until it ends or is stopped by a signal.
    pub(crate) async fn run(self, arguments: Vec<String>) -> Result<ExitCode> {
        match self {
            Self::Etcd => etcd::run(arguments).await,
            Self::KubeApiserver => apiserver::run(arguments).await,
            Self::Kubectl => Ok(kubectl::run()),
        }
    }
}

/// Runs a subcommand of `opkit envtest`.
pub(crate) fn run(command: &EnvtestCommand) -> Result<()> {
    match command {
        EnvtestCommand::Assets { directory } => assets::write(directory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_chosen_by_name() {
        let program = |path: &str| Program::of_argument_zero(Path::new(path));
        assert_eq!(
            program("/assets/kube-apiserver"),
            Some(Program::KubeApiserver)
        );
        assert_eq!(program("etcd"), Some(Program::Etcd));
        assert_eq!(program("bin/kubectl"), Some(Program::Kubectl));
        assert_eq!(program("/usr/bin/opkit"), None);
    }
}
