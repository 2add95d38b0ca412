//! AWS Signature Version 2, of Query calls: it is one more parameter (AWS General Reference,
//! "Signature Version 2 signing process").

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use super::Credentials;
use super::encoding::{form, percent_encode};
use super::query::Parameters;

/// What is signed besides the parameters.
pub(super) struct Request<'a> {
    /// HTTP method.
    pub(super) method: &'a str,
    /// The value of the Host header, in lower case.
    pub(super) host: &'a str,
    /// The path, escaped as it is sent.
    pub(super) path: &'a str,
    /// Now, in UTC, as RFC 3339.
    pub(super) timestamp: &'a str,
}

/// The form to send: the parameters, who signs and how, and the signature last.
pub(super) fn sign<'a>(
    request: &Request<'a>,
    mut parameters: Parameters<'a>,
    credentials: &'a Credentials,
) -> String {
    let mut add = |name: &'static str, value: &'a str| {
        parameters.push((Cow::Borrowed(name), Cow::Borrowed(value)));
    };
    add("AWSAccessKeyId", &credentials.access_key_id);
    add("SignatureMethod", "HmacSHA256");
    add("SignatureVersion", "2");
    add("Timestamp", request.timestamp);
    if let Some(token) = &credentials.session_token {
        add("SecurityToken", &token.0);
    }
    parameters.sort_unstable();
    let pairs = parameters.iter();
    let mut form = form(pairs.map(|(name, value)| (name.as_ref(), value.as_ref())));
    let Request {
        method, host, path, ..
    } = request;
    let text = format!("{method}\n{host}\n{path}\n{form}");
    let key = hmac::Key::new(
        hmac::HMAC_SHA256,
        credentials.secret_access_key.0.as_bytes(),
    );
    let signature = STANDARD.encode(hmac::sign(&key, text.as_bytes()));
    form.push_str("&Signature=");
    percent_encode(&signature, b"", &mut form);
    form
}

#[cfg(test)]
mod tests {
    use super::super::Secret;
    use super::*;

    /// The example of AWS's documentation, a call of Elastic MapReduce.
    #[test]
    fn awss_published_example_is_signed_as_published() {
        let credentials = Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_access_key: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into()),
            session_token: None,
        };
        let request = Request {
            method: "GET",
            host: "elasticmapreduce.amazonaws.com",
            path: "/",
            timestamp: "2011-10-03T15:19:30",
        };
        let parameters = vec![
            ("Action".into(), "DescribeJobFlows".into()),
            ("Version".into(), "2009-03-31".into()),
        ];
        assert_eq!(
            sign(&request, parameters, &credentials),
            "AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Action=DescribeJobFlows\
             &SignatureMethod=HmacSHA256&SignatureVersion=2&Timestamp=2011-10-03T15%3A19%3A30\
             &Version=2009-03-31&Signature=i91nKc4PWAt0JJIdXwz9HxZCJDdiy6cf%2FMj6vPxyYIs%3D"
        );
    }

    #[test]
    fn parameters_are_sorted_by_bytes_and_a_session_token_is_signed() {
        let credentials = Credentials {
            access_key_id: "id".into(),
            secret_access_key: Secret("secret".into()),
            session_token: Some(Secret("to/ken".into())),
        };
        let request = Request {
            method: "POST",
            host: "127.0.0.1:9324",
            path: "/0/q",
            timestamp: "2026-01-01T00:00:00Z",
        };
        let form = sign(&request, vec![("a".into(), "b".into())], &credentials);
        let names: Vec<&str> = form
            .split('&')
            .map(|pair| pair.split_once('=').unwrap().0)
            .collect();
        let expected = [
            "AWSAccessKeyId",
            "SecurityToken",
            "SignatureMethod",
            "SignatureVersion",
            "Timestamp",
            "a",
            "Signature",
        ];
        assert_eq!(names, expected);
        assert!(form.contains("SecurityToken=to%2Fken&"));
    }
}
