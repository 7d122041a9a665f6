//! What the user has selected, and how keys change it.

use crate::keys::Key;
use crate::model::{ObjectRow, Snapshot};

/// List in the lower part of the view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tab {
    /// The operator's log.
    #[default]
    Log,
    /// The queues of the controllers.
    Queue,
    /// Events in the cluster.
    Events,
    /// Calls of the webhooks.
    Webhooks,
    /// Messages of the command and output of the compiler.
    Build,
}

impl Tab {
    /// All tabs in the order in which the key Tab selects them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Log,
        Self::Queue,
        Self::Events,
        Self::Webhooks,
        Self::Build,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Queue => "queue",
            Self::Events => "events",
            Self::Webhooks => "webhooks",
            Self::Build => "build",
        }
    }

    fn moved(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        let to = at.saturating_add(steps) % Self::ALL.len();
        Self::ALL.get(to).copied().unwrap_or_default()
    }
}

/// What the command does after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// End the command.
    Quit,
    /// Build the operator, even if no file has changed.
    Build,
}

/// State of the view that does not come from the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dashboard {
    /// Selected object: kind, namespace and name. The object stays selected when others appear.
    selected: Option<(String, Option<String>, String)>,
    pub(crate) tab: Tab,
    /// Text that objects, log lines and events must contain.
    pub(crate) filter: String,
    /// Whether keys go into the filter.
    pub(crate) is_filtering: bool,
    /// Whether the reconciles of the selected object fill the view.
    pub(crate) is_explaining: bool,
    /// Number of lines that the explanation, or the list of the tab, is scrolled by.
    pub(crate) scroll: usize,
}

impl Dashboard {
    /// Creates the state at the start.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows a tab.
    pub fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.scroll = 0;
    }

    /// Returns the objects that the filter leaves.
    pub(crate) fn objects<'a>(&self, snapshot: &'a Snapshot) -> Vec<&'a ObjectRow> {
        let objects = snapshot.objects.iter();
        let is_shown = |object: &&ObjectRow| {
            let text = format!("{} {} {}", object.kind, object.title(), object.status);
            self.passes(&text)
        };
        objects.filter(is_shown).collect()
    }

    /// Reports whether a text contains the filter, in any case of letters.
    pub(crate) fn passes(&self, text: &str) -> bool {
        self.filter.is_empty() || text.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// Returns the position of the selected object; the first object if none is selected.
    pub(crate) fn position(&self, objects: &[&ObjectRow]) -> usize {
        let is_selected = |object: &&ObjectRow| {
            self.selected
                .as_ref()
                .is_some_and(|(kind, namespace, name)| {
                    (kind, namespace, name) == (&object.kind, &object.namespace, &object.name)
                })
        };
        objects.iter().position(is_selected).unwrap_or(0)
    }

    /// Changes the state by a key, and returns what the command has to do.
    pub fn press(&mut self, key: Key, snapshot: &Snapshot) -> Option<Request> {
        if key == Key::Interrupt {
            return Some(Request::Quit);
        }
        if self.is_filtering {
            self.edit_filter(key);
            return None;
        }
        match key {
            Key::Char('q') => return Some(Request::Quit),
            Key::Char('b') => {
                self.show(Tab::Build);
                return Some(Request::Build);
            }
            Key::Char('/') => self.is_filtering = true,
            Key::Escape if self.is_explaining => self.set_explaining(false),
            Key::Escape => self.filter.clear(),
            Key::Enter => self.set_explaining(!self.is_explaining),
            Key::Tab | Key::Right => self.show(self.tab.moved(1)),
            Key::BackTab | Key::Left => self.show(self.tab.moved(Tab::ALL.len() - 1)),
            Key::Up | Key::Char('k') => self.select(snapshot, |at| at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select(snapshot, |at| at.saturating_add(1)),
            Key::PageUp => self.scroll = self.scroll.saturating_add(SCROLL),
            Key::PageDown => self.scroll = self.scroll.saturating_sub(SCROLL),
            _ => {}
        }
        None
    }

    fn set_explaining(&mut self, is_explaining: bool) {
        self.is_explaining = is_explaining;
        self.scroll = 0;
    }

    fn edit_filter(&mut self, key: Key) {
        match key {
            Key::Char(char) => self.filter.push(char),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_filtering = false,
            Key::Escape => {
                self.filter.clear();
                self.is_filtering = false;
            }
            _ => {}
        }
    }

    fn select(&mut self, snapshot: &Snapshot, to: impl Fn(usize) -> usize) {
        let objects = self.objects(snapshot);
        let last = objects.len().saturating_sub(1);
        let position = to(self.position(&objects)).min(last);
        self.selected = objects.get(position).map(|object| {
            (
                object.kind.clone(),
                object.namespace.clone(),
                object.name.clone(),
            )
        });
        self.scroll = 0;
    }
}

/// Number of lines that a page key scrolls.
const SCROLL: usize = 5;

#[cfg(test)]
mod tests;
