//! URLs, parsed by the rules of Go's `net/url`.

use std::fmt;
use std::sync::Arc;

use super::format_string::quote;
use super::{Function, no_overload};
use crate::value::{Fault, Map, Object, Outcome, Value};

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// Part before the host, with the `@`.
    user: String,
    host: String,
    /// Part behind the scheme of a URL without slashes, such as `mailto:a@b`.
    opaque: String,
    path: String,
    query: Option<String>,
    fragment: String,
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "url" => url,
        "isURL" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse(text, true).is_ok())),
            _ => Err(no_overload("isURL", args)),
        },
        "getScheme" => |args| part(args, "getScheme", |url| url.scheme.clone()),
        "getHost" => |args| part(args, "getHost", |url| url.host.clone()),
        "getHostname" => |args| part(args, "getHostname", |url| url.host_and_port().0.to_owned()),
        "getPort" => |args| part(args, "getPort", |url| url.host_and_port().1.to_owned()),
        "getEscapedPath" => |args| part(args, "getEscapedPath", |url| escaped_path(&url.path)),
        "getQuery" => query,
        _ => return None,
    })
}

fn url<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else {
        return Err(no_overload("url", args));
    };
    let failed = |message| {
        Fault::new(format!(
            "URL parse error during conversion from string: {message}"
        ))
    };
    parse(text, true).map_err(failed)?;
    let url = parse(text, false).map_err(failed)?;
    Ok(Value::Object(Object::Url(Arc::new(url))))
}

fn part<'a>(args: &[Value<'a>], name: &str, of: fn(&Url) -> String) -> Outcome<'a> {
    match args {
        [Value::Object(Object::Url(url))] => Ok(Value::text(of(url))),
        _ => Err(no_overload(name, args)),
    }
}

fn query<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Object(Object::Url(url))] = args else {
        return Err(no_overload("getQuery", args));
    };
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    let query = url.query.as_deref().unwrap_or_default();
    for pair in query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
    {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (form_text(key), form_text(value)) else {
            continue;
        };
        match entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => entries.push((key, vec![value])),
        }
    }
    let entries = entries
        .into_iter()
        .map(|(key, values)| (Value::text(key), Value::texts(values)));
    Map::new(entries.collect()).map(Value::Map)
}

fn form_text(text: &str) -> Option<String> {
    let bytes = unescape(&text.replace('+', " ")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses a URL. A request URI has no fragment and is absolute or a path.
///
/// # Errors
/// Returns the error in Go's words.
pub(super) fn parse(text: &str, is_request: bool) -> Result<Url, String> {
    let (rest, fragment) = match text.split_once('#') {
        Some((rest, fragment)) if !is_request => (rest, fragment),
        _ => (text, ""),
    };
    let parsed = parse_parts(rest, is_request);
    let mut url = parsed.map_err(|why| format!("parse {}: {why}", quote(text)))?;
    unescape(fragment).map_err(|why| format!("parse {}: {why}", quote(text)))?;
    url.fragment = fragment.to_owned();
    Ok(url)
}

fn parse_parts(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let (scheme, rest) = split_scheme(text)?;
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        user: String::new(),
        host: String::new(),
        opaque: String::new(),
        path: String::new(),
        query: None,
        fragment: String::new(),
    };
    if text == "*" {
        url.path = "*".to_owned();
        return Ok(url);
    }
    let mut rest = match rest.split_once('?') {
        Some((rest, query)) => {
            url.query = Some(query.to_owned());
            rest
        }
        None => rest,
    };
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !url.scheme.is_empty() || !is_request && !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, path) = after.split_at_checked(end).unwrap_or((after, ""));
        parse_authority(authority, &mut url)?;
        rest = path;
    }
    unescape(rest)?;
    url.path = rest.to_owned();
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => {
                let rest = text.get(index + 1..).unwrap_or_default();
                return Ok((text.get(..index).unwrap_or_default(), rest));
            }
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str, url: &mut Url) -> Result<(), String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(is_valid) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            unescape(user)?;
            url.user = format!("{user}@");
            host
        }
        None => authority,
    };
    let port = match host.strip_prefix('[') {
        Some(inner) => match inner.rsplit_once(']') {
            Some((_, port)) => port,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => host
            .rfind(':')
            .and_then(|at| host.get(at..))
            .unwrap_or_default(),
    };
    let is_port = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()),
        None => port.is_empty(),
    };
    if !is_port {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    let is_host = |c: char| {
        c.is_ascii_alphanumeric() || !c.is_ascii() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c)
    };
    if let Some(wrong) = host.chars().find(|c| !is_host(*c)) {
        let wrong = quote(&wrong.to_string());
        return Err(format!("invalid character {wrong} in host name"));
    }
    let bytes = unescape(host)?;
    url.host = String::from_utf8_lossy(&bytes).into_owned();
    Ok(())
}

/// Replaces the escape sequences of a part of a URL.
fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => bytes.push(byte),
            None => {
                let wrong = String::from_utf8_lossy(rest.get(..3).unwrap_or(rest)).into_owned();
                return Err(format!("invalid URL escape {}", quote(&wrong)));
            }
        }
        rest = after.get(2..).unwrap_or_default();
    }
    Ok(bytes)
}

/// Returns the escaped form of a path: the path as it is written if its escapes are valid, or the
/// default escapes.
fn escaped_path(path: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    if path
        .bytes()
        .all(|b| is_plain(b) || b"!'()*[]%".contains(&b))
    {
        return path.to_owned();
    }
    let bytes = unescape(path).unwrap_or_default();
    let mut escaped = String::with_capacity(path.len());
    for byte in bytes {
        match is_plain(byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

impl Url {
    fn host_and_port(&self) -> (&str, &str) {
        let host = &self.host;
        let (name, port) = match host.rfind(':') {
            Some(at) if !host.ends_with(']') => (
                host.get(..at).unwrap_or_default(),
                host.get(at + 1..).unwrap_or_default(),
            ),
            _ => (host.as_str(), ""),
        };
        let name = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        (name, port)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            f.write_str(&self.opaque)?;
        } else {
            if !self.scheme.is_empty() || !self.host.is_empty() || !self.user.is_empty() {
                let has_authority = !self.host.is_empty() || !self.user.is_empty();
                if has_authority || self.path.starts_with("//") {
                    write!(f, "//{}{}", self.user, self.host)?;
                }
            }
            f.write_str(&escaped_path(&self.path))?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        match self.fragment.as_str() {
            "" => Ok(()),
            fragment => write!(f, "#{fragment}"),
        }
    }
}
