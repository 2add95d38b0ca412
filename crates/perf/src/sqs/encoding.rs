//! Bytes as text: percent escapes, hexadecimal digits, MD5.

use md5::{Digest, Md5};

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` with all bytes escaped but RFC 3986's unreserved ones and those of `keep`: how
/// both signatures want it, and a valid form.
pub(super) fn percent_encode(text: &str, keep: &[u8], out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || keep.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(UPPER[usize::from(byte >> 4)]));
            out.push(char::from(UPPER[usize::from(byte & 15)]));
        }
    }
}

/// Name and value pairs as a form: `a=1&b=x%20y`.
pub(super) fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::with_capacity(256);
    for (name, value) in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        percent_encode(name, b"", &mut out);
        out.push('=');
        percent_encode(value, b"", &mut out);
    }
    out
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [LOWER[usize::from(byte >> 4)], LOWER[usize::from(byte & 15)]];
    bytes.iter().flat_map(digits).map(char::from).collect()
}

/// The MD5 of a message's body, as SQS writes it.
pub(super) fn md5_hex(body: &str) -> String {
    hex(&Md5::digest(body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_escapes_all_but_unreserved_characters() {
        let pairs = [("a b", "1+1=2"), ("ü", "~-_.*/")];
        assert_eq!(form(pairs), "a%20b=1%2B1%3D2&%C3%BC=~-_.%2A%2F");
    }

    #[test]
    fn md5_is_that_of_rfc_1321() {
        assert_eq!(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
    }
}
