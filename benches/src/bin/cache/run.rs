//! Execution of all measurements, each in a separate process and several times, and their output.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use opkit_benches::data::Kind;
use opkit_benches::runs::{self, Measurement, measure, note};
use opkit_benches::stand_in::Server;

use crate::rows::ROWS;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
    /// Use fewer objects and one repetition, to check that the benchmark works
    #[arg(long)]
    quick: bool,
    /// Number of repetitions
    #[arg(long)]
    repetitions: Option<u32>,
    /// Executable of the kube-runtime peer
    #[arg(long)]
    kube_runtime: Option<PathBuf>,
    /// Executable of the client-go peer
    #[arg(long)]
    client_go: Option<PathBuf>,
    /// Kubeconfig of an empty real API server
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

struct Size {
    objects: u64,
    pod_events: u64,
    robot_events: u64,
    real_pods: u64,
    repetitions: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut size = match args.quick {
        true => Size {
            objects: 5_000,
            pod_events: 5_000,
            robot_events: 10_000,
            real_pods: 1_000,
            repetitions: 1,
        },
        false => Size {
            objects: 50_000,
            pod_events: 50_000,
            robot_events: 100_000,
            real_pods: 20_000,
            repetitions: 5,
        },
    };
    size.repetitions = args.repetitions.unwrap_or(size.repetitions);
    let this = std::env::current_exe().context("cannot find the path of this program")?;
    let servers = [Kind::Pods, Kind::Robots].map(|kind| Server::start(&this, kind, size.objects));
    let [pods, robots] = servers;
    let pods = pods.context("cannot start the stand-in server")?;
    let robots = robots.context("cannot start the stand-in server")?;
    let mut measurements = Vec::new();
    for (kind, server) in [(Kind::Pods, &pods), (Kind::Robots, &robots)] {
        stand_in(args, &size, &this, kind, server.port, &mut measurements);
    }
    if let Some(kubeconfig) = &args.kubeconfig {
        note(&format!("loading {} Pods", size.real_pods));
        let pods = size.real_pods.to_string();
        let mut load = Command::new(&this);
        load.args(["load", &pods]).env("KUBECONFIG", kubeconfig);
        if !load.status()?.success() {
            bail!("cannot load the Pods");
        }
        real(args, &this, kubeconfig, &mut measurements);
    }
    runs::repeat(&measurements, size.repetitions, args.json, ROWS);
    Ok(())
}

fn stand_in<'a>(
    args: &'a Args,
    size: &Size,
    this: &'a Path,
    kind: Kind,
    port: u16,
    measurements: &mut Vec<Measurement<'a>>,
) {
    let events = match kind {
        Kind::Pods => size.pod_events,
        Kind::Robots => size.robot_events,
    };
    let [port, objects, events] = [u64::from(port), size.objects, events].map(|n| n.to_string());
    let common = [kind.to_string(), port, objects, events];
    let mut add = |name: String, program: &'a Path, before: &[&str], after: &[&str]| {
        let arguments = before.iter().map(|text| (*text).to_owned());
        let arguments: Vec<String> = arguments
            .chain(common.iter().cloned())
            .chain(after.iter().map(|text| (*text).to_owned()))
            .collect();
        measurements.push((
            name,
            Box::new(move || measure(Command::new(program).args(&arguments))),
        ));
    };
    add(format!("ours {kind}"), this, &["ours"], &[]);
    if let Some(peer) = &args.kube_runtime {
        add(format!("kube {kind}"), peer, &["stand-in"], &["paged"]);
        add(
            format!("kube {kind} cleared"),
            peer,
            &["stand-in"],
            &["paged", "cleared"],
        );
        if kind == Kind::Pods {
            add(
                format!("kube {kind} streaming"),
                peer,
                &["stand-in"],
                &["streaming"],
            );
        }
    }
    if let Some(peer) = &args.client_go {
        add(format!("go {kind}"), peer, &["stand-in"], &[]);
    }
}

fn real<'a>(
    args: &'a Args,
    this: &'a Path,
    kubeconfig: &'a Path,
    measurements: &mut Vec<Measurement<'a>>,
) {
    let mut add = |name: &str, program: &'a Path, arguments: &'static [&str]| {
        let measure = move || {
            let mut command = Command::new(program);
            measure(command.args(arguments).env("KUBECONFIG", kubeconfig))
        };
        measurements.push((name.to_owned(), Box::new(measure)));
    };
    add("ours real", this, &["real"]);
    add("server alone", this, &["server"]);
    if let Some(peer) = &args.client_go {
        add("go real", peer, &["real", "protobuf"]);
    }
}
