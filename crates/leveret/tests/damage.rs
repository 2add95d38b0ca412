//! Damaged data directories: what can be told from a torn tail, and what is said of it.

mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use support::durable::*;
use support::folder::{Folder, size_of};
use support::refused::*;
use support::*;
use testkit::Error;

const BLOCK: usize = 4096;
/// Messages in the directory that is damaged below; enough for several files of the log.
const COUNT: u64 = 1_000;
/// As many as are unconfirmed at a time.
const AHEAD: u64 = 20;

/// A data directory as a crash leaves it: a queue with [`COUNT`] messages over several files.
struct Victim {
    folder: Folder,
}

impl Victim {
    async fn prepare() -> Victim {
        let folder = Folder::new("victim");
        let mut broker = small(folder.path()).start().expect("a broker");
        let mut publisher = Publisher::open(&broker).await;
        declare_durable(&mut publisher.connection, publisher.channel, "q").await;
        for number in 0..COUNT {
            publisher.persistent("q", &numbered(number, 8_000));
            while publisher.published - publisher.confirmed > AHEAD {
                publisher.confirm().await;
            }
        }
        publisher.all_confirmed().await;
        broker.kill().expect("a running broker");
        Victim { folder }
    }

    /// A copy, for one case.
    fn copy(&self) -> Folder {
        let copy = Folder::new("damaged");
        copy_all(self.folder.path(), copy.path());
        copy
    }
}

fn small(data: &Path) -> testkit::Builder {
    builder()
        .config("leveret.log_file_size = 1MiB")
        .data_dir(data)
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_all(&from, &to);
        } else if from.is_file() {
            // Not the socket that a killed server leaves.
            fs::copy(from, to).expect("a copy");
        }
    }
}

/// Files of the log that hold records, oldest first: their heads say which they are.
fn log_files(data: &Path) -> Vec<PathBuf> {
    let mut files: Vec<(u64, PathBuf)> = fs::read_dir(data.join("wal"))
        .expect("a log")
        .flatten()
        .filter_map(|entry| {
            let bytes = fs::read(entry.path()).ok()?;
            let is_used = bytes.starts_with(b"LeverWAL") && !batches(&bytes).is_empty();
            let number = u64::from_le_bytes(bytes.get(16..24)?.try_into().ok()?);
            is_used.then(|| (number, entry.path()))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

/// Where batches begin in a file of the log.
fn batches(bytes: &[u8]) -> Vec<usize> {
    let blocks = (BLOCK..bytes.len()).step_by(BLOCK);
    blocks
        .filter(|at| bytes[*at..].starts_with(b"LvBa"))
        .collect()
}

fn last(data: &Path) -> PathBuf {
    log_files(data).pop().expect("a file of the log")
}

/// A file in the middle of the log.
fn middle(data: &Path) -> PathBuf {
    let files = log_files(data);
    assert!(files.len() >= 4, "{files:?}");
    files[files.len() / 2].clone()
}

fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("it");
    file.write_all_at(bytes, at as u64).expect("written");
}

fn truncate(path: &Path, length: usize) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("it");
    file.set_len(length as u64).expect("cut");
}

fn noise(length: usize) -> Vec<u8> {
    testkit::Random::new(3).bytes(length)
}

fn manifests(data: &Path) -> [PathBuf; 2] {
    ["manifest-0", "manifest-1"].map(|name| data.join(name))
}

/// What comes of a damaged directory.
enum Expected {
    /// It starts with all messages.
    All,
    /// It starts without the last few.
    AllButTheLast,
    /// It does not start, and says one of these.
    Refused(&'static [&'static str]),
}

type Case = (&'static str, fn(&Path), Expected);

const DAMAGED: Expected = Expected::Refused(&["is damaged at byte"]);
const NO_MANIFEST: Expected = Expected::Refused(&["no readable manifest"]);
/// A hole in the log, however it is noticed.
const INCOMPLETE: Expected = Expected::Refused(&["is damaged at byte", "files are missing"]);

const CASES: &[Case] = &[
    ("nothing is damaged", |_| {}, Expected::All),
    (
        "files that are not ours",
        |data| {
            for name in [
                "notes.txt",
                "wal/000003.wal.bak",
                "wal/README",
                "lost+found",
            ] {
                fs::write(data.join(name), "what is this?").expect("a file");
            }
        },
        Expected::All,
    ),
    (
        "noise in the lock file",
        |data| fs::write(data.join("lock"), noise(5_000)).expect("a file"),
        Expected::All,
    ),
    (
        "the last batch breaks off: a torn tail",
        |data| {
            let bytes = fs::read(last(data)).expect("it");
            let at = *batches(&bytes).last().expect("a batch");
            overwrite(&last(data), at + 700, &noise(1_000));
        },
        Expected::AllButTheLast,
    ),
    (
        "the last file ends in the last batch",
        |data| {
            let bytes = fs::read(last(data)).expect("it");
            let at = *batches(&bytes).last().expect("a batch");
            truncate(&last(data), at + 100);
        },
        Expected::AllButTheLast,
    ),
    (
        "the last file ends where the last batch begins",
        |data| {
            let bytes = fs::read(last(data)).expect("it");
            truncate(&last(data), *batches(&bytes).last().expect("a batch"));
        },
        Expected::AllButTheLast,
    ),
    (
        "noise behind the end of the log",
        |data| {
            let bytes = fs::read(last(data)).expect("it");
            let at = *batches(&bytes).last().expect("a batch");
            let length: [u8; 4] = bytes[at + 8..at + 12].try_into().expect("four bytes");
            let end = at + (32 + u32::from_le_bytes(length) as usize).next_multiple_of(BLOCK);
            overwrite(&last(data), end, &noise(bytes.len() - end));
        },
        Expected::All,
    ),
    (
        "noise in the batch before the last",
        |data| {
            let found = log_files(data).into_iter().flat_map(|path| {
                let batches = batches(&fs::read(&path).expect("it"));
                batches.into_iter().map(move |at| (path.clone(), at))
            });
            let found: Vec<_> = found.collect();
            let (path, at) = &found[found.len() - 2];
            overwrite(path, at + 700, &noise(100));
        },
        DAMAGED,
    ),
    (
        "a flipped bit in a batch in the middle of the log",
        |data| {
            let mut bytes = fs::read(middle(data)).expect("it");
            let batches = batches(&bytes);
            bytes[batches[batches.len() / 2] + 500] ^= 4;
            fs::write(middle(data), bytes).expect("written");
        },
        DAMAGED,
    ),
    (
        "noise in the head of a file",
        |data| overwrite(&middle(data), 0, &noise(BLOCK)),
        INCOMPLETE,
    ),
    (
        "an empty file in the log",
        |data| truncate(&middle(data), 0),
        INCOMPLETE,
    ),
    (
        "a file of zeros in the log",
        |data| {
            let length = fs::metadata(middle(data)).expect("it").len();
            fs::write(middle(data), vec![0; length as usize]).expect("written");
        },
        INCOMPLETE,
    ),
    (
        "a file of the log cut in the middle",
        |data| truncate(&middle(data), 300_001),
        DAMAGED,
    ),
    (
        "a file of the log is missing",
        |data| fs::remove_file(middle(data)).expect("it"),
        INCOMPLETE,
    ),
    (
        "the first file of the log is missing",
        |data| fs::remove_file(&log_files(data)[0]).expect("it"),
        INCOMPLETE,
    ),
    (
        "a directory in place of a file of the log",
        |data| {
            let path = middle(data);
            fs::remove_file(&path).expect("it");
            fs::create_dir(&path).expect("a directory");
        },
        Expected::Refused(&[".wal"]),
    ),
    (
        "a file of the log is there twice",
        |data| {
            let copied = fs::copy(middle(data), data.join("wal/000077.wal"));
            copied.expect("a copy");
        },
        Expected::All,
    ),
    (
        "noise as a spare file",
        |data| fs::write(data.join("wal/000099.wal"), noise(1 << 20)).expect("a file"),
        Expected::All,
    ),
    (
        "a spare file with a name beyond all numbers",
        |data| {
            let name = "wal/99999999999999999999999.wal";
            fs::write(data.join(name), noise(10_000)).expect("a file");
        },
        Expected::All,
    ),
    (
        "both manifests are missing",
        |data| {
            for path in manifests(data) {
                let _ = fs::remove_file(path);
            }
        },
        NO_MANIFEST,
    ),
    (
        "both manifests are empty",
        |data| {
            manifests(data)
                .iter()
                .for_each(|path| fs::write(path, "").expect("a file"))
        },
        NO_MANIFEST,
    ),
    (
        "both manifests are noise",
        |data| {
            for path in manifests(data) {
                fs::write(path, noise(20_000)).expect("a file");
            }
        },
        NO_MANIFEST,
    ),
    (
        "the log of another release",
        |data| set_version(&middle(data), 40, 99),
        Expected::Refused(&["format version 99"]),
    ),
    (
        "the manifest of another release",
        |data| set_manifest_version(data, 99),
        Expected::Refused(&["format version 99"]),
    ),
];

fn set_manifest_version(data: &Path, version: u16) {
    for path in manifests(data).iter().filter(|path| path.exists()) {
        let bytes = fs::read(path).expect("it");
        let body: [u8; 8] = bytes[24..32].try_into().expect("a length");
        set_version(path, 32 + u64::from_le_bytes(body) as usize, version);
    }
}

/// Before the log holds anything that an older release would take for damage.
#[test]
fn older_manifest_is_replaced_at_the_start() {
    let folder = Folder::new("older");
    let data = folder.path();
    small(data)
        .start()
        .expect("a broker")
        .stop()
        .expect("it ends");
    set_manifest_version(data, 1);
    let mut broker = small(data).start().expect("a broker");
    broker.kill().expect("a signal");
    let versions = manifests(data).map(|path| {
        let bytes = fs::read(path).expect("it");
        u16::from_le_bytes([bytes[8], bytes[9]])
    });
    assert!(versions.contains(&2), "{versions:?}");
    small(data)
        .start()
        .expect("a broker")
        .stop()
        .expect("it ends");
}

/// Makes a file say that it is of that version, with a right checksum of its first bytes.
fn set_version(path: &Path, length: usize, version: u16) {
    let mut head = fs::read(path).expect("it")[..length].to_vec();
    head[8..10].copy_from_slice(&version.to_le_bytes());
    head[12..16].fill(0);
    let crc = crc32c(&head);
    head[12..16].copy_from_slice(&crc.to_le_bytes());
    overwrite(path, 0, &head);
}

fn crc32c(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg())
        })
    });
    !crc
}

async fn starts_with_messages(data: &Path, case: &str) -> u64 {
    let broker = small(data).start();
    let broker = broker.unwrap_or_else(|error| panic!("{case}: {error}"));
    let numbers = take_numbers(&broker, "q").await;
    assert!(
        (0..numbers.len() as u64).eq(numbers.iter().copied()),
        "{case}"
    );
    assert_healthy(&broker).await;
    numbers.len() as u64
}

#[test]
fn damage_is_told_from_a_torn_tail_and_never_a_panic() {
    within(seconds(60), async {
        let victim = Victim::prepare().await;
        let mut wrong = Vec::new();
        for (case, damage, expected) in CASES {
            let copy = victim.copy();
            damage(copy.path());
            match expected {
                Expected::All => {
                    assert_eq!(
                        starts_with_messages(copy.path(), case).await,
                        COUNT,
                        "{case}"
                    );
                }
                Expected::AllButTheLast => {
                    let count = starts_with_messages(copy.path(), case).await;
                    // At most what was unconfirmed at a time is in one batch.
                    assert!(
                        (COUNT - AHEAD - 1..COUNT).contains(&count),
                        "{case}: {count}"
                    );
                }
                Expected::Refused(texts) => {
                    let before = contents(copy.path());
                    match small(copy.path()).start() {
                        Ok(broker) => {
                            let there = messages_in(&broker, "q").await;
                            wrong.push(format!("{case}: started with {there:?}"));
                            continue;
                        }
                        Err(Error::EndedEarly { .. }) => {}
                        Err(other) => panic!("{case}: {other}"),
                    }
                    let log = refused(small(copy.path()));
                    if !texts.iter().any(|text| log.contains(text)) {
                        wrong.push(format!("{case}: {log}"));
                    }
                    if contents(copy.path()) != before {
                        wrong.push(format!("{case}: files were changed"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}

/// One manifest of two is enough: whatever happens to the one that is being written.
#[test]
fn either_manifest_alone_is_enough() {
    within(seconds(30), async {
        let folder = Folder::new("manifests");
        let broker = small(folder.path())
            .config("leveret.log_size = 1MiB")
            .config("leveret.queue_memory = 1MiB")
            .start()
            .expect("a broker");
        let mut publisher = Publisher::open(&broker).await;
        declare_durable(&mut publisher.connection, publisher.channel, "q").await;
        for number in 0..20_000 {
            publisher.persistent("q", &numbered(number, 1_000));
        }
        publisher.all_confirmed().await;
        let both = manifests(folder.path());
        eventually("both are written", seconds(10), async || {
            both.iter().all(|path| path.exists())
        })
        .await;
        drop(publisher);
        broker.stop().expect("exit status 0");
        let number = |path: &PathBuf| fs::read(path).map(|bytes| bytes[16..24].to_vec()).ok();
        let newer = usize::from(number(&both[1]) > number(&both[0]));
        // The older one may be anything; the newer one says what the log says no more.
        let copy = Folder::new("without-the-older");
        copy_all(folder.path(), copy.path());
        fs::write(&manifests(copy.path())[1 - newer], noise(9_000)).expect("a file");
        assert_eq!(
            starts_with_messages(copy.path(), "without the older").await,
            20_000
        );
    });
}

/// What cannot be read is said to be lost; everything else is there, and the broker lives.
#[test]
fn damaged_segments_cost_what_was_in_them_and_are_reported() {
    within(seconds(30), async {
        let folder = Folder::new("segments");
        let start = || {
            small(folder.path())
                .config("leveret.log_size = 1MiB")
                .config("leveret.queue_memory = 1MiB")
                .start()
                .expect("a broker")
        };
        let broker = start();
        let mut publisher = Publisher::open(&broker).await;
        declare_durable(&mut publisher.connection, publisher.channel, "q").await;
        for number in 0..20_000 {
            publisher.persistent("q", &numbered(number, 1_000));
        }
        publisher.all_confirmed().await;
        let log = folder.path().join("wal");
        // What is in the log as well would be found there.
        eventually("the log is short", seconds(10), async || {
            size_of(&log) < 12 << 20
        })
        .await;
        drop(publisher);
        broker.stop().expect("exit status 0");
        let segments = contents(&folder.path().join("queues"));
        assert!(!segments.is_empty(), "nothing paged out");
        for (segment, bytes) in &segments {
            overwrite(segment, bytes.len() / 4, &noise(bytes.len() / 8));
        }
        let broker = start();
        let numbers = take_numbers(&broker, "q").await;
        assert!(numbers.is_sorted(), "in order");
        let lost = 20_000 - numbers.len();
        assert!((1..15_000).contains(&lost), "{lost} are lost");
        assert_healthy(&broker).await;
        let log = broker.log();
        assert!(log.contains("ERROR") && log.contains(".segment"), "{log}");
    });
}
