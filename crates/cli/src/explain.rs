//! `opkit explain`: shows the causes and results of an object's last reconciles.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use opkit_debug::{EXPLAIN_PATH, Explanation, HotLoop, Outcome, Owner, Reconcile, Refusal, Write};
use serde_json::json;

use crate::deploy::{self, OutputFormat};
use crate::{endpoint, output};

/// Width limit of the output, in characters. Two terminals of this width fit side by side on a wide
/// screen. A heading with long names may be wider.
const WIDTH: usize = 120;
/// Width limit of the column of reads; longer text continues on the next line.
const READS: usize = 16;
/// Width limit of the column of writes; longer text continues on the next line.
const WRITES: usize = 48;
/// Text before the first write.
const WROTE: &str = "wrote ";
/// Minimum width of the column of causes.
const CAUSE_MIN: usize = 32;

/// Object to explain, and address of the operator.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit explain robot/robot-one
  opkit explain robot/robot-one --namespace fleet --output json
  opkit explain robot/robot-one --address 127.0.0.1:8082")]
pub(crate) struct Args {
    /// Kind and name of the object, such as robot/robot-one; the kind may be the plural or a short
    /// name
    #[arg(value_name = "KIND/NAME")]
    object: ObjectArg,
    /// Namespace of the object [default: any]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Debug address of the operator (its --debug-bind-address) [default: the operators of
    /// `opkit dev`, found in .opkit]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Print the records as one document [default: a table]
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

/// Kind and name of an object, in one argument.
#[derive(Clone, Debug)]
struct ObjectArg {
    kind: String,
    name: String,
}

impl FromStr for ObjectArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(Self {
                kind: kind.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err("write it as KIND/NAME, such as robot/robot-one"),
        }
    }
}

/// Requests the reconciles from the operators, and prints them.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let ObjectArg { kind, name } = &args.object;
    let query: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("kind", kind)
        .append_pair("name", name)
        .extend_pairs(
            args.namespace
                .iter()
                .map(|namespace| ("namespace", namespace)),
        )
        .finish();
    let addresses = addresses(args)?;
    let Explanation {
        objects, owners, ..
    } = explain(&addresses, kind, name, &query).await?;
    match args.output {
        Some(format) => {
            let mut document = json!({ "objects": objects });
            if !owners.is_empty()
                && let Some(fields) = document.as_object_mut()
            {
                fields.insert("owners".to_owned(), json!(owners));
            }
            deploy::print(format, &document)
        }
        None => {
            let now = Timestamp::now();
            let mut text: String = (objects.iter())
                .map(|records| print(records, &owners, now))
                .collect();
            if objects.is_empty() {
                text.extend(owners.iter().map(|owner| print_owner(kind, owner)));
            }
            output::write(&text);
            Ok(())
        }
    }
}

/// Returns the last reconciles of each object with this kind and name, and the replicas that own
/// them, from the operators at `addresses`. Returns an error with the reasons if no operator has
/// reconciled the object or knows its owner.
async fn explain(addresses: &[String], kind: &str, name: &str, query: &str) -> Result<Explanation> {
    let (mut found, mut problems) = (Explanation::default(), Vec::new());
    for address in addresses {
        match request(address, query).await {
            Ok(explanation) if explanation.objects.is_empty() && explanation.owners.is_empty() => {
                problems.push(format!("{kind}/{name} has no recent reconcile"));
            }
            Ok(explanation) => {
                found.objects.extend(explanation.objects);
                // Replicas that have read the ring at another time may report another owner.
                let owners = explanation.owners.into_iter();
                found.owners.extend(owners);
                found.owners.dedup();
            }
            Err(error) => problems.push(format!("{error:#}")),
        }
    }
    problems.dedup();
    match found.objects.is_empty() && found.owners.is_empty() {
        true => bail!("{}", problems.join("; ")),
        false => Ok(found),
    }
}

async fn request(address: &str, query: &str) -> Result<Explanation> {
    let response =
        endpoint::get(endpoint::DEBUG, address, &format!("{EXPLAIN_PATH}?{query}")).await?;
    if !response.status.is_success() {
        let refusal: Option<Refusal> = serde_json::from_slice(&response.body).ok();
        bail!(
            "{}",
            refusal.map_or_else(|| response.status.to_string(), |refusal| refusal.error)
        );
    }
    serde_json::from_slice(&response.body).context("cannot parse the operator's response")
}

/// Returns the address in `args`, or else the addresses of the operators that `opkit dev` runs in
/// this directory.
fn addresses(args: &Args) -> Result<Vec<String>> {
    if let Some(address) = &args.address {
        return Ok(vec![address.clone()]);
    }
    let is_address = |path: &PathBuf| path.extension().is_some_and(|end| end == "debug-address");
    let files = fs::read_dir(".opkit").into_iter().flatten().flatten();
    let files = files.map(|file| file.path()).filter(is_address);
    let found: Vec<_> = files
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|address| address.trim().to_owned())
        .collect();
    if found.is_empty() {
        bail!(
            "no operator of `opkit dev` runs in this directory: start one, or pass --address with the operator's --debug-bind-address"
        );
    }
    Ok(found)
}

/// Returns a heading, and one line for each reconcile, newest first.
fn print(records: &[Reconcile], owners: &[Owner], now: Timestamp) -> String {
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return String::new();
    };
    let object = format!("{}/{}", last.kind.to_lowercase(), last.name);
    let place = last
        .namespace
        .as_ref()
        .map(|namespace| format!(" in {namespace}"));
    let ended = last.started.checked_add(seconds(last.duration_seconds));
    let ended = ended.unwrap_or(Timestamp::MAX);
    let took = brief(between(first.started, ended));
    let idle = brief(between(ended, now));
    let times = match last.number {
        1 => "once".to_owned(),
        number => format!("{number} times"),
    };
    let shown = match records.len() as u64 == last.number {
        true => format!("in {took}"),
        false => format!("the last {} in {took}", records.len()),
    };
    let mut text = format!(
        "{object}{} reconciled {times} by {}, {shown}, idle for {idle}\n",
        place.unwrap_or_default(),
        last.controller
    );
    let mut owners = owners.iter();
    let is_same = |it: &&Owner| (&it.namespace, &it.name) == (&last.namespace, &last.name);
    if let Some(owner) = owners.find(is_same) {
        text.push_str(&format!(" {}\n", owned(owner)));
    }
    if let Some(HotLoop {
        object,
        field,
        manager,
        because,
        is_created_and_pruned,
        count,
    }) = &last.hot_loop
    {
        let manager = manager.as_deref().unwrap_or("another client");
        let what = match because {
            _ if *is_created_and_pruned => format!(
                "{object} is created and pruned alternately: apply it in every reconcile, or create it with cx.create_once"
            ),
            Some(because) => format!("{object} is reconciled without a pause because {because}"),
            None => format!("{manager} keeps changing {field} of {object}"),
        };
        let what = output::plain(&what);
        text.push_str(&format!(" LOOP: {what} ({count} reconciles)\n"));
    }
    text.push_str(&table(records));
    text
}

/// Returns the line of an object of which the operator at the address has no recent reconcile.
fn print_owner(kind: &str, owner: &Owner) -> String {
    let namespace = owner.namespace.as_ref();
    let place = namespace.map(|namespace| format!(" in {namespace}"));
    let object = format!(
        "{}/{}{}",
        kind.to_lowercase(),
        owner.name,
        place.unwrap_or_default()
    );
    let text = format!(
        "{object} has no recent reconcile in this replica: {}",
        owned(owner)
    );
    format!("{}\n", output::plain(&text))
}

/// Returns the slot and the owner of an object.
fn owned(owner: &Owner) -> String {
    let replica = match &owner.replica {
        Some(replica) => format!("owned by {}", output::plain(replica)),
        None => "owned by no replica at present".to_owned(),
    };
    format!("slot {} of {}, {replica}", owner.slot, owner.of)
}

/// Returns one row for each reconcile, newest first, aligned and at most [`WIDTH`] wide.
fn table(records: &[Reconcile]) -> String {
    let mut rows: Vec<_> = records.iter().rev().map(row).collect();
    let widest = |rows: &[[Vec<String>; 5]], n: usize| {
        let cells = rows.iter().filter_map(|row| row.get(n));
        let widths = cells.flatten().map(|line| line.chars().count());
        widths.max().unwrap_or(0)
    };
    // The cause column gets the width that the other columns, and two spaces between each, leave.
    let others: usize = [0, 2, 3, 4].map(|n| widest(&rows, n) + 2).iter().sum();
    let free = WIDTH.saturating_sub(others + 1).max(CAUSE_MIN);
    for [_, causes, ..] in &mut rows {
        *causes = causes
            .iter()
            .flat_map(|cause| wrapped(cause, free))
            .collect();
    }
    let widths = [0, 1, 2, 3, 4].map(|n| widest(&rows, n));
    let mut text = String::new();
    for (row, record) in rows.iter().zip(records.iter().rev()) {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for n in 0..height {
            let cell = |(lines, width): (&Vec<String>, usize)| {
                format!("{:<width$}", lines.get(n).map_or("", String::as_str))
            };
            let cells: Vec<_> = row.iter().zip(widths).map(cell).collect();
            text.push_str(&format!(" {}\n", cells.join("  ").trim_end()));
        }
        let indent = widths.first().copied().unwrap_or(0) + 3;
        for line in wrapped(&failure(&record.result), WIDTH.saturating_sub(indent)) {
            text.push_str(&format!("{:indent$}{line}\n", ""));
        }
    }
    text
}

/// Returns the error and the time of the retry, or an empty text if the reconcile succeeded.
fn failure(result: &Outcome) -> String {
    match result {
        Outcome::Ok | Outcome::Requeue { .. } => String::new(),
        Outcome::Error {
            message,
            retry_seconds: Some(retry),
        } => format!("again in {}: {message}", brief(seconds(*retry))),
        Outcome::Error {
            message,
            retry_seconds: None,
        } => format!("again at the next change: {message}"),
    }
}

/// Returns the cells of the table row of one reconcile: number, causes, reads, writes and result.
/// Each cell is a list of lines.
fn row(record: &Reconcile) -> [Vec<String>; 5] {
    let reads = match (record.cache_reads, record.live_reads) {
        (0, 0) => String::new(),
        (cache, 0) => format!("read {cache} (cache)"),
        (0, live) => format!("read {live} (server)"),
        (cache, live) => format!("read {cache} (cache), {live} (server)"),
    };
    let write = |write: &Write| match write.subresource.is_empty() {
        true if write.name.is_empty() => format!("{} {}", write.verb, write.kind.to_lowercase()),
        true => format!(
            "{} {}/{}",
            write.verb,
            write.kind.to_lowercase(),
            write.name
        ),
        false if write.kind == record.kind && write.name == record.name => {
            write.subresource.clone()
        }
        false => format!(
            "{} of {}/{}",
            write.subresource,
            write.kind.to_lowercase(),
            write.name
        ),
    };
    let writes: Vec<_> = record.writes.iter().map(write).collect();
    let mut writes = match writes.join(", ") {
        all if all.chars().count() + WROTE.len() <= WRITES => vec![all],
        _ => writes,
    };
    if let Some(first) = writes.first_mut().filter(|first| !first.is_empty()) {
        first.insert_str(0, WROTE);
    }
    let duration = brief(seconds(record.duration_seconds));
    let result = match &record.result {
        Outcome::Ok => "ok".to_owned(),
        Outcome::Requeue { after_seconds } => {
            format!("ok, again in {}", brief(seconds(*after_seconds)))
        }
        Outcome::Error { .. } => "error".to_owned(),
    };
    [
        vec![format!("#{}", record.number)],
        record.causes.clone(),
        wrapped(&reads, READS),
        writes.iter().flat_map(|it| wrapped(it, WRITES)).collect(),
        vec![format!("{duration}  {result}")],
    ]
}

/// Wraps text from the operator into lines of at most `width` characters. A longer word is split.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (text, width) = (output::plain(text), width.max(1));
    let mut lines: Vec<String> = Vec::new();
    let mut free = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if length < free
            && let Some(line) = lines.last_mut()
        {
            line.push(' ');
            line.push_str(word);
            free -= length + 1;
            continue;
        }
        let chars: Vec<char> = word.chars().collect();
        for part in chars.chunks(width) {
            free = width - part.len();
            lines.push(part.iter().collect());
        }
    }
    lines
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Converts seconds to a duration; a value that is too large becomes the longest duration.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Formats a duration with two digits and a unit.
fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 0.001 => format!("{:.0} µs", s * 1e6),
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests;
