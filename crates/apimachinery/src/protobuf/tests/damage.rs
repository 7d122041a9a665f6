//! Damaged bytes return an error or a value, and never cause a panic.

use serde::de::IgnoredAny;

use super::*;

/// Decodes bytes with every function, and reports whether they are an object.
fn read_all(bytes: &[u8]) -> bool {
    let object = decode(bytes);
    if let Err(error) = &object {
        assert!(!error.to_string().is_empty());
    }
    let raw = match envelope(bytes) {
        Ok(envelope) => envelope.raw,
        Err(_) => bytes,
    };
    if let Ok(list) = ListParts::read(raw) {
        let total: usize = list.items().map(<[u8]>::len).sum();
        assert!(total <= raw.len());
    }
    if let Ok(event) = WatchEventParts::read(bytes) {
        assert!(event.object.len() <= bytes.len());
    }
    let message = MessageType::of("v1", "PodList").unwrap();
    let _ = Value::deserialize(Deserializer::new(message, raw));
    let _ = IgnoredAny::deserialize(Deserializer::new(message, raw));
    object.is_ok()
}

fn damage(random: &mut Random, body: &[u8]) -> Vec<u8> {
    let mut damaged = body.to_vec();
    for _ in 0..=random.below(4) {
        if damaged.is_empty() {
            break;
        }
        let at = random.below(damaged.len() as u64) as usize;
        match random.below(6) {
            0 => damaged[at] = random.below(256) as u8,
            1 => damaged[at] ^= 1 << random.below(8),
            2 => drop(damaged.splice(at..=at, [0xff, random.below(256) as u8])),
            // Another wire type in a byte that may be a tag.
            3 => damaged[at] = damaged[at] & !7 | random.below(8) as u8,
            // A length of many gigabytes in a byte that may be a length.
            4 => drop(damaged.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0x7f])),
            _ => damaged.truncate(at),
        }
    }
    damaged
}

#[test]
fn damaged_bodies_never_panic() {
    let mut random = Random::new(42);
    let mut bodies: Vec<Vec<u8>> = bodies().into_iter().map(|(body, _)| body).collect();
    let responses = include_str!("../../../testdata/protobuf-responses.txt");
    // Long bodies are slow without optimization, and have no field that the others lack.
    bodies.extend(
        recorded(responses)
            .into_iter()
            .map(|(body, _)| body)
            .filter(|body| body.len() < 1_200),
    );
    let (mut read, mut refused) = (0, 0);
    for _ in 0..16_000 {
        let body = random.one_of(&bodies).unwrap().clone();
        // The magic bytes stay, or the rest would not be decoded.
        let damaged = [MAGIC, &damage(&mut random, &body[MAGIC.len()..])].concat();
        match read_all(&damaged) {
            true => read += 1,
            false => refused += 1,
        }
    }
    // Both must occur: otherwise the damage was too large or too small to test anything.
    assert!(
        read > 1_000 && refused > 1_000,
        "{read} read, {refused} refused"
    );
}

#[test]
fn truncated_bodies_never_panic() {
    for (body, _) in bodies() {
        for length in 0..body.len() {
            read_all(&body[..length]);
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(7);
    for case in 0..4_000 {
        let length = random.below(200);
        let noise: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        match case % 4 {
            0 => read_all(&noise),
            1 => read_all(&[MAGIC, &noise].concat()),
            2 => read_all(&enveloped("v1", "Pod", &noise)),
            _ => read_all(&enveloped("v1", "PodList", &noise)),
        };
    }
}

#[test]
fn envelopes_inside_of_envelopes_have_a_limit() {
    let mut body = enveloped("v1", "Namespace", b"");
    for _ in 0..300 {
        // Field 2 of a ControllerRevision is a RawExtension, whose field 1 is the object.
        let data = field(2, &field(1, &body));
        body = enveloped("apps/v1", "ControllerRevision", &data);
    }
    let error = decode(&body).unwrap_err().to_string();
    assert!(error.contains("nested deeper than 128 messages"), "{error}");
}
