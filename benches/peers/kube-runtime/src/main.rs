//! kube-runtime, unchanged, with the same measurements and faults as opkit's crates.
//!
//! ```text
//! peer-kube-runtime stand-in pods|robots PORT OBJECTS EVENTS paged|streaming [cleared]
//! peer-kube-runtime queue distinct KEYS
//! peer-kube-runtime queue producers PRODUCERS ADDS KEYS
//! peer-kube-runtime controller dispatch|flight|answers|burst|latency PORT OBJECTS WORKERS COUNT
//! peer-kube-runtime faults
//! ```

#[path = "../../../src/bin/controller/answers.rs"]
mod answers;
mod controller;
mod faults;
mod queue;
#[path = "../../../../crates/cache/src/faults/script.rs"]
mod script;
mod stand_in;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["stand-in", kind, port, objects, events, list, rest @ ..] => {
            stand_in::run(&stand_in::Row {
                kind,
                port: port.parse()?,
                objects: objects.parse()?,
                events: events.parse()?,
                streaming: *list == "streaming",
                cleared: rest.contains(&"cleared"),
            })
        }
        ["queue", "distinct", keys] => queue::distinct(keys.parse()?),
        ["queue", "producers", producers, adds, keys] => {
            queue::producers(producers.parse()?, adds.parse()?, keys.parse()?)
        }
        ["controller", what, port, objects, workers, count] => controller::run(&controller::Row {
            what: match *what {
                "dispatch" => controller::What::Dispatch,
                "flight" => controller::What::Flight,
                "answers" => controller::What::Answers,
                "burst" => controller::What::Burst,
                "latency" => controller::What::Latency,
                other => anyhow::bail!("{other:?} is not a known measurement"),
            },
            port: port.parse()?,
            objects: objects.parse()?,
            workers: workers.parse()?,
            count: count.parse()?,
        }),
        ["faults"] => faults::run(),
        other => anyhow::bail!("{other:?} is not a known command"),
    }
}
