//! SASL mechanisms: PLAIN (RFC 4616) and AMQPLAIN (a field table with LOGIN and PASSWORD).

use amqp::Table;

/// The mechanisms offered, in order of preference.
pub(crate) const MECHANISMS: &str = "PLAIN AMQPLAIN";

/// Name and password out of a response.
#[derive(Debug)]
pub(crate) struct Credentials<'a> {
    pub user: &'a str,
    pub password: &'a [u8],
}

/// Why a response yields no credentials.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadResponse {
    /// No such mechanism here.
    UnknownMechanism,
    /// The response is not what the mechanism demands.
    Malformed,
}

/// Takes a response apart.
pub(crate) fn credentials<'a>(
    mechanism: &[u8],
    response: &'a [u8],
) -> Result<Credentials<'a>, BadResponse> {
    match mechanism {
        b"PLAIN" => plain(response).ok_or(BadResponse::Malformed),
        b"AMQPLAIN" => amqplain(response).ok_or(BadResponse::Malformed),
        _ => Err(BadResponse::UnknownMechanism),
    }
}

/// `NUL name NUL password`; acting for another identity is not offered.
fn plain(response: &[u8]) -> Option<Credentials<'_>> {
    let mut parts = response.strip_prefix(&[0])?.splitn(2, |byte| *byte == 0);
    let user = std::str::from_utf8(parts.next()?).ok()?;
    Some(Credentials {
        user,
        password: parts.next()?,
    })
}

fn amqplain(response: &[u8]) -> Option<Credentials<'_>> {
    let table = Table::from_wire(response);
    let user = std::str::from_utf8(table.get("LOGIN")?.as_long_str()?).ok()?;
    Some(Credentials {
        user,
        password: table.get("PASSWORD")?.as_long_str()?,
    })
}

#[cfg(test)]
mod tests {
    use amqp::FieldTable;

    use super::*;

    #[test]
    fn plain_takes_the_parts_between_nuls() {
        let found = credentials(b"PLAIN", b"\0guest\0se\0cret").expect("well-formed");
        assert_eq!((found.user, found.password), ("guest", &b"se\0cret"[..]));
        assert!(credentials(b"PLAIN", b"other\0guest\0guest").is_err());
        assert!(credentials(b"PLAIN", b"guest").is_err());
        assert!(credentials(b"PLAIN", b"\0guest").is_err());
        assert!(credentials(b"PLAIN", b"").is_err());
    }

    #[test]
    fn amqplain_takes_login_and_password() {
        let response = FieldTable::new()
            .with("LOGIN", "guest")
            .with("PASSWORD", "secret")
            .encode();
        let found = credentials(b"AMQPLAIN", &response).expect("well-formed");
        assert_eq!((found.user, found.password), ("guest", &b"secret"[..]));
        assert!(credentials(b"AMQPLAIN", &response[..10]).is_err());
    }

    #[test]
    fn other_mechanisms_are_unknown() {
        assert_eq!(
            credentials(b"plain", b"").err(),
            Some(BadResponse::UnknownMechanism)
        );
    }
}
