//! AWS Signature Version 4: a header that covers other headers and the body (AWS IAM User Guide,
//! "Create a signed AWS API request").

use ring::{digest, hmac};

use super::Credentials;
use super::encoding::{hex, percent_encode};

/// What is signed. There is no query: all calls are POST.
pub(super) struct Request<'a> {
    /// HTTP method.
    pub(super) method: &'a str,
    /// The path, escaped as it is sent.
    pub(super) path: &'a str,
    /// Headers that are covered: names in lower case and in order, values without spaces around.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub(super) body: &'a [u8],
}

/// Who signs, when, and for which service.
pub(super) struct Scope<'a> {
    /// Who.
    pub(super) credentials: &'a Credentials,
    /// Now, in UTC: `20150830T123600Z`, which is the value of the header `x-amz-date`, too.
    pub(super) time: &'a str,
    /// The region.
    pub(super) region: &'a str,
    /// `sqs`.
    pub(super) service: &'a str,
}

impl Scope<'_> {
    /// The value of the header `authorization`.
    pub(super) fn authorization(&self, request: &Request<'_>) -> String {
        let date = self.time.split('T').next().unwrap_or_default();
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        let canonical = sha256(canonical(request).as_bytes());
        let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{canonical}", self.time);
        let signature = hex(hmac::sign(&self.key(date), text.as_bytes()).as_ref());
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={}, Signature={signature}",
            self.credentials.access_key_id,
            names(request)
        )
    }

    /// The key of this day, region and service.
    fn key(&self, date: &str) -> hmac::Key {
        let secret = format!("AWS4{}", self.credentials.secret_access_key.0);
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let parts = [date, self.region, self.service, "aws4_request"];
        parts.iter().fold(key, |key, part| {
            let tag = hmac::sign(&key, part.as_bytes());
            hmac::Key::new(hmac::HMAC_SHA256, tag.as_ref())
        })
    }
}

fn canonical(request: &Request<'_>) -> String {
    let mut out = format!("{}\n", request.method);
    // Twice for all services but S3: what is escaped already is escaped again.
    percent_encode(request.path, b"/", &mut out);
    out.push_str("\n\n");
    for (name, value) in request.headers {
        out.extend([name, ":", value, "\n"]);
    }
    out.extend(["\n", &names(request), "\n", &sha256(request.body)]);
    out
}

fn names(request: &Request<'_>) -> String {
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
    names.join(";")
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::super::Secret;
    use super::*;

    fn credentials() -> Credentials {
        Credentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into()),
            session_token: None,
        }
    }

    /// Signs as all cases of AWS's test suite (aws-sig-v4-test-suite) do.
    fn suite(method: &str, headers: &[(&str, &str)], body: &str) -> String {
        let scope = Scope {
            credentials: &credentials(),
            time: "20150830T123600Z",
            region: "us-east-1",
            service: "service",
        };
        scope.authorization(&Request {
            method,
            path: "/",
            headers,
            body: body.as_bytes(),
        })
    }

    const DATE: (&str, &str) = ("x-amz-date", "20150830T123600Z");
    const HOST: (&str, &str) = ("host", "example.amazonaws.com");

    #[test]
    fn get_vanilla_is_signed_as_in_awss_test_suite() {
        assert_eq!(
            suite("GET", &[HOST, DATE], ""),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }

    #[test]
    fn post_vanilla_is_signed_as_in_awss_test_suite() {
        let signed = suite("POST", &[HOST, DATE], "");
        let signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        assert!(signed.ends_with(signature), "{signed}");
    }

    #[test]
    fn post_x_www_form_urlencoded_is_signed_as_in_awss_test_suite() {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let signed = suite("POST", &[form, HOST, DATE], "Param1=value1");
        let signature = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        assert!(signed.ends_with(signature), "{signed}");
    }

    /// The example of the documentation's "Deriving the signing key".
    #[test]
    fn the_signing_key_is_derived_as_in_awss_documentation() {
        let scope = Scope {
            credentials: &credentials(),
            time: "20150830T123600Z",
            region: "us-east-1",
            service: "iam",
        };
        let text = "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n\
                    f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59";
        let signature = hmac::sign(&scope.key("20150830"), text.as_bytes());
        assert_eq!(
            hex(signature.as_ref()),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }
}
