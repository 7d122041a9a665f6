//! The ring as the text of an annotation.

use serde_json::{Value, json};

use super::{Member, Ring, SLOTS_MAX};

/// The reason why the annotation of a ring cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RingError {
    /// The annotation is not JSON.
    #[error("it is not valid JSON")]
    NotJson,
    /// A field is missing or has another type.
    #[error("the field {0} is missing or not valid")]
    Field(&'static str),
    /// The owners do not fit the members.
    #[error("the owners {0:?} are not runs of members, such as 0*4,1*3,-*1")]
    Owners(String),
    /// The number of slots is not valid.
    #[error("the number of slots, {0}, is not a power of two up to {SLOTS_MAX}")]
    Slots(usize),
}

impl Ring {
    /// Returns the text of the ring. Owners are runs: `0*4,1*3,-*1` for four slots of the first
    /// member, three of the second and one without an owner.
    pub(crate) fn to_text(&self) -> String {
        let members = self.members.iter();
        let members = members.map(|member| {
            let mut value = json!({
                "identity": member.identity,
                "incarnation": member.incarnation,
            });
            if let (true, Some(fields)) = (member.leaving, value.as_object_mut()) {
                fields.insert("leaving".to_owned(), json!(true));
            }
            value
        });
        let mut owners = String::new();
        for run in self.owners.chunk_by(|left, right| left == right) {
            let comma = if owners.is_empty() { "" } else { "," };
            let owner = match run.first() {
                Some(Some(index)) => index.to_string(),
                _ => "-".to_owned(),
            };
            owners.push_str(&format!("{comma}{owner}*{}", run.len()));
        }
        let members: Vec<_> = members.collect();
        json!({"revision": self.revision, "members": members, "owners": owners}).to_string()
    }

    /// Reads the text of a ring.
    pub(crate) fn parse(text: &str) -> Result<Self, RingError> {
        let value: Value = serde_json::from_str(text).map_err(|_| RingError::NotJson)?;
        let revision = value.get("revision").and_then(Value::as_u64);
        let revision = revision.ok_or(RingError::Field("revision"))?;
        let members = value.get("members").and_then(Value::as_array);
        let members = members.ok_or(RingError::Field("members"))?;
        let members: Option<Vec<_>> = members.iter().map(member).collect();
        let members = members.ok_or(RingError::Field("members"))?;
        let text = value.get("owners").and_then(Value::as_str);
        let text = text.ok_or(RingError::Field("owners"))?;
        let mut owners = Vec::new();
        for run in text.split(',').filter(|run| !run.is_empty()) {
            let run = parse_run(run).filter(|(owner, _)| owner.is_none_or(|it| it < members.len()));
            let (owner, length) = run.ok_or_else(|| RingError::Owners(text.to_owned()))?;
            if owners.len() + length > SLOTS_MAX as usize {
                return Err(RingError::Slots(owners.len() + length));
            }
            owners.extend(std::iter::repeat_n(owner, length));
        }
        if !owners.len().is_power_of_two() {
            return Err(RingError::Slots(owners.len()));
        }
        Ok(Self {
            revision,
            members,
            owners,
        })
    }
}

fn member(value: &Value) -> Option<Member> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Member {
        identity: text("identity")?,
        incarnation: text("incarnation")?,
        leaving: value.get("leaving").and_then(Value::as_bool) == Some(true),
    })
}

/// Reads a run, such as `0*4` or `-*1`.
fn parse_run(run: &str) -> Option<(Option<usize>, usize)> {
    let (owner, length) = run.split_once('*')?;
    let owner = match owner {
        "-" => None,
        owner => Some(owner.parse().ok()?),
    };
    let length: usize = length.parse().ok()?;
    (1..=SLOTS_MAX as usize)
        .contains(&length)
        .then_some((owner, length))
}
