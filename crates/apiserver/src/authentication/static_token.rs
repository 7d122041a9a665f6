//! Bearer tokens that are known when the server starts, and tokens that the server issues to
//! callers in this process.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parking_lot::RwLock;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::Identity;
use crate::error::StartError;

/// A bearer token and its user.
#[derive(Clone, Eq, PartialEq)]
pub struct StaticToken {
    /// The token.
    pub token: String,
    /// Name of the user.
    pub user: String,
    /// UID of the user.
    pub uid: String,
    /// Groups of the user. The group `system:authenticated` is added to them.
    pub groups: Vec<String>,
}

impl StaticToken {
    /// Returns the tokens of a file in the format of `--token-auth-file`: lines of comma-separated
    /// values with token, user name, UID and, optionally, groups in double quotes.
    ///
    /// # Errors
    /// A message with the number of the first line that is not valid.
    ///
    /// # Examples
    /// ```
    /// use opkit_apiserver::StaticToken;
    ///
    /// let tokens = StaticToken::parse_file("secret,alice,1,\"dev,ops\"\n").unwrap();
    /// assert_eq!(tokens[0].user, "alice");
    /// assert_eq!(tokens[0].groups, ["dev", "ops"]);
    /// assert!(StaticToken::parse_file("secret,alice").is_err());
    /// ```
    pub fn parse_file(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(number, line)| {
                let fields = split(line);
                let [token, user, uid, groups @ ..] = fields.as_slice() else {
                    return Err(format!(
                        "line {}: a token needs at least the columns token, user name and UID, \
                         found {} columns",
                        number + 1,
                        fields.len()
                    ));
                };
                if token.is_empty() {
                    return Err(format!("line {}: the token is empty", number + 1));
                }
                let groups = groups.first().map(String::as_str).unwrap_or_default();
                let groups = groups.split(',').filter(|group| !group.is_empty());
                Ok(Self {
                    token: token.clone(),
                    user: user.clone(),
                    uid: uid.clone(),
                    groups: groups.map(str::to_owned).collect(),
                })
            })
            .collect()
    }
}

impl fmt::Debug for StaticToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StaticToken")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Returns the fields of a line of comma-separated values. A field in double quotes can contain
/// commas, and a double quote that is written twice.
fn split(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.trim_end().chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            ' ' if field.is_empty() && !quoted => {}
            char => field.push(char),
        }
    }
    fields.push(field);
    fields
}

type Digest = [u8; SHA256_OUTPUT_LEN];

/// The users of tokens. Tokens are looked up by their digest, so that the time of a lookup does not
/// depend on how much of a guessed token is right.
#[derive(Debug)]
pub(super) struct StaticTokens {
    users: RwLock<HashMap<Digest, Arc<Identity>>>,
}

impl StaticTokens {
    pub(super) fn new(tokens: &[StaticToken]) -> Self {
        let users = tokens.iter().filter_map(|token| {
            let mut identity = Identity::authenticated(&token.user, token.groups.clone());
            identity.uid.clone_from(&token.uid);
            Some((key(&token.token)?, Arc::new(identity)))
        });
        Self {
            users: RwLock::new(users.collect()),
        }
    }

    pub(super) fn get(&self, token: &str) -> Option<Arc<Identity>> {
        self.users.read().get(&key(token)?).cloned()
    }

    /// Creates a random token for a user.
    pub(super) fn issue(&self, identity: Identity) -> Result<String, StartError> {
        let mut bytes = [0; 24];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| StartError::Tls {
            cause: "the system gives no random numbers".into(),
        })?;
        let token = BASE64_URL_SAFE_NO_PAD.encode(bytes);
        if let Some(key) = key(&token) {
            self.users.write().insert(key, Arc::new(identity));
        }
        Ok(token)
    }
}

fn key(token: &str) -> Option<Digest> {
    digest(&SHA256, token.as_bytes()).as_ref().try_into().ok()
}
