use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::*;

pub(crate) const NAME: &str = "op-webhook-service.ops.svc";
const DAY: i64 = 86_400;

/// Certificates whose times are in days since 1970.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    pub(crate) serving: String,
}

pub(crate) fn day(day: i64) -> Timestamp {
    Timestamp::from_second(day * DAY).unwrap()
}

fn set(params: &mut CertificateParams, (from, until): (i64, i64)) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let after = |days: i64| Duration::from_secs(u64::try_from(days * DAY).unwrap());
    params.not_before = epoch + after(from);
    params.not_after = epoch + after(until);
}

/// Creates an authority, and a serving certificate for `name`.
pub(crate) fn issue(name: &str, authority: (i64, i64), serving: (i64, i64)) -> Certificates {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    set(&mut params, authority);
    let key = KeyPair::generate().unwrap();
    let signed = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    set(&mut params, serving);
    let key = KeyPair::generate().unwrap();
    Certificates {
        authority: signed.pem(),
        serving: params.signed_by(&key, &issuer).unwrap().pem(),
    }
}

#[test]
fn a_certificate_is_verified_with_bundle_name_and_time() {
    let one = issue(NAME, (100, 465), (100, 190));
    let other = issue(NAME, (100, 465), (100, 190));
    let verify = |bundle: &str, name, now| verify(&one.serving, bundle, name, day(now));
    assert_eq!(verify(&one.authority, NAME, 150), Ok(()));
    // A rotation has both authorities in the bundle.
    let both = format!("{}{}", other.authority, one.authority);
    assert_eq!(verify(&both, NAME, 150), Ok(()));
    assert_eq!(
        verify(&other.authority, NAME, 150),
        Err(Refusal::UnknownAuthority)
    );
    assert_eq!(
        verify(&one.authority, "other.ops.svc", 150),
        Err(Refusal::OtherName)
    );
    assert_eq!(verify(&one.authority, NAME, 191), Err(Refusal::Expired));
    assert_eq!(verify(&one.authority, NAME, 99), Err(Refusal::NotYet));
    assert_eq!(
        verify("", NAME, 150),
        Err(Refusal::Unreadable("the caBundle"))
    );
}

#[test]
fn the_validity_of_each_certificate_is_read() {
    let one = issue(NAME, (100, 465), (120, 190));
    let read = |pem: &str| -> Vec<(i64, i64)> {
        let all = validities(pem).into_iter();
        all.map(|it| (it.from / DAY, it.until / DAY)).collect()
    };
    assert_eq!(read(&one.serving), [(120, 190)]);
    assert_eq!(read(&one.authority), [(100, 465)]);
    assert_eq!(read("no certificate"), []);
}
