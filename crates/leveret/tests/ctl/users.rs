//! Users: added, listed, authenticated, changed and deleted.

use crate::running::*;
use crate::support::*;

#[test]
fn users_are_added_and_listed() {
    let broker = builder().start().expect("a broker");
    assert_eq!(
        done(&broker, &["add_user", "bob", "pw"]),
        "Adding user \"bob\" ...\nDone. Don't forget to grant the user permissions to some \
         virtual hosts! See 'leveret ctl help set_permissions' to learn more.\n"
    );
    refused(
        &broker,
        &["add_user", "bob", "pw"],
        70,
        "Adding user \"bob\" ...\n",
        "Error:\nUser \"bob\" already exists\n",
    );
    assert_eq!(
        done(
            &broker,
            &["set_user_tags", "bob", "administrator", "monitoring"]
        ),
        "Setting tags for user \"bob\" to [administrator, monitoring] ...\n"
    );
    assert_eq!(
        done(&broker, &["list_users"]),
        "Listing users ...\nuser\ttags\nbob\t[administrator, monitoring]\nguest\t[administrator]\n"
    );
    assert_eq!(
        done(&broker, &["set_user_tags", "bob"]),
        "Setting tags for user \"bob\" to [] ...\n"
    );
    assert_eq!(
        rows(&broker, &["list_users"]),
        ["bob\t[]", "guest\t[administrator]"]
    );
    assert_eq!(
        done(&broker, &["delete_user", "bob"]),
        "Deleting user \"bob\" ...\n"
    );
    assert_eq!(rows(&broker, &["list_users"]), ["guest\t[administrator]"]);
}

#[test]
fn passwords_are_changed_and_checked() {
    let broker = builder().start().expect("a broker");
    done(&broker, &["add_user", "bob", "pw"]);
    assert_eq!(
        done(&broker, &["change_password", "bob", "pw2"]),
        "Changing password for user \"bob\" ...\n"
    );
    assert_eq!(
        done(&broker, &["authenticate_user", "bob", "pw2"]),
        "Authenticating user \"bob\" ...\nSuccess\n"
    );
    for name in ["bob", "nope"] {
        refused(
            &broker,
            &["authenticate_user", name, "pw"],
            65,
            &format!("Authenticating user \"{name}\" ...\n"),
            &format!(
                "Error:\nError: failed to authenticate user \"{name}\"\nuser '{name}' - invalid \
                 credentials\n"
            ),
        );
    }
}

/// So that it need not stand on a command line, where others see it.
#[test]
fn password_may_come_from_standard_input() {
    let broker = builder().start().expect("a broker");
    let outcome = ctl_with(&broker, &["add_user", "bob"], "secret\n");
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.out.contains("Password: "), "{}", outcome.out);
    done(&broker, &["authenticate_user", "bob", "secret"]);
}

#[test]
fn users_that_are_not_there_are_refused_with_status_67() {
    let broker = builder().start().expect("a broker");
    for arguments in [
        &["delete_user", "nope"][..],
        &["change_password", "nope", "pw"],
        &["set_user_tags", "nope", "administrator"],
        &["list_user_permissions", "nope"],
        &["set_permissions", "nope", "", "", ""],
        &["clear_permissions", "nope"],
    ] {
        let outcome = ctl(&broker, arguments);
        assert_eq!(
            (outcome.status, &*outcome.err),
            (67, "Error:\nUser \"nope\" does not exist\n"),
            "{arguments:?}"
        );
    }
}

#[test]
fn deleted_user_is_disconnected_and_does_not_come_back() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        done(&broker, &["add_user", "bob", "pw"]);
        done(&broker, &["set_permissions", "bob", ".*", ".*", ".*"]);
        let bob = client::Options {
            user: "bob".into(),
            password: "pw".into(),
            ..options(&broker)
        };
        let mut connection = connect_with(&bob).await;
        done(&broker, &["delete_user", "bob"]);
        match connection.next().await {
            Err(client::Error::ConnectionClosed { code, text, .. }) => {
                assert_eq!(
                    (code, &*text),
                    (320, "CONNECTION_FORCED - user 'bob' is deleted")
                );
            }
            other => panic!("connection.close expected, got {other:?}"),
        }
        let refused = client::Connection::connect(&bob).await;
        assert!(refused.is_err());
        assert_healthy(&broker).await;
    });
}
