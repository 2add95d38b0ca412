//! Who signs: from arguments, from the environment that all AWS tools read, or a made-up user for
//! a service on this machine.

use super::{Endpoint, Error};

/// Text that is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

/// An access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Its public half.
    pub access_key_id: String,
    /// Its secret half.
    pub secret_access_key: Secret,
    /// What temporary credentials carry besides.
    pub session_token: Option<Secret>,
}

impl Credentials {
    /// Those of the environment, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
    /// `AWS_SESSION_TOKEN`; without them `test` and `test` for a service on this machine.
    pub fn from_environment(endpoint: &Endpoint) -> Result<Credentials, Error> {
        Credentials::look_up(endpoint, |name| std::env::var(name).ok())
    }

    fn look_up(
        endpoint: &Endpoint,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credentials, Error> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        match (
            variable("AWS_ACCESS_KEY_ID"),
            variable("AWS_SECRET_ACCESS_KEY"),
        ) {
            (Some(access_key_id), Some(secret_access_key)) => Ok(Credentials {
                access_key_id,
                secret_access_key: secret_access_key.into(),
                session_token: variable("AWS_SESSION_TOKEN").map(Secret),
            }),
            _ if endpoint.is_loopback() => Ok(Credentials {
                access_key_id: "test".into(),
                secret_access_key: Secret("test".into()),
                session_token: None,
            }),
            _ => Err(Error::NoCredentials(endpoint.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_before_the_made_up_user() {
        let here: Endpoint = "http://127.0.0.1:9324".parse().unwrap();
        let environment = |name: &str| Some(format!("<{name}>"));
        let found = Credentials::look_up(&here, environment).unwrap();
        assert_eq!(found.access_key_id, "<AWS_ACCESS_KEY_ID>");
        assert_eq!(found.session_token.unwrap().0, "<AWS_SESSION_TOKEN>");
        let found = Credentials::look_up(&here, |_| None).unwrap();
        assert_eq!(found.access_key_id, "test");
    }

    #[test]
    fn a_service_elsewhere_gets_no_made_up_user() {
        let there: Endpoint = "https://sqs.us-east-1.amazonaws.com".parse().unwrap();
        let half = |name: &str| (name == "AWS_ACCESS_KEY_ID").then(|| "key".to_owned());
        let error = Credentials::look_up(&there, half).unwrap_err().to_string();
        assert!(error.contains("https://sqs.us-east-1.amazonaws.com"));
        assert!(error.contains("AWS_SECRET_ACCESS_KEY"));
    }

    #[test]
    fn secrets_are_not_printed() {
        let credentials = Credentials {
            access_key_id: "id".into(),
            secret_access_key: Secret("hush".into()),
            session_token: Some(Secret("hush".into())),
        };
        assert!(!format!("{credentials:?}").contains("hush"));
    }
}
