//! `opkit add`.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use opkit_scaffold::{
    AddApi, AddController, AddTooling, AddTypesCrate, AddVersion, AddWebhook, Libc, Tooling,
};

use super::new::is_workspace;
use super::{ChangeArgs, ImageArgs, ask, change, project};

/// Arguments of `opkit add`.
#[derive(Debug, Subcommand)]
pub(crate) enum AddCommand {
    /// Add a kind, with its controller, test and sample
    Api(ApiArgs),
    /// Add a version to a kind
    Version(VersionArgs),
    /// Add a webhook that sets defaults and validates, for any kind
    Webhook(WebhookArgs),
    /// Add a controller, also of a kind that the project does not define
    Controller(ControllerArgs),
    /// Move the kinds to a crate of their own, in `types`, for other operators to depend on
    TypesCrate(TypesCrateArgs),
    /// Add a GitHub workflow that formats, lints and tests, and checks the manifests
    Ci(CiArgs),
    /// Add a Dockerfile that builds the operator, and runs it as a user that is not root
    Dockerfile(DockerfileArgs),
    /// Add a development container with Rust, kubectl and the command opkit
    Devcontainer(DevcontainerArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  opkit add api --group robot --version v1alpha1 --kind Arm
  opkit add api --kind Memcached --image memcached:1.6 --port 11211")]
pub(crate) struct ApiArgs {
    /// Kind, such as Arm
    #[arg(long)]
    kind: String,
    /// Group, without the domain [default: the group of the project's kinds]
    #[arg(long)]
    group: Option<String>,
    /// Version [default: v1alpha1]
    #[arg(long)]
    version: Option<String>,
    /// Plural name [default: as kubebuilder chooses it]
    #[arg(long)]
    plural: Option<String>,
    /// Objects of the kind are in no namespace
    #[arg(long)]
    cluster_scoped: bool,
    /// Image that each object runs: the controller keeps a Deployment of it, and a Service if the
    /// object has a port
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["no_resource", "no_controller"])]
    image: Option<String>,
    #[command(flatten)]
    image_options: ImageArgs,
    /// Add the kind; without a choice, this is asked on a terminal
    #[arg(long, overrides_with = "no_resource")]
    resource: bool,
    /// Do not add the kind, only a controller of it
    #[arg(long)]
    no_resource: bool,
    /// Add a controller; without a choice, this is asked on a terminal
    #[arg(long, overrides_with = "no_controller")]
    controller: bool,
    /// Do not add a controller
    #[arg(long)]
    no_controller: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  opkit add version v1 --kind Robot")]
pub(crate) struct VersionArgs {
    /// New version, such as v1
    version: String,
    /// Kind, such as Robot
    #[arg(long)]
    kind: String,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  opkit add webhook --kind Robot --defaulting --validation
  opkit add webhook --kind Pod --group core --validation")]
pub(crate) struct WebhookArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Add a function that sets defaults
    #[arg(long)]
    defaulting: bool,
    /// Add a function that validates
    #[arg(long, alias = "programmatic-validation")]
    validation: bool,
    /// Serve the conversion between the versions of the kind
    #[arg(long)]
    conversion: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  opkit add controller --kind Deployment --group apps
  opkit add controller --kind Robot --name scaler
  opkit add controller --kind Certificate --path cert_manager::Certificate")]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Name, for a second controller of a kind
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  opkit add types-crate && cargo check --workspace")]
pub(crate) struct TypesCrateArgs {
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  opkit add ci && opkit manifests --out deploy")]
pub(crate) struct CiArgs {
    /// Directory of the manifests in the repository
    #[arg(long, default_value = "deploy", value_name = "DIR")]
    manifests: String,
    #[command(flatten)]
    replace: ReplaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  opkit add dockerfile
  opkit add dockerfile --libc gnu --force")]
pub(crate) struct DockerfileArgs {
    /// C library of the operator: a static executable with musl, or that of Debian
    #[arg(long, value_enum, default_value_t, value_name = "LIBC")]
    libc: LibcArg,
    #[command(flatten)]
    replace: ReplaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  opkit add devcontainer")]
pub(crate) struct DevcontainerArgs {
    #[command(flatten)]
    replace: ReplaceArgs,
}

#[derive(Debug, Args)]
struct ReplaceArgs {
    /// Replace files that exist; without it they stay as they are
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LibcArg {
    #[default]
    Musl,
    Gnu,
}

/// Kind of the project, of Kubernetes, or of another crate.
#[derive(Debug, Args)]
struct KindArgs {
    /// Kind, such as Robot
    #[arg(long)]
    kind: String,
    /// Group; `core` for Pods and the like
    #[arg(long)]
    group: Option<String>,
    /// Version of a kind of Kubernetes [default: the newest stable one]
    #[arg(long)]
    version: Option<String>,
    /// Path of the Rust type, for a kind of another crate
    #[arg(long)]
    path: Option<String>,
}

impl AddCommand {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Api(args) => api(args),
            Self::Version(args) => {
                let command = AddVersion {
                    kind: args.kind,
                    version: args.version,
                };
                change(&args.change, true, |tree| command.apply(tree))
            }
            Self::Webhook(args) => {
                let mut command = AddWebhook::new(args.kind.kind);
                command.group = args.kind.group;
                command.version = args.kind.version;
                command.path = args.kind.path;
                command.defaulting = args.defaulting;
                command.validation = args.validation;
                command.conversion = args.conversion;
                change(&args.change, true, |tree| command.apply(tree))
            }
            Self::Controller(args) => {
                let mut command = AddController::new(args.kind.kind);
                command.group = args.kind.group;
                command.version = args.kind.version;
                command.path = args.kind.path;
                command.name = args.name;
                change(&args.change, true, |tree| command.apply(tree))
            }
            Self::TypesCrate(args) => {
                let command = AddTypesCrate {
                    is_in_workspace: project()?.ancestors().skip(1).any(is_workspace),
                };
                change(&args.change, true, |tree| command.apply(tree))
            }
            Self::Ci(args) => {
                let mut command = AddTooling::new(Tooling::Ci);
                command.manifests = args.manifests;
                args.replace.run(command)
            }
            Self::Dockerfile(args) => {
                let mut command = AddTooling::new(Tooling::Dockerfile);
                command.libc = match args.libc {
                    LibcArg::Musl => Libc::Musl,
                    LibcArg::Gnu => Libc::Gnu,
                };
                args.replace.run(command)
            }
            Self::Devcontainer(args) => args.replace.run(AddTooling::new(Tooling::Devcontainer)),
        }
    }
}

impl ReplaceArgs {
    fn run(&self, mut command: AddTooling) -> Result<()> {
        command.replace = self.force;
        change(&self.change, true, |tree| command.apply(tree))
    }
}

fn api(args: ApiArgs) -> Result<()> {
    let chosen = |yes: bool, no: bool, question: &str| -> Result<bool> {
        match (yes, no) {
            (_, true) => Ok(false),
            (true, _) => Ok(true),
            // Without a terminal, both are added.
            _ => Ok(ask(question)?.unwrap_or(true)),
        }
    };
    let mut command = AddApi::new(args.kind);
    // An image needs both, so there is nothing to ask.
    let (resource, controller) = match args.image {
        Some(_) => (true, true),
        None => (args.resource, args.controller),
    };
    command.resource = chosen(resource, args.no_resource, "Create Resource")?;
    command.controller = chosen(controller, args.no_controller, "Create Controller")?;
    command.group = args.group;
    command.version = args.version;
    command.plural = args.plural;
    command.image = args.image;
    command.image_options = args.image_options.options();
    command.cluster_scoped = args.cluster_scoped;
    change(&args.change, true, |tree| command.apply(tree))
}
