//! One reflector and its connection to the server. The faults occur in the connection.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use opkit_client::Encoding;
use opkit_random::Random;

use opkit_apimachinery::protobuf::{self, WatchEventParts};
use serde_json::{Value, json};

use super::server::{Change, Object, Server, Streaming};
use crate::reflector::{Action, Engine, Failure, Input, Page};
use crate::shard::Part;
use crate::sink::Sink;

pub(super) struct Link {
    part: Part,
    /// Whether the reflector requests only objects with a label.
    selects: bool,
    engine: Engine,
    sink: Box<dyn Sink>,
    action: Action,
    /// Number of times the server had been restored when `action` was requested.
    requested_at: u64,
    /// Time at which a pause of the reflector ends.
    wakes: Duration,
    watch: Option<Watch>,
    /// Number of times the server was restored, as far as the reflector has noticed.
    restored: u64,
    /// Version of the last event if that event was a bookmark: everything up to this version was
    /// delivered.
    settled: Option<u64>,
}

/// Selector and encoding that reflectors request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Whether to request only objects with a label.
    pub(super) selects: bool,
    /// Whether to request protobuf.
    pub(super) protobuf: bool,
}

/// Open watch.
#[derive(Debug)]
struct Watch {
    /// Events that are in transit.
    events: VecDeque<Event>,
    encoding: Encoding,
    /// Version up to which the history was sent.
    sent: u64,
    /// Number of times the server had been restored when the watch started. A further restore ends
    /// the watch.
    restored: u64,
}

/// Watch event: its type and its object.
type Event = (&'static str, Value);

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("part", &self.part)
            .field("engine", &self.engine)
            .field("action", &self.action)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn new(part: Part, sink: Box<dyn Sink>, form: Form, random: &mut Random) -> Self {
        let page_size = 1 + random.below(6) as u32;
        let seed = random.below(u64::MAX);
        Self {
            part,
            selects: form.selects,
            engine: Engine::new(Random::new(seed), page_size, form.protobuf),
            sink,
            action: Action::Yield,
            requested_at: 0,
            wakes: Duration::ZERO,
            watch: None,
            restored: 0,
            settled: None,
        }
    }

    /// Reports whether the informer stores `object` if this reflector reports it.
    pub(super) fn reads(&self, object: &Object) -> bool {
        self.covers(object.key.namespace, &object.uid) && self.part.has_owner(object.owners.iter())
    }

    /// Reports whether the reflector reports an object with this namespace and UID.
    pub(super) fn covers(&self, namespace: &str, uid: &str) -> bool {
        self.part.covers(Some(namespace), Some(uid))
    }

    pub(super) fn is_sharded(&self) -> bool {
        self.part.is_shared()
    }

    /// Reports whether the informer stores only objects with certain owners.
    pub(super) fn is_by_owner(&self) -> bool {
        self.part.by_owner
    }

    /// Returns the number of lists that the reflector has completed.
    pub(super) fn lists(&self) -> u64 {
        self.engine.counters().lists
    }

    /// Returns the last version that the reflector has seen.
    pub(super) fn version(&self) -> u64 {
        self.engine.version().parse().unwrap_or(0)
    }

    /// Reports whether the server lists this object.
    fn is_listed(&self, server: &Server, object: &Object) -> bool {
        self.is_sent(server, object) && (!self.selects || object.is_selected)
    }

    /// Reports whether the server sends this object. A server without support for shards also sends
    /// the objects of other shards.
    fn is_sent(&self, server: &Server, object: &Object) -> bool {
        match server.has_shards {
            true => self.covers(object.key.namespace, &object.uid),
            false => {
                let namespace = self.part.namespace.as_deref();
                namespace.is_none_or(|namespace| namespace == object.key.namespace)
            }
        }
    }

    pub(super) fn knows_restore(&self, restored: u64) -> bool {
        self.restored == restored
    }

    pub(super) fn is_settled(&self, server: &Server) -> bool {
        self.settled == Some(server.version) && self.knows_restore(server.restored())
    }

    /// Delivers to the reflector what the reflector requested last, or a failure.
    pub(super) fn turn(
        &mut self,
        now: &mut Duration,
        server: &mut Server,
        random: &mut Random,
        faults: bool,
    ) {
        let mut settles = None;
        let input = match self.action.clone() {
            Action::Yield => Input::Continue,
            Action::Sleep(_) if *now < self.wakes && faults => return,
            Action::Sleep(_) => {
                *now = (*now).max(self.wakes);
                Input::Continue
            }
            Action::List { .. } | Action::Watch { .. }
                if self.requested_at != server.restored() =>
            {
                Input::Failed(Failure::new("connection reset"))
            }
            Action::List { .. } | Action::Watch { .. } if faults && random.percent(15) => {
                Input::Failed(refusal(random))
            }
            Action::List {
                limit,
                continue_token,
                resource_version,
            } => self.list(server, limit, continue_token, &resource_version, random),
            Action::Watch {
                resource_version,
                send_initial_events,
                ..
            } => self.begin(server, &resource_version, send_initial_events, random),
            Action::Read { timeout } => {
                match self.read(now, timeout, server, random, faults, &mut settles) {
                    Some(input) => input,
                    // Nothing to deliver: the reflector continues to wait.
                    None => return,
                }
            }
        };
        if !matches!(input, Input::Event(_) | Input::Accepted(_)) {
            self.watch = None;
        }
        self.action = self.engine.step(*now, input, &mut *self.sink);
        self.requested_at = server.restored();
        if let Action::Sleep(delay) = self.action {
            self.wakes = *now + delay;
        }
        if !matches!(self.action, Action::Read { .. }) {
            self.watch = None;
            settles = None;
        }
        // A restore is noticed, or does not matter, once the reflector has no later version.
        if self.version() <= server.version {
            self.restored = server.restored();
        }
        self.settled = settles;
    }

    fn list(
        &self,
        server: &Server,
        limit: u32,
        continue_token: Option<String>,
        resource_version: &str,
        random: &mut Random,
    ) -> Input {
        if resource_version.parse().unwrap_or(0) > server.version {
            return Input::Failed(too_large());
        }
        // A token consists of the version of the first page, the end of the previous page, and the
        // number of restores.
        let (version, begin) = match &continue_token {
            None => (server.version, 0),
            Some(token) => {
                let parts: Vec<u64> = token.split('.').map(|part| part.parse().unwrap()).collect();
                if parts[0] < server.compacted || parts[2] != server.restored() {
                    return Input::Failed(failure(410));
                }
                (parts[0], parts[1] as usize)
            }
        };
        let objects = server.at(version);
        let objects: Vec<_> = objects
            .values()
            .filter(|o| self.is_listed(server, o))
            .collect();
        let end = match limit {
            0 => objects.len(),
            limit => objects.len().min(begin + limit as usize),
        };
        let items: Vec<_> = objects[begin.min(end)..end]
            .iter()
            .map(|object| object.json())
            .collect();
        let token = match end < objects.len() {
            true => format!("{version}.{end}.{}", server.restored()),
            false => String::new(),
        };
        let list = json!({
            "apiVersion": "v1",
            "kind": "ConfigMapList",
            "metadata": {"resourceVersion": version.to_string(), "continue": token},
            "items": items,
        });
        let encoding = self.encoding(random);
        Input::Page(Page {
            body: encoded(&list, encoding),
            encoding,
        })
    }

    /// Returns the encoding of the response. The server may respond with JSON even if protobuf was
    /// requested.
    fn encoding(&self, random: &mut Random) -> Encoding {
        match self.engine.protobuf() && random.percent(90) {
            true => Encoding::Protobuf,
            false => Encoding::Json,
        }
    }

    fn begin(
        &mut self,
        server: &Server,
        resource_version: &str,
        send_initial_events: bool,
        random: &mut Random,
    ) -> Input {
        let from = resource_version.parse::<u64>().ok();
        let mut events = VecDeque::new();
        let mut sent = from.unwrap_or(server.version);
        if send_initial_events && server.streaming == Streaming::Refuses {
            return Input::Failed(failure(400));
        }
        if from.is_some_and(|from| from > server.version) {
            if send_initial_events || random.percent(50) {
                return Input::Failed(too_large());
            }
            // The watch waits for that version, and only its bookmarks show the current version.
            events.push_back(bookmark(server.version, false));
        }
        if send_initial_events && server.streaming == Streaming::Has || from.is_none() {
            // A server that lags behind may respond at any version from the requested one.
            let behind = server.version - from.unwrap_or(server.version);
            let version = server.version - random.below(behind + 1);
            let mut objects: Vec<_> = server.at(version).into_values().collect();
            objects.retain(|object| self.is_listed(server, object));
            for n in (1..objects.len()).rev() {
                objects.swap(n, random.below(n as u64 + 1) as usize);
            }
            events.extend(objects.iter().map(|object| ("ADDED", object.json())));
            sent = version;
            if send_initial_events && server.streaming == Streaming::Has {
                // Changes during the list may be sent before its end.
                let until = version + random.below(server.version - version + 1);
                self.send(server, &mut events, &mut sent, until);
                events.push_back(bookmark(sent, true));
            }
        } else if sent < server.compacted {
            if random.percent(50) {
                return Input::Failed(failure(410));
            }
            events.push_back(error(410));
        } else if random.percent(10) {
            // An event that is already known is sent again.
            let again = server.after(sent.saturating_sub(1)).next();
            if let Some(again) = again.filter(|again| again.object.version == sent)
                && self.is_sent(server, &again.object)
                && let Some((change, object)) = again.reported(self.selects)
            {
                events.push_back(event(change, &object));
            }
        }
        let encoding = self.encoding(random);
        self.watch = Some(Watch {
            events,
            encoding,
            sent,
            restored: server.restored(),
        });
        Input::Accepted(encoding)
    }

    /// Sends the changes after `sent` up to the version `until`.
    fn send(&self, server: &Server, events: &mut VecDeque<Event>, sent: &mut u64, until: u64) {
        let after = server.after(*sent);
        for entry in after.take_while(|entry| entry.object.version <= until) {
            if self.is_sent(server, &entry.object)
                && let Some((change, object)) = entry.reported(self.selects)
            {
                events.push_back(event(change, &object));
            }
        }
        *sent = (*sent).max(until);
    }

    fn read(
        &mut self,
        now: &mut Duration,
        timeout: Duration,
        server: &Server,
        random: &mut Random,
        faults: bool,
        settles: &mut Option<u64>,
    ) -> Option<Input> {
        let Some(mut watch) = self.watch.take() else {
            return Some(Input::Failed(Failure::new("no watch")));
        };
        if watch.restored != server.restored() {
            return Some(Input::Failed(Failure::new("connection reset")));
        }
        if faults && let Some(fault) = fault(now, timeout, watch.encoding, random) {
            return Some(fault);
        }
        if watch.events.is_empty() {
            let lag = match faults {
                true => random.below(4),
                false => 0,
            };
            let until = server.version.saturating_sub(lag);
            let mut events = VecDeque::new();
            self.send(server, &mut events, &mut watch.sent, until);
            watch.events = events;
        }
        let event = match watch.events.pop_front() {
            Some(event) => Some(event),
            None if !faults || random.percent(30) => {
                let delivered = watch.sent.min(server.version);
                *settles = Some(delivered);
                Some(bookmark(delivered, false))
            }
            None => None,
        };
        let encoding = watch.encoding;
        self.watch = Some(watch);
        event.map(|event| Input::Event(frame(&event, encoding)))
    }
}

/// Returns a random fault of a watch, if any.
fn fault(
    now: &mut Duration,
    timeout: Duration,
    encoding: Encoding,
    random: &mut Random,
) -> Option<Input> {
    Some(match random.below(100) {
        // Incomplete events are dropped, so the position does not matter.
        0..3 => Input::Failed(Failure::new("connection reset")),
        3..5 => {
            *now += Duration::from_secs(random.below(3));
            Input::Ended
        }
        5 => {
            let code = [410, 429, 500, 504][random.below(4) as usize];
            Input::Event(frame(&error(code), encoding))
        }
        6 => {
            *now += timeout;
            Input::Silent
        }
        7 => Input::Event(Bytes::from_static(b"Bad Gateway")),
        _ => return None,
    })
}

fn event(change: Change, object: &Object) -> Event {
    let change = match change {
        Change::Added => "ADDED",
        Change::Modified => "MODIFIED",
        Change::Deleted => "DELETED",
    };
    (change, object.json())
}

fn bookmark(version: u64, ends_list: bool) -> Event {
    let mut meta = json!({"resourceVersion": version.to_string()});
    if ends_list {
        meta["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta});
    ("BOOKMARK", object)
}

fn error(code: u16) -> Event {
    let status = json!({"apiVersion": "v1", "kind": "Status", "code": code, "message": "as drawn"});
    ("ERROR", status)
}

/// Returns the bytes of an event as the server sends them.
fn frame((change, object): &Event, encoding: Encoding) -> Bytes {
    let object_bytes = encoded(object, encoding);
    match encoding {
        Encoding::Protobuf => {
            let parts = WatchEventParts {
                type_: change,
                object: &object_bytes,
            };
            parts.to_vec().into()
        }
        _ => format!(r#"{{"type":"{change}","object":{object}}}"#).into(),
    }
}

fn encoded(value: &Value, encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::Protobuf => protobuf::encode(value).unwrap().into(),
        _ => value.to_string().into(),
    }
}

fn failure(code: u16) -> Failure {
    Failure {
        code: Some(code),
        too_large: false,
        message: format!("as drawn ({code})"),
    }
}

fn too_large() -> Failure {
    Failure {
        too_large: true,
        ..failure(504)
    }
}

/// Returns a random failure that any request can have.
fn refusal(random: &mut Random) -> Failure {
    match random.below(8) {
        0 => failure(401),
        1 => failure(403),
        2 => failure(410),
        3 => failure(429),
        4 => failure(500),
        5 => failure(503),
        6 => failure(404),
        _ => Failure::new("connection refused"),
    }
}
