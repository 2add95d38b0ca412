//! Where a service is: `http://HOST[:PORT][/PATH]`, or the same with https.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use hyper::Uri;

use super::Error;

/// The address of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Host name or address, an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// What actions without a queue are sent to: `/` unless the service is somewhere deeper.
    pub path: String,
}

impl Endpoint {
    /// The value of the Host header, which both signatures cover: the port only if it is unusual.
    pub fn authority(&self) -> String {
        let host = self.host.to_ascii_lowercase();
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host,
        };
        match self.port == default_port(self.tls) {
            true => host,
            false => format!("{host}:{}", self.port),
        }
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => {
                let mapped = address.to_ipv4_mapped();
                address.is_loopback() || mapped.is_some_and(|v4: Ipv4Addr| v4.is_loopback())
            }
            Ok(IpAddr::V4(address)) => address.is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// The path to send an action on this queue to.
    ///
    /// Of a queue's URL only the path is used: the name of the host that a service gives itself
    /// may mean nothing here, and nobody but the endpoint is to see what is signed for it.
    pub fn queue_path(queue_url: &str) -> Result<String, Error> {
        let path = queue_url.parse::<Uri>().ok();
        let path = path.as_ref().map(Uri::path).filter(|path| *path != "/");
        path.map(str::to_owned).ok_or_else(|| {
            let url: String = queue_url.chars().take(200).collect();
            Error::Malformed(format!("{url:?} is no URL of a queue"))
        })
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Endpoint, Error> {
        let bad = |reason: &str| {
            Error::Endpoint(format!(
                "{text:?} is no endpoint, {reason}; it looks like http://127.0.0.1:9324 or \
                 https://sqs.us-east-1.amazonaws.com"
            ))
        };
        let uri: Uri = text.parse().map_err(|_| bad("not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad("it begins with neither http:// nor https://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it names no host"))?;
        if authority.as_str().contains('@') {
            // Not printed: what is before the @ may be a secret.
            let reason = "an endpoint holds no user and password; use --access-key-id";
            return Err(Error::Endpoint(reason.into()));
        }
        if uri.query().is_some() {
            return Err(bad("a query has no place in it"));
        }
        // A port that is there but no number, as in `http://host:`, is not found by `port_u16`.
        let port = match authority.port_u16() {
            Some(0) => return Err(bad("0 is no port")),
            Some(port) => port,
            None if authority.as_str().len() == authority.host().len() => default_port(tls),
            None => return Err(bad("its port is no number")),
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        Ok(Endpoint {
            tls,
            host: host.to_owned(),
            port,
            path: uri.path().to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let path = self.path.trim_end_matches('/');
        write!(f, "{scheme}://{}{path}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_with_a_scheme_and_a_host() {
        let endpoint: Endpoint = "https://SQS.us-east-1.amazonaws.com".parse().unwrap();
        assert_eq!((endpoint.port, endpoint.path.as_str()), (443, "/"));
        assert_eq!(endpoint.authority(), "sqs.us-east-1.amazonaws.com");
        assert!(!endpoint.is_loopback());
        let endpoint: Endpoint = "http://[::1]:9324/sqs/".parse().unwrap();
        assert_eq!(endpoint.authority(), "[::1]:9324");
        assert_eq!(endpoint.to_string(), "http://[::1]:9324/sqs");
        assert!(endpoint.is_loopback());
    }

    #[test]
    fn what_is_no_endpoint_says_why() {
        for text in [
            "",
            "127.0.0.1:9324",
            "amqp://localhost",
            "http://",
            "http://host:",
            "http://host:0",
            "http://host:99999",
            "http://host/?a=b",
            "http://{region}",
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains("http://127.0.0.1:9324"), "{error}");
        }
        let error = "http://id:hush@host".parse::<Endpoint>().unwrap_err();
        assert!(!error.to_string().contains("hush"));
    }

    #[test]
    fn a_queues_url_names_a_path_only() {
        let path = |url| Endpoint::queue_path(url).ok();
        assert_eq!(path("http://sqs:9324/000/q"), Some("/000/q".into()));
        assert_eq!(path("https://eu-west-1.queue|/"), None);
        assert_eq!(path("http://sqs/"), None);
        assert_eq!(path(""), None);
    }
}
