//! A call as an HTTP request: written in the one protocol or the other, and signed.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Method, Request};

use super::encoding::form;
use super::{Action, Endpoint, Error, Options, Protocol, Signature};
use super::{json, query, signature_v2, signature_v4};

/// The request for a call that is made now: UTC, RFC 3339.
pub(super) fn write(
    options: &Options,
    action: &Action<'_>,
    now: &str,
) -> Result<Request<Full<Bytes>>, Error> {
    match options.protocol {
        Protocol::Query(signature) => write_query(options, action, signature, now),
        Protocol::Json => {
            let target = format!("AmazonSQS.{}", action.name());
            let headers = [
                ("content-type", "application/x-amz-json-1.0"),
                ("x-amz-target", &target),
                ("x-amzn-query-mode", "true"),
            ];
            let body = json::body(action);
            signed_v4(options, &options.endpoint.path, &headers, body, now)
        }
    }
}

/// A call on a queue goes to the queue's own path, as it did in 2006.
fn write_query(
    options: &Options,
    action: &Action<'_>,
    signature: Signature,
    now: &str,
) -> Result<Request<Full<Bytes>>, Error> {
    let path = match action.queue() {
        Some(url) => Endpoint::queue_path(url)?,
        None => options.endpoint.path.clone(),
    };
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let parameters = query::parameters(action);
    match signature {
        Signature::V4 => {
            let pairs = parameters.iter();
            let body = form(pairs.map(|(name, value)| (name.as_ref(), value.as_ref())));
            signed_v4(options, &path, &headers, body, now)
        }
        Signature::V2 => {
            let host = &options.endpoint.authority();
            let request = signature_v2::Request {
                method: "POST",
                host,
                path: &path,
                timestamp: now,
            };
            let body = signature_v2::sign(&request, parameters, &options.credentials);
            post(&path, host, &headers, body)
        }
    }
}

fn signed_v4(
    options: &Options,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
    now: &str,
) -> Result<Request<Full<Bytes>>, Error> {
    let host = options.endpoint.authority();
    let time = now.replace(['-', ':'], "");
    let mut headers = headers.to_vec();
    headers.push(("host", &host));
    headers.push(("x-amz-date", &time));
    if let Some(token) = &options.credentials.session_token {
        headers.push(("x-amz-security-token", &token.0));
    }
    headers.sort_unstable();
    let scope = signature_v4::Scope {
        credentials: &options.credentials,
        time: &time,
        region: &options.region,
        service: "sqs",
    };
    let authorization = scope.authorization(&signature_v4::Request {
        method: "POST",
        path,
        headers: &headers,
        body: body.as_bytes(),
    });
    headers.retain(|(name, _)| *name != "host");
    headers.push(("authorization", &authorization));
    post(path, &host, &headers, body)
}

fn post(
    path: &str,
    host: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Request<Full<Bytes>>, Error> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    // Only a key, a token or a region with a character that no header may have.
    request.body(Full::new(body.into())).map_err(|error| {
        Error::Endpoint(format!(
            "a call with these credentials cannot be written: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Credentials, Secret};
    use super::*;
    use std::time::Duration;

    fn options(protocol: Protocol, access_key_id: &str) -> Options {
        Options {
            endpoint: "http://127.0.0.1:9324".parse().unwrap(),
            region: "eu-west-1".into(),
            credentials: Credentials {
                access_key_id: access_key_id.into(),
                secret_access_key: Secret("secret".into()),
                session_token: Some(Secret("token".into())),
            },
            protocol,
            timeout: Duration::from_secs(1),
            retries: 0,
        }
    }

    const NOW: &str = "2026-01-02T03:04:05Z";
    const SEND: Action<'static> = Action::SendMessage {
        queue: "http://elsewhere:1/0/q",
        body: "x",
    };

    #[test]
    fn query_goes_to_the_path_of_the_queue_and_json_to_the_endpoint() {
        for signature in [Signature::V2, Signature::V4] {
            let request = write(&options(Protocol::Query(signature), "id"), &SEND, NOW).unwrap();
            assert_eq!(request.uri(), "/0/q");
            assert_eq!(request.headers()["host"], "127.0.0.1:9324");
        }
        let request = write(&options(Protocol::Json, "id"), &SEND, NOW).unwrap();
        assert_eq!(request.uri(), "/");
        assert_eq!(request.headers()["x-amz-target"], "AmazonSQS.SendMessage");
    }

    #[test]
    fn version_4_covers_all_headers_in_order() {
        let request = write(&options(Protocol::Json, "id"), &SEND, NOW).unwrap();
        let authorization = request.headers()["authorization"].to_str().unwrap();
        assert!(authorization.contains("Credential=id/20260102/eu-west-1/sqs/aws4_request"));
        let signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;\
                      x-amz-target;x-amzn-query-mode,";
        assert!(authorization.contains(signed), "{authorization}");
    }

    #[test]
    fn a_key_that_no_header_may_have_is_an_error() {
        assert!(write(&options(Protocol::Json, "id\r\nx: y"), &SEND, NOW).is_err());
    }
}
