//! Password hashes in RabbitMQ's format: base64(salt ‖ SHA-256(salt ‖ password)), a 4-byte salt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const SALT_LEN: usize = 4;

/// A salted hash, or none: nobody logs in with a password then.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Option<Salted>);

#[derive(Clone, PartialEq, Eq)]
struct Salted {
    salt: [u8; SALT_LEN],
    digest: [u8; 32],
}

impl PasswordHash {
    /// Hashes with a fresh salt.
    pub fn new(password: &str) -> Self {
        let mut salt = [0; SALT_LEN];
        getrandom::fill(&mut salt).expect("the system has randomness");
        Self::salted(salt, password.as_bytes())
    }

    /// That of a user who cannot log in with a password.
    pub fn none() -> Self {
        PasswordHash(None)
    }

    fn salted(salt: [u8; SALT_LEN], password: &[u8]) -> Self {
        let digest = Sha256::new()
            .chain_update(salt)
            .chain_update(password)
            .finalize()
            .into();
        PasswordHash(Some(Salted { salt, digest }))
    }

    /// True for the password that was hashed. Takes the same time wherever they differ.
    pub fn verify(&self, password: &[u8]) -> bool {
        let Some(own) = &self.0 else { return false };
        let given = Sha256::new()
            .chain_update(own.salt)
            .chain_update(password)
            .finalize();
        given
            .iter()
            .zip(&own.digest)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
    }

    /// From the form that definitions files hold, which is empty where there is no password.
    pub fn from_base64(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::none());
        }
        let bytes = STANDARD.decode(text).ok()?;
        let (salt, digest) = bytes.split_first_chunk()?;
        Some(PasswordHash(Some(Salted {
            salt: *salt,
            digest: digest.try_into().ok()?,
        })))
    }

    /// As definitions files hold it.
    pub fn to_base64(&self) -> String {
        match &self.0 {
            Some(own) => STANDARD.encode([&own.salt[..], &own.digest].concat()),
            None => String::new(),
        }
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_rabbitmqs() {
        // The example of RabbitMQ's page on passwords: salt 908DC60A, password "test12".
        let hash = PasswordHash::salted([0x90, 0x8D, 0xC6, 0x0A], b"test12");
        assert_eq!(
            hash.to_base64(),
            "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
        );
        assert!(PasswordHash::from_base64(&hash.to_base64()) == Some(hash.clone()));
        assert!(hash.verify(b"test12"));
        assert!(!hash.verify(b"test13") && !hash.verify(b""));
    }
}
