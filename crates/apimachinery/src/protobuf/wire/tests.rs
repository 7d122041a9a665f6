use super::*;

fn check(bytes: &[u8], expected: &[(u32, Datum<'_>)]) {
    let fields: Result<Vec<_>, WireError> = Reader::new(bytes).collect();
    assert_eq!(fields.as_deref(), Ok(expected));
}

fn check_error(bytes: &[u8], expected: &str) {
    let fields: Result<Vec<_>, WireError> = Reader::new(bytes).collect();
    assert_eq!(fields.unwrap_err().to_string(), expected);
}

#[test]
fn every_wire_type() {
    check(&[], &[]);
    check(&[0x08, 0x96, 0x01], &[(1, Datum::Varint(150))]);
    check(&[0x09, 1, 0, 0, 0, 0, 0, 0, 0], &[(1, Datum::Fixed64(1))]);
    check(&[0x0d, 1, 0, 0, 0], &[(1, Datum::Fixed32)]);
    check(
        &[0x0a, 1, b'a', 0x12, 0],
        &[(1, Datum::Bytes(b"a")), (2, Datum::Bytes(b""))],
    );
    // Field 28 takes two bytes.
    check(&[0xe2, 0x01, 0], &[(28, Datum::Bytes(b""))]);
}

#[test]
fn varints_have_64_bits() {
    let most = [
        0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
    ];
    check(&most, &[(1, Datum::Varint(u64::MAX))]);
    let more = [
        0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02,
    ];
    check_error(&more, "has a varint of more than 64 bits");
}

#[test]
fn garbage() {
    check_error(&[0x80], "ends inside of a varint");
    check_error(&[0x09, 1], "ends inside of a fixed number");
    check_error(
        &[0x0a, 2, 0],
        "field 1 has a length of 2, but 1 bytes are left",
    );
    check_error(&[0x02, 0], "has the invalid field number 0");
    check_error(&[0x0b], "field 1 has the unsupported wire type 3");
}
