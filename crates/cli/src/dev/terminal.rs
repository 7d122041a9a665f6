//! The terminal that the view of `opkit dev` fills: its mode, its size and its keys.

use std::fmt;
use std::io::{self, IsTerminal, Read, Stdout};
use std::time::Duration;

use anyhow::{Context, Result};
use opkit_dashboard::{Key, KeyReader, Screen};
use termion::raw::{IntoRawMode, RawTerminal};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::output;

/// Number of pieces of input that wait to be handled. The thread that reads waits while it is full.
const INPUT_MAX: usize = 64;
/// Time after which an escape byte is the key Escape, and not the start of another key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);
/// Size of a terminal that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// Selects the alternate screen, without a cursor and without wrapping of long lines.
const OPEN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// Selects the normal screen again.
const CLOSE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal of this process in raw mode, with the alternate screen. Dropping it restores the
/// terminal.
pub(crate) struct Terminal {
    /// Restores the mode of the terminal when it is dropped.
    _raw: RawTerminal<Stdout>,
    input: mpsc::Receiver<Vec<u8>>,
    reader: KeyReader,
    resized: Signal,
    screen: Option<Screen>,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").finish_non_exhaustive()
    }
}

/// What happens at a terminal.
#[derive(Debug)]
pub(crate) enum TerminalEvent {
    Keys(Vec<Key>),
    Resized,
}

impl Terminal {
    /// Reports whether the process has a terminal for keys and for a view.
    pub(crate) fn is_present() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Fills the terminal with the view.
    pub(crate) fn open() -> Result<Self> {
        let raw = io::stdout().into_raw_mode();
        let resized = signal(SignalKind::window_change());
        let terminal = Self {
            _raw: raw.context("cannot set the mode of the terminal")?,
            input: read_input(),
            reader: KeyReader::default(),
            resized: resized.context("cannot listen for signals")?,
            screen: None,
        };
        output::write(OPEN);
        Ok(terminal)
    }

    /// Returns the number of columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        match termion::terminal_size() {
            Ok((columns @ 1.., lines @ 1..)) => (columns.into(), lines.into()),
            _ => DEFAULT_SIZE,
        }
    }

    /// Draws the lines that have changed.
    pub(crate) fn draw(&mut self, screen: Screen) {
        let text = screen.ansi(self.screen.as_ref());
        if !text.is_empty() {
            output::write(&text);
        }
        self.screen = Some(screen);
    }

    /// Waits for keys or for another size.
    ///
    /// # Cancel safety
    /// May be dropped at any time: no key is lost.
    pub(crate) async fn event(&mut self) -> TerminalEvent {
        loop {
            tokio::select! {
                _ = self.resized.recv() => {
                    output::write("\x1b[2J");
                    self.screen = None;
                    return TerminalEvent::Resized;
                }
                keys = keys(&mut self.input, &mut self.reader) => {
                    if !keys.is_empty() {
                        return TerminalEvent::Keys(keys);
                    }
                }
            }
        }
    }
}

/// Waits for input, and returns its keys.
async fn keys(input: &mut mpsc::Receiver<Vec<u8>>, reader: &mut KeyReader) -> Vec<Key> {
    let received = match reader.is_pending() {
        true => timeout(ESCAPE_TIMEOUT, input.recv()).await,
        false => Ok(input.recv().await),
    };
    match received {
        Ok(Some(bytes)) => reader.read(&bytes),
        // The terminal is gone: nobody can press a key to end the command.
        Ok(None) => vec![Key::Interrupt],
        Err(_) => reader.timed_out().into_iter().collect(),
    }
}

/// Starts the thread that reads the input. A read cannot be cancelled, so the thread ends with the
/// process, or at the first key after the terminal was closed.
fn read_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(INPUT_MAX);
    std::thread::spawn(move || {
        let mut buffer = [0; 256];
        while let Ok(length @ 1..) = io::stdin().lock().read(&mut buffer) {
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            if sender.blocking_send(bytes).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Drop for Terminal {
    fn drop(&mut self) {
        output::write(CLOSE);
    }
}
