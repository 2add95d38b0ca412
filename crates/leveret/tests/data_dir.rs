//! The data directory as its operator meets it: who may use it, and what is said of one that
//! cannot be used.

mod support;

use std::fs;

use support::durable::*;
use support::folder::{Folder, size_of};
use support::refused::*;
use support::small_disk::SmallDisk;
use support::*;
use testkit::Broker;

#[test]
fn second_server_is_refused_and_told_who_has_the_directory() {
    within(seconds(20), async {
        let folder = Folder::new("shared");
        let at_folder = || builder().data_dir(folder.path());
        let mut first = at_folder().start().expect("a broker");
        let pid = format!("process {}", first.pid());
        for _ in 0..2 {
            let log = refused(at_folder());
            assert!(log.contains(&pid), "{pid}: {log}");
            assert!(log.contains(&*folder.path().to_string_lossy()), "{log}");
            assert!(log.contains("--data-dir"), "{log}");
        }
        assert_healthy(&first).await;
        // Even while it is stopping, and not when it was killed.
        first.kill().expect("a running broker");
        let second = at_folder().start().expect("a broker");
        assert_healthy(&second).await;
        second.stop().expect("exit status 0");
        let third = at_folder().start().expect("a broker");
        assert_healthy(&third).await;
    });
}

#[test]
fn directory_that_cannot_be_made_is_named() {
    let folder = Folder::new("unusable");
    let file = folder.path().join("a file");
    fs::write(&file, "text").expect("a file");
    for path in [file.clone(), file.join("below"), "/proc/leveret".into()] {
        let log = refused(builder().data_dir(&path));
        assert!(log.contains(&*path.to_string_lossy()), "{log}");
    }
    assert_eq!(fs::read(&file).expect("still there"), b"text");
}

#[test]
fn read_only_directory_is_named_with_the_reason() {
    within(seconds(20), async {
        let disk = SmallDisk::new(100);
        let broker = disk.under(builder()).start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "q").await;
        connection.close().await.expect("close-ok");
        broker.stop().expect("exit status 0");
        disk.make_read_only();
        let log = refused(disk.under(builder()));
        assert!(log.contains("Read-only file system"), "{log}");
        assert!(log.contains("small-disk/data"), "{log}");
    });
}

/// A directory that belongs to somebody else, where we are not root.
#[test]
fn directory_of_somebody_else_is_named_with_the_reason() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = Folder::new("forbidden");
    if fs::metadata(folder.path()).expect("our own").uid() == 0 {
        // Root may write everywhere: a directory that not even root can write to.
        let log = refused(builder().data_dir("/sys/kernel/leveret"));
        assert!(log.contains("/sys/kernel/leveret"), "{log}");
        return;
    }
    let mode = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    mode(0o500).expect("our own");
    let log = refused(builder().data_dir(folder.path()));
    mode(0o700).expect("our own");
    assert!(log.contains("Permission denied"), "{log}");
    assert!(log.contains(&*folder.path().to_string_lossy()), "{log}");
}

/// What a crash left behind, over and over, does not add up.
#[test]
fn restarts_do_not_make_the_directory_grow() {
    within(seconds(30), async {
        let folder = Folder::new("restarts");
        let mut broker = builder().data_dir(folder.path()).start().expect("one");
        let mut publisher = Publisher::open(&broker).await;
        declare_durable(&mut publisher.connection, publisher.channel, "q").await;
        publisher.persistent("q", &numbered(0, 8));
        publisher.all_confirmed().await;
        drop(publisher);
        for _ in 0..5 {
            Ending::Killed.restart(&mut broker);
        }
        let after_five = size_of(folder.path());
        for _ in 0..30 {
            Ending::Killed.restart(&mut broker);
        }
        let after_more = size_of(folder.path());
        assert!(
            after_more < after_five + (20 << 20),
            "{after_five} bytes, and then {after_more}"
        );
        assert_eq!(take_numbers(&broker, "q").await, [0]);
    });
}

/// Its owner alone may read what others publish.
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    within(seconds(20), async {
        let broker: Broker = builder().start().expect("a broker");
        let mut publisher = Publisher::open(&broker).await;
        declare_durable(&mut publisher.connection, publisher.channel, "q").await;
        publisher.persistent("q", b"secret");
        publisher.all_confirmed().await;
        for (path, _) in contents(&broker.data_dir()) {
            let mode = fs::metadata(&path).expect("it").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        }
    });
}
