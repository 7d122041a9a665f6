use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use super::*;

/// Variable that makes [`victim`] a test; its value is the way in which the process ends.
const VICTIM: &str = "OPKIT_TEST_VICTIM";
/// Variable with the number of runs of each way; 1 by default.
const RUNS: &str = "OPKIT_TEST_RUNS";
/// Time limit of the watchdog's cleanup.
const CLEAN_MAX: Duration = Duration::from_secs(10);

/// Returns the executables of this machine, or prints that the test is skipped.
fn assets(test: &str) -> Option<Assets> {
    match Assets::find(|name| env::var(name).ok()) {
        Ok(assets) => Some(assets),
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED binaries::tests::{test}: {error}"
            );
            None
        }
    }
}

/// Prints to stdout directly, because libtest captures the output of macros.
fn print(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
}

/// Not a test itself but the process that [`a_test_that_ends_leaves_nothing_behind`] watches.
#[tokio::test]
async fn victim() {
    let Ok(end) = env::var(VICTIM) else { return };
    let plane = shared().await.unwrap();
    let Ports {
        etcd,
        peer,
        apiserver,
        controller_manager,
    } = plane.ports;
    let directory = plane.watchdog.directory().display();
    print(&format!(
        "\nplane {directory} {etcd} {peer} {apiserver} {controller_manager}\n"
    ));
    match end.as_str() {
        "killed" => std::future::pending().await,
        "panics" => panic!("as requested"),
        _ => {}
    }
}

/// Directory and ports of a victim's control plane, as it prints them.
struct Trace {
    directory: String,
    ports: Vec<u16>,
}

/// Process of a victim. Its output must be read to the end: libtest fails if it cannot write that a
/// test has passed.
struct Victim {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Victim {
    fn wait(mut self) -> ExitStatus {
        self.output.read_to_end(&mut Vec::new()).unwrap();
        self.child.wait().unwrap()
    }
}

fn start_victim(end: &str) -> (Victim, Trace) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "binaries::tests::victim", "--nocapture"])
        .env(VICTIM, end)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let line = output
        .by_ref()
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("plane ").map(str::to_owned));
    let line = line.expect("the victim does not start its control plane");
    let mut words = line.split(' ');
    let directory = words.next().unwrap().to_owned();
    let ports = words.map(|port| port.parse().unwrap()).collect();
    (Victim { child, output }, Trace { directory, ports })
}

/// Returns the parts of a control plane that still exist.
fn remains(trace: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    if Path::new(&trace.directory).exists() {
        found.push(trace.directory.clone());
    }
    for port in &trace.ports {
        if TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_err() {
            found.push(format!("port {port}"));
        }
    }
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command).contains(&trace.directory) {
            found.push(format!("process {}", process.file_name().display()));
        }
    }
    found
}

async fn leaves_nothing(trace: &Trace) {
    let deadline = Instant::now() + CLEAN_MAX;
    while !remains(trace).is_empty() && Instant::now() < deadline {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    assert_eq!(remains(trace), Vec::<String>::new());
}

/// `OPKIT_TEST_RUNS=20` runs every way of ending 20 times; by default only the worst way runs,
/// once, to save time.
#[tokio::test]
async fn a_test_that_ends_leaves_nothing_behind() {
    if assets("a_test_that_ends_leaves_nothing_behind").is_none() {
        return;
    }
    let runs = env::var(RUNS).ok().and_then(|runs| runs.parse().ok());
    let ends: &[&str] = match runs {
        None => &["killed"],
        Some(_) => &["killed", "panics", "passes"],
    };
    for run in 1..=runs.unwrap_or(1) {
        for end in ends {
            let start = Instant::now();
            let (mut victim, trace) = start_victim(end);
            let ready = start.elapsed();
            if *end == "killed" {
                assert!(!remains(&trace).is_empty());
                // SIGKILL: none of the victim's code runs any more.
                victim.child.kill().unwrap();
            }
            let status = victim.wait();
            let (code, signal) = (status.code(), status.signal());
            match *end {
                "killed" => assert_eq!((code, signal), (None, Some(9))),
                "panics" => assert_eq!((code, signal), (Some(101), None)),
                _ => assert_eq!((code, signal), (Some(0), None)),
            }
            let ended = Instant::now();
            leaves_nothing(&trace).await;
            print(&format!(
                "run {run}: ready after {ready:.1?}, {end} ({status}), nothing left after {:.1?}\n",
                ended.elapsed()
            ));
        }
    }
}

#[tokio::test]
async fn a_taken_port_is_reported() {
    let Some(assets) = assets("a_port_that_is_taken_is_said") else {
        return;
    };
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let ports = Ports {
        etcd: taken.local_addr().unwrap().port(),
        ..Ports::free().unwrap()
    };
    let error = Binaries::start_on(assets, ports, None).await.unwrap_err();
    let text = error.to_string();
    let want = "etcd does not start, because its port is taken; its log: ";
    let log = text.strip_prefix(want).expect(&text);
    assert!(
        fs::read_to_string(log)
            .unwrap()
            .contains("address already in use")
    );
    fs::remove_dir_all(Path::new(log).parent().unwrap()).unwrap();
}

#[tokio::test]
async fn a_process_that_ends_is_reported_with_its_log() {
    let Some(assets) = assets("a_process_that_dies_is_named_with_its_log") else {
        return;
    };
    let plane = Binaries::start(assets, None).await.unwrap();
    let directory = plane.watchdog.directory().to_owned();
    let etcd = fs::read_to_string(directory.join("etcd.pid")).unwrap();
    let killed = Command::new("kill").args(["-KILL", etcd.trim()]).status();
    assert!(killed.unwrap().success());
    let error = tokio::time::timeout(CLEAN_MAX, plane.died()).await.unwrap();
    let text = error.to_string();
    let log = directory.join("etcd.log");
    assert!(text.starts_with("etcd ended with code 137: "), "{text}");
    assert!(
        text.ends_with(&format!("its log: {}", log.display())),
        "{text}"
    );
    // The other processes were stopped too; only the logs are left.
    plane.end(true).await;
    let mut left: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    left.sort();
    // These depend on the assets, and on the time at which the server has written its first event.
    left.retain(|name| name != "kube-controller-manager.log" && name != "audit.log");
    assert_eq!(left, ["etcd.log", "kube-apiserver.log"]);
    assert!(plane.is_ready().await.is_err());
    fs::remove_dir_all(&directory).unwrap();
}
