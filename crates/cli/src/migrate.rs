//! `opkit migrate storage`: rewrites the stored objects of a kind in its storage version.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use opkit_client::{MigrationOptions, MigrationProgress, RestMapper, StorageMigration};
use tokio::time::Instant;

use crate::connection::ClusterArgs;
use crate::output;
use crate::signals::StopSignals;

/// Width of the progress bar, in characters.
const BAR: u64 = 20;
/// Time between two updates of the progress line on a terminal.
const TERMINAL_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two progress lines in a file or a pipe.
const FILE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Subcommand)]
pub(crate) enum MigrateCommand {
    /// Rewrite the stored objects of a custom resource in its storage version, and clean
    /// `status.storedVersions` of its CRD; safe to interrupt and to start again
    Storage(Args),
}

/// Resource to migrate, and limits of the requests.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit migrate storage robots
  opkit migrate storage robots.robot.example.com --by-cluster")]
pub(crate) struct Args {
    /// Resource, such as robots, a short name or robots.example.com
    #[arg(value_name = "KIND")]
    resource: String,
    /// Maximum number of objects that are rewritten in one second; 0 is no limit
    #[arg(long, default_value_t = MigrationOptions::default().rate, value_name = "N")]
    rate: u32,
    /// Let the cluster rewrite the objects, with a StorageVersionMigration of
    /// storagemigration.k8s.io
    #[arg(long)]
    by_cluster: bool,
    /// Time limit for --by-cluster, in seconds
    #[arg(
        long,
        default_value_t = 3600,
        value_name = "SECONDS",
        requires = "by_cluster"
    )]
    timeout: u64,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl MigrateCommand {
    pub(crate) async fn run(&self) -> Result<()> {
        let Self::Storage(args) = self;
        storage(args).await
    }
}

async fn storage(args: &Args) -> Result<()> {
    let client = args.cluster.connect().await?.client;
    let mapper = RestMapper::new(client.clone());
    let kind = mapper.resource(&args.resource).await?.kind();
    if kind.group.is_empty() {
        bail!("{} is not a custom resource", kind.plural);
    }
    let crd = format!("{}.{}", kind.plural, kind.group);
    let migration = StorageMigration::of(client, &crd).await.with_context(|| {
        format!("{crd} is not a custom resource whose stored objects can be migrated")
    })?;
    let old = migration.old_versions().join(", ");
    let storage = migration.storage_version();
    if old.is_empty() {
        output::write(&format!("   {crd}  all objects are stored as {storage}\n"));
        return Ok(());
    }
    let title = format!("{crd}  {old} -> {storage}");
    if args.by_cluster {
        output::write(&format!("   {title}   by a StorageVersionMigration\n"));
        migration
            .run_by_cluster(Duration::from_secs(args.timeout))
            .await?;
        output::write(&format!("   {title}   done\n"));
        return Ok(());
    }
    let mut signals = StopSignals::listen()?;
    let mut options = MigrationOptions::default();
    options.rate = args.rate;
    let mut lines = Lines::new(
        title.clone(),
        std::io::stdout().is_terminal(),
        Instant::now(),
    );
    let mut report = |progress| {
        if let Some(text) = lines.next(progress, Instant::now()) {
            output::write(&text);
        }
    };
    let migrated = tokio::select! {
        migrated = migration.run(&options, &mut report) => migrated,
        () = signals.requested() => {
            output::write(&lines.end());
            bail!("interrupted: start `opkit migrate storage {}` again to finish", args.resource);
        }
    };
    output::write(&lines.end());
    let done = thousands(migrated?.done);
    output::write(&format!(
        "   {title}   {done} objects, status.storedVersions is {storage}\n"
    ));
    Ok(())
}

/// Lines that show the progress. On a terminal, each line replaces the one before.
struct Lines {
    title: String,
    is_terminal: bool,
    start: Instant,
    last: Option<Instant>,
}

impl Lines {
    fn new(title: String, is_terminal: bool, start: Instant) -> Self {
        Self {
            title,
            is_terminal,
            start,
            last: None,
        }
    }

    /// Returns the text to print, unless the last line is recent.
    fn next(&mut self, progress: MigrationProgress, now: Instant) -> Option<String> {
        let (interval, end) = match self.is_terminal {
            true => (TERMINAL_INTERVAL, ""),
            false => (FILE_INTERVAL, "\n"),
        };
        let last = self.last.unwrap_or(self.start);
        let is_last = progress.done >= progress.total;
        if now.duration_since(last) < interval && !is_last {
            return None;
        }
        self.last = Some(now);
        let line = line(&self.title, progress, now.duration_since(self.start));
        // Clears the rest of the line.
        let (start, clear) = match self.is_terminal {
            true => ("\r", "\x1b[K"),
            false => ("", ""),
        };
        Some(format!("{start}{line}{clear}{end}"))
    }

    /// Returns the text that ends the last line on a terminal.
    fn end(&self) -> String {
        match (self.is_terminal, self.last) {
            (true, Some(_)) => "\n".to_owned(),
            _ => String::new(),
        }
    }
}

fn line(title: &str, progress: MigrationProgress, spent: Duration) -> String {
    let MigrationProgress { done, total, .. } = progress;
    let filled = done.saturating_mul(BAR).checked_div(total).unwrap_or(BAR);
    let bar: String = (0..BAR)
        .map(|at| match at {
            at if at < filled => '=',
            at if at == filled => '>',
            _ => ' ',
        })
        .collect();
    let rate = done as f64 / spent.as_secs_f64().max(0.001);
    let left = total.saturating_sub(done) as f64 / rate.max(0.001);
    format!(
        "   {title}   [{bar}] {} of {}   {rate:.0}/s   {left:.0} s left",
        thousands(done),
        thousands(total)
    )
}

/// Returns a number with commas, such as `10,000`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
