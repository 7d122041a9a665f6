//! The terminal view of `opkit dev`, without a terminal.
//!
//! A [`Snapshot`] has what the view shows: objects, reconciles, queue, events, log, webhooks. A
//! [`Dashboard`] has what the user has selected, and changes with each [`Key`]. [`draw`] returns
//! the [`Screen`] of both for a size, as lines of styled text; [`Screen::ansi`] encodes a screen
//! for a terminal. The crate does no I/O: the command reads the keys and writes the text.

mod draw;
mod keys;
mod model;
mod panels;
mod screen;
mod state;
mod text;

pub use draw::draw;
pub use keys::{Key, KeyReader};
pub use model::{Event, LogLine, ObjectRow, Snapshot};
pub use screen::{Line, Screen, Span, Style};
pub use state::{Dashboard, Request, Tab};
pub use text::human;
