//! The view of `opkit dev` in a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::dev::operator;
use super::*;

/// `opkit dev` in a terminal, and what the terminal shows.
pub(super) struct InTerminal {
    /// The workspace; `None` for a directory of the caller.
    root: Option<TempDir>,
    child: Killed,
    keyboard: File,
    output: mpsc::Receiver<Vec<u8>>,
    parser: vt100::Parser,
}

impl InTerminal {
    fn start(columns: u16, lines: u16) -> Self {
        let root = workspace(&operator("one"));
        Self::start_in(root, &["dev"], columns, lines)
    }

    fn start_in(root: TempDir, arguments: &[&str], columns: u16, lines: u16) -> Self {
        let mut started = Self::of(root.path(), arguments, columns, lines);
        started.root = Some(root);
        started
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.as_ref().unwrap().path().join(name)
    }

    /// Starts a command in a directory.
    pub(super) fn of(directory: &Path, arguments: &[&str], columns: u16, lines: u16) -> Self {
        let (master, slave) = pair(columns, lines);
        let mut command = opkit(directory);
        let side = || Stdio::from(slave.try_clone().unwrap());
        command
            .args(arguments)
            .stdin(side())
            .stdout(side())
            .stderr(side());
        let child = Killed(command.spawn().unwrap());
        let keyboard = File::from(master);
        let (sender, output) = mpsc::channel();
        let mut screen = keyboard.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The read fails once no process has the terminal.
            while let Ok(length @ 1..) = screen.read(&mut buffer) {
                if sender
                    .send(buffer.iter().take(length).copied().collect())
                    .is_err()
                {
                    return;
                }
            }
        });
        Self {
            root: None,
            child,
            keyboard,
            output,
            parser: vt100::Parser::new(lines, columns, 0),
        }
    }

    /// Waits for the end of the command. Returns its exit code and what the terminal shows.
    pub(super) fn end(mut self) -> (i32, String) {
        let status = self.child.0.wait().unwrap();
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
            self.parser.process(&bytes);
        }
        (status.code().unwrap_or(-1), self.parser.screen().contents())
    }

    /// Waits until the terminal shows this text, and returns all of its lines.
    pub(super) fn until(&mut self, text: &str) -> Vec<String> {
        let began = std::time::SystemTime::now();
        loop {
            let contents = self.parser.screen().contents();
            if contents.contains(text) {
                return contents.lines().map(str::to_owned).collect();
            }
            let waited = began.elapsed().unwrap_or_default();
            assert!(waited < WAIT_MAX, "no {text:?} in:\n{contents}");
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
                self.parser.process(&bytes);
            }
        }
    }

    pub(super) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses `q`, and checks that the terminal is as it was before.
    fn quit(mut self) {
        self.press("q");
        let status = self.child.0.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
            self.parser.process(&bytes);
        }
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        assert!(screen.contents().contains("op running, 1 controller"));
        assert!(!self.path(".opkit/kubeconfig").exists());
    }
}

/// Returns both ends of a new pseudo-terminal of this size.
fn pair(columns: u16, lines: u16) -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize {
        ws_col: columns,
        ws_row: lines,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    (master, slave.into())
}

async fn check(columns: u16, lines: u16) {
    let mut terminal = InTerminal::start(columns, lines);
    let shown = terminal.until("q quit");
    assert_eq!(shown.len(), usize::from(lines), "{shown:#?}");
    assert!(terminal.parser.screen().alternate_screen());
    let first = shown.first().unwrap();
    assert!(
        first.starts_with(" op   running, 1 controller"),
        "{shown:#?}"
    );
    assert!(first.contains("127.0.0.1:"), "{shown:#?}");
    let rule = "─".repeat(columns.into());
    assert_eq!(shown.get(2), Some(&rule));
    assert_eq!(shown.iter().nth_back(1), Some(&rule));
    assert!(shown.iter().any(|line| line.contains("no objects yet")));

    // An object appears.
    let client = client(&terminal.path(".opkit/kubeconfig")).await;
    let kind = kube::core::ApiResource {
        group: "opkit.dev".into(),
        version: "v1".into(),
        api_version: "opkit.dev/v1".into(),
        kind: "Robot".into(),
        plural: "robots".into(),
    };
    let robots: Api<kube::core::DynamicObject> =
        Api::default_namespaced_with(client.clone(), &kind);
    let robot = kube::core::DynamicObject::new("one", &kind);
    robots.create(&PostParams::default(), &robot).await.unwrap();
    terminal.until(" > Robot  one");
    terminal.until("reconciles of one");

    // Each list.
    for heading in ["[queue]", "[events]", "[webhooks]", "[build]", "[log]"] {
        terminal.press("\t");
        terminal.until(heading);
    }
    // The filter.
    terminal.press("/x\r");
    terminal.until("no object matches the filter");
    terminal.press("\x1b");
    terminal.until(" > Robot  one");
    // Explain, and back.
    terminal.press("\r");
    terminal.until("esc back");
    terminal.press("\x1b");
    terminal.until("enter explain");
    // An edit that does not compile is shown, and the next one is built.
    let source = terminal.path("op/src/main.rs");
    fs::write(&source, "fn main() { nothing(); }").unwrap();
    terminal.until("op does not compile");
    terminal.until("not found in this scope");
    fs::write(&source, operator("two")).unwrap();
    terminal.until("restarted, 1 controller");
    // A build on request.
    terminal.press("b");
    terminal.until("build requested");
    terminal.until("did not change");
    // The API server keeps running.
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.list(&Default::default()).await.unwrap();
    terminal.quit();
}

#[tokio::test]
async fn a_terminal_of_80_by_24() {
    check(80, 24).await;
}

#[tokio::test]
async fn a_terminal_of_200_by_60() {
    check(200, 60).await;
}

#[test]
fn ctrl_c_ends_the_view() {
    let mut terminal = InTerminal::start(80, 24);
    terminal.until("q quit");
    terminal.press("\x03");
    assert_eq!(terminal.child.0.wait().unwrap().code(), Some(0));
}

/// A relay in front of a server, which can stop to respond: it then reads requests, and drops them.
struct Relay {
    address: SocketAddr,
    is_silent: Arc<AtomicBool>,
    has_dropped: Arc<AtomicBool>,
}

impl Relay {
    /// Starts a relay to a server. It ends with the process of the test.
    fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap(),
            is_silent: Arc::default(),
            has_dropped: Arc::default(),
        };
        let flags = (relay.is_silent.clone(), relay.has_dropped.clone());
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let Ok(server) = TcpStream::connect(server) else {
                    return;
                };
                let (to_client, from_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (is_silent, has_dropped) = flags.clone();
                std::thread::spawn(move || {
                    copy(client, server, |_| {
                        let is_silent = is_silent.load(Ordering::SeqCst);
                        has_dropped.fetch_or(is_silent, Ordering::SeqCst);
                        !is_silent
                    });
                });
                std::thread::spawn(move || copy(from_server, to_client, |_| true));
            }
        });
        relay
    }

    fn silence(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
        wait(|| self.has_dropped.load(Ordering::SeqCst));
    }
}

/// Copies the bytes that pass, until one of the connections ends.
fn copy(mut from: TcpStream, mut to: TcpStream, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = buffer.get(..length).unwrap_or_default();
        if passes(bytes) && to.write_all(bytes).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// A request that waits for a server must not delay a key.
#[test]
fn the_view_ends_while_the_server_does_not_respond() {
    let root = workspace(&operator("one"));
    let place = TempDir::new().unwrap();
    let mut up = opkit(place.path());
    up.args(["cluster", "up"]).stdout(Stdio::null());
    let _cluster = Killed(up.spawn().unwrap());
    let path = place.path().join(".opkit/kubeconfig");
    let start = "https://127.0.0.1:";
    wait(|| fs::read_to_string(&path).is_ok_and(|it| it.contains(start)));
    let kubeconfig = fs::read_to_string(&path).unwrap();
    let server = kubeconfig.split("https://").nth(1).unwrap();
    let server = server.split(|end: char| end != '.' && end != ':' && !end.is_ascii_digit());
    let server: SocketAddr = server.into_iter().next().unwrap().parse().unwrap();
    let relay = Relay::start(server);
    let relayed = kubeconfig.replace(&server.to_string(), &relay.address.to_string());
    fs::write(root.path().join("relayed"), relayed).unwrap();

    let arguments = ["dev", "--on-cluster", "--kubeconfig", "relayed"];
    let mut terminal = InTerminal::start_in(root, &arguments, 80, 24);
    terminal.until("no objects yet");
    relay.silence();
    terminal.press("\t");
    terminal.until("[queue]");
    terminal.press("q");
    let mut status = None;
    // Less than the time limit of a request.
    wait(|| {
        status = terminal.child.0.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
}
