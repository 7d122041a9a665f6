//! Keys that sign ServiceAccount tokens and verify them: RSA, and ECDSA with the curves P-256 and
//! P-384.

use std::fmt;
use std::io::Cursor;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _, RsaKeyPair,
    UnparsedPublicKey,
};
use rustls::pki_types::pem::{self, SectionKind};
use serde_json::{Value, json};

use crate::authentication::certificate;
use crate::authentication::der::{self, Reader, tag};

/// Object identifiers of key types, in DER.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

/// The signature algorithms of the keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
    Es384,
}

impl Algorithm {
    /// Returns the name of the algorithm in the header of a token.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        }
    }

    fn of_curve(curve: &[u8]) -> Result<Self, String> {
        match curve {
            P256 => Ok(Self::Es256),
            P384 => Ok(Self::Es384),
            _ => Err("only the curves P-256 and P-384 are supported".to_owned()),
        }
    }

    fn ecdsa(self) -> &'static EcdsaSigningAlgorithm {
        match self {
            Self::Es384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
            Self::Rs256 | Self::Es256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
        }
    }
}

/// A public key.
#[derive(Clone, Debug)]
pub(super) struct PublicKey {
    pub(super) algorithm: Algorithm,
    /// Digest of the key, by which tokens name their key.
    pub(super) id: String,
    /// The point of an ECDSA key, or the modulus and exponent of an RSA key in PKCS #1.
    key: Vec<u8>,
}

impl PublicKey {
    fn new(algorithm: Algorithm, key: &[u8]) -> Self {
        let curve = match algorithm {
            Algorithm::Rs256 => None,
            Algorithm::Es256 => Some(P256),
            Algorithm::Es384 => Some(P384),
        };
        let type_ = match curve {
            None => [der::value(tag::OBJECT_IDENTIFIER, RSA), vec![0x05, 0x00]].concat(),
            Some(curve) => [
                der::value(tag::OBJECT_IDENTIFIER, EC),
                der::value(tag::OBJECT_IDENTIFIER, curve),
            ]
            .concat(),
        };
        let bits = [&[0], key].concat();
        let info = [
            der::value(tag::SEQUENCE, &type_),
            der::value(tag::BIT_STRING, &bits),
        ];
        let info = der::value(tag::SEQUENCE, &info.concat());
        Self {
            algorithm,
            id: BASE64.encode(digest(&SHA256, &info)),
            key: key.to_vec(),
        }
    }

    /// Reads a `SubjectPublicKeyInfo`.
    fn parse(info: &[u8]) -> Option<Self> {
        let mut info = Reader(Reader(info).expect(tag::SEQUENCE)?);
        let mut type_ = Reader(info.expect(tag::SEQUENCE)?);
        let key = info.expect(tag::BIT_STRING)?.split_first()?.1;
        let algorithm = match type_.expect(tag::OBJECT_IDENTIFIER)? {
            RSA => Algorithm::Rs256,
            EC => Algorithm::of_curve(type_.expect(tag::OBJECT_IDENTIFIER)?).ok()?,
            _ => return None,
        };
        Some(Self::new(algorithm, key))
    }

    /// Reports whether `signature` is the signature of `message` with this key.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn signature::VerificationAlgorithm = match self.algorithm {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &ECDSA_P384_SHA384_FIXED,
        };
        let key = UnparsedPublicKey::new(algorithm, &self.key);
        key.verify(message, signature).is_ok()
    }

    /// Returns the key as a JSON Web Key, or `None` if the key is not valid.
    pub(super) fn to_jwk(&self) -> Option<Value> {
        let mut jwk = json!({"use": "sig", "kid": self.id, "alg": self.algorithm.name()});
        let fields = match self.algorithm {
            Algorithm::Rs256 => {
                let mut key = Reader(Reader(&self.key).expect(tag::SEQUENCE)?);
                let mut number = || {
                    let number = key.expect(tag::INTEGER)?;
                    // A leading zero says only that the number is positive.
                    let number = number.strip_prefix(&[0]).unwrap_or(number);
                    Some(BASE64.encode(number))
                };
                let (modulus, exponent) = (number()?, number()?);
                json!({"kty": "RSA", "n": modulus, "e": exponent})
            }
            Algorithm::Es256 | Algorithm::Es384 => {
                let point = self.key.split_first()?.1;
                let (x, y) = point.split_at_checked(point.len() / 2)?;
                let curve = match self.algorithm {
                    Algorithm::Es384 => "P-384",
                    _ => "P-256",
                };
                json!({"kty": "EC", "crv": curve, "x": BASE64.encode(x), "y": BASE64.encode(y)})
            }
        };
        let map = jwk.as_object_mut()?;
        map.extend(fields.as_object()?.clone());
        Some(jwk)
    }
}

/// A private key.
enum PrivateKey {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(Box<EcdsaKeyPair>),
}

/// The key that signs tokens.
pub(super) struct SigningKey {
    key: PrivateKey,
    pub(super) public: PublicKey,
}

impl SigningKey {
    /// Creates a new key: ECDSA with the curve P-256.
    pub(super) fn generate() -> Result<Self, String> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new())
            .map_err(|_| "the system gives no random numbers".to_owned())?;
        Self::from_pkcs8(document.as_ref())
    }

    /// Reads a private key as PEM.
    pub(super) fn from_pem(text: &str) -> Result<Self, String> {
        for (kind, der) in sections(text)? {
            return match kind {
                SectionKind::PrivateKey => Self::from_pkcs8(&der),
                SectionKind::RsaPrivateKey => Self::of_rsa(RsaKeyPair::from_der(&der)),
                SectionKind::EcPrivateKey => Self::from_sec1(&der),
                _ => continue,
            };
        }
        Err("there is no private key in the text".to_owned())
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, String> {
        let read = || {
            let mut info = Reader(Reader(der).expect(tag::SEQUENCE)?);
            info.expect(tag::INTEGER)?;
            let mut type_ = Reader(info.expect(tag::SEQUENCE)?);
            let identifier = type_.expect(tag::OBJECT_IDENTIFIER)?;
            Some((identifier, type_.expect(tag::OBJECT_IDENTIFIER)))
        };
        match read() {
            Some((RSA, _)) => Self::of_rsa(RsaKeyPair::from_pkcs8(der)),
            Some((EC, Some(curve))) => {
                let algorithm = Algorithm::of_curve(curve)?;
                let random = SystemRandom::new();
                let pair = EcdsaKeyPair::from_pkcs8(algorithm.ecdsa(), der, &random);
                Self::of_ecdsa(algorithm, pair)
            }
            _ => Err("the private key is neither RSA nor ECDSA".to_owned()),
        }
    }

    fn from_sec1(der: &[u8]) -> Result<Self, String> {
        let read = || {
            let mut key = Reader(Reader(der).expect(tag::SEQUENCE)?);
            key.expect(tag::INTEGER)?;
            let private = key.expect(tag::OCTET_STRING)?;
            let curve = Reader(key.expect(tag::CONTEXT_0)?).expect(tag::OBJECT_IDENTIFIER)?;
            let public = Reader(key.expect(tag::CONTEXT_1)?).expect(tag::BIT_STRING)?;
            Some((private, curve, public.split_first()?.1))
        };
        let (private, curve, public) = read().ok_or_else(|| {
            "the ECDSA key has no curve or no public key; convert it to PKCS #8".to_owned()
        })?;
        let algorithm = Algorithm::of_curve(curve)?;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            algorithm.ecdsa(),
            private,
            public,
            &SystemRandom::new(),
        );
        Self::of_ecdsa(algorithm, pair)
    }

    fn of_rsa(pair: Result<RsaKeyPair, ring::error::KeyRejected>) -> Result<Self, String> {
        let pair = pair.map_err(|error| format!("the RSA key is refused: {error}"))?;
        Ok(Self {
            public: PublicKey::new(Algorithm::Rs256, pair.public().as_ref()),
            key: PrivateKey::Rsa(Box::new(pair)),
        })
    }

    fn of_ecdsa(
        algorithm: Algorithm,
        pair: Result<EcdsaKeyPair, ring::error::KeyRejected>,
    ) -> Result<Self, String> {
        let pair = pair.map_err(|error| format!("the ECDSA key is refused: {error}"))?;
        Ok(Self {
            public: PublicKey::new(algorithm, pair.public_key().as_ref()),
            key: PrivateKey::Ecdsa(Box::new(pair)),
        })
    }

    /// Returns the signature of `message`.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let fail = |_| "the token cannot be signed".to_owned();
        match &self.key {
            PrivateKey::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding = &signature::RSA_PKCS1_SHA256;
                pair.sign(padding, &random, message, &mut signature)
                    .map_err(fail)?;
                Ok(signature)
            }
            PrivateKey::Ecdsa(pair) => {
                let signature = pair.sign(&random, message).map_err(fail)?;
                Ok(signature.as_ref().to_vec())
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SigningKey")
            .field("id", &self.public.id)
            .finish_non_exhaustive()
    }
}

/// Returns the public keys in a PEM text, which can contain public and private keys, and
/// certificates.
pub(super) fn public_keys(text: &str) -> Result<Vec<PublicKey>, String> {
    let unknown = || "a public key is neither RSA nor ECDSA".to_owned();
    let mut keys = Vec::new();
    for (kind, der) in sections(text)? {
        let key = match kind {
            SectionKind::PublicKey => PublicKey::parse(&der).ok_or_else(unknown)?,
            SectionKind::Certificate => certificate::public_key(&der)
                .and_then(|key| PublicKey::parse(&key))
                .ok_or_else(unknown)?,
            SectionKind::PrivateKey => SigningKey::from_pkcs8(&der)?.public,
            SectionKind::RsaPrivateKey => SigningKey::of_rsa(RsaKeyPair::from_der(&der))?.public,
            SectionKind::EcPrivateKey => SigningKey::from_sec1(&der)?.public,
            _ => continue,
        };
        keys.push(key);
    }
    match keys.is_empty() {
        true => Err("there is no key in the text".to_owned()),
        false => Ok(keys),
    }
}

fn sections(text: &str) -> Result<Vec<(SectionKind, Vec<u8>)>, String> {
    let mut reader = Cursor::new(text.as_bytes());
    let mut found = Vec::new();
    while let Some(section) = pem::from_buf(&mut reader).map_err(|error| format!("{error:?}"))? {
        found.push(section);
    }
    Ok(found)
}
