//! The control socket itself: whose it is, where it is, and what it bears.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use testkit::Broker;

use crate::running::*;
use crate::support::folder::Folder;
use crate::support::*;

fn socket(broker: &Broker) -> PathBuf {
    broker.data_dir().join("control.sock")
}

#[test]
fn socket_is_for_its_owner_alone() {
    let broker = builder().start().expect("a broker");
    let metadata = fs::metadata(socket(&broker)).expect("a socket");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[test]
fn socket_goes_with_the_server_and_one_left_behind_is_replaced() {
    let folder = Folder::new("socket");
    let at_folder = || builder().data_dir(folder.path());
    let mut killed = at_folder().start().expect("a broker");
    killed.kill().expect("a running broker");
    assert!(socket(&killed).exists());
    let outcome = ctl(&killed, &["ping"]);
    assert_eq!(outcome.status, 69, "{}", outcome.err);
    let broker = at_folder().start().expect("a broker");
    done(&broker, &["ping"]);
    let path = socket(&broker);
    broker.stop().expect("exit status 0");
    assert!(!path.exists());
}

#[test]
fn server_is_found_by_its_socket_its_directory_or_the_environment() {
    let broker = builder().start().expect("a broker");
    let ping = |prepare: &dyn Fn(&mut std::process::Command)| {
        let mut command = program();
        prepare(&mut command);
        command.args(["-q", "list_vhosts"]);
        assert_eq!(run(command, "").out, "name\n/\n");
    };
    ping(&|command| {
        command.arg("--socket").arg(socket(&broker));
    });
    ping(&|command| {
        command.arg("--data-dir").arg(broker.data_dir());
    });
    ping(&|command| {
        command.env("LEVERET_DATA_DIR", broker.data_dir());
    });
    let config = Folder::new("config");
    let file = config.path().join("leveret.conf");
    let line = format!("leveret.data_dir = {}\n", broker.data_dir().display());
    fs::write(&file, line).expect("a file");
    ping(&|command| {
        command.arg("--config").arg(&file);
    });
}

/// The address of a Unix socket has room for about a hundred bytes.
#[test]
fn data_directory_may_have_a_long_path() {
    let folder = Folder::new("long");
    let dir = folder.path().join("x".repeat(150));
    let broker = builder().data_dir(&dir).start().expect("a broker");
    done(&broker, &["ping"]);
}

fn say(broker: &Broker, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(socket(broker)).expect("a socket");
    stream.set_read_timeout(Some(seconds(10))).expect("a limit");
    stream.write_all(bytes).expect("it is read");
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn nonsense_is_refused_and_harms_nobody() {
    let broker = builder().start().expect("a broker");
    let frame = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    let nested = frame(&"[".repeat(100_000));
    for (bytes, answer) in [
        (&b""[..], ""),
        (b"\0", ""),
        (b"\0\0\0\x10{", ""),
        (b"\xff\xff\xff\xff", "is larger than"),
        (&frame("{}"), "does not know this request"),
        (
            &frame(r#"{"command":"reset"}"#),
            "does not know this request",
        ),
        (&nested, "does not know this request"),
    ] {
        let said = say(&broker, bytes);
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(answer), "{said}");
        assert_eq!(said.is_empty(), answer.is_empty(), "{said}");
    }
    let before = broker.rss().expect("a running broker");
    // Announced, and never sent: no memory is set aside for it.
    let streams: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut stream = UnixStream::connect(socket(&broker)).expect("a socket");
            let announced = (200_u32 << 20).to_be_bytes();
            stream.write_all(&announced).expect("it is read");
            stream
        })
        .collect();
    std::thread::sleep(millis(100));
    let grown = broker
        .rss()
        .expect("a running broker")
        .saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes");
    drop(streams);
    done(&broker, &["ping"]);
    assert!(!broker.log().contains("panicked"), "{}", broker.log());
}

#[test]
fn more_clients_than_are_served_at_a_time_wait_their_turn() {
    let broker = builder().start().expect("a broker");
    let clients: Vec<_> = (0..32)
        .map(|number| {
            let mut command = program();
            command.arg("--data-dir").arg(broker.data_dir());
            command.args(["add_user", &format!("user{number}"), "pw"]);
            std::thread::spawn(move || run(command, "").status)
        })
        .collect();
    for client in clients {
        assert_eq!(client.join().expect("it ends"), 0);
    }
    assert_eq!(rows(&broker, &["list_users"]).len(), 33);
}
