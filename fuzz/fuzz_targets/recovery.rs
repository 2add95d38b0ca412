//! Recovery: whatever the records of a log say, and whatever becomes of its bytes afterwards, the
//! store is opened or refuses with an error; it never panics.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use store::{Budget, Store};
use testkit::FaultyDisk;
use wal::{AlignedBuffer, BLOCK, Disk, Durability, Lsn, Open, Options, StreamId, Urgency, Wal};

const DIR: &str = "/data";
const LOG_FILE: u64 = 64 * 1024;

fuzz_target!(
    init: leveret_fuzz::plant(seeds()),
    |data: &[u8]| {
        let disk: Arc<dyn Disk> = Arc::new(FaultyDisk::new(1));
        open(&disk);
        let (damage, records) = data.split_at(data.len().min(4));
        append(&disk, records);
        open(&disk);
        spoil(&disk, damage);
        open(&disk);
    }
);

fn budget() -> Budget {
    Budget {
        log_file: LOG_FILE,
        ..Budget::default()
    }
}

/// Opens, takes whatever queues there seem to be, lets the store work, and looks at the directory.
fn open(disk: &Arc<dyn Disk>) {
    if let Ok((store, mut recovered)) = Store::open(disk.clone(), Path::new(DIR), budget(), false) {
        for stream in 1..4 {
            let queue = recovered.claim(&store, StreamId(stream), Durability::Fsync);
            queue.store.count_from(store::QueueSeq(0));
        }
        recovered.finish(&store);
        store.run_once();
    }
    let _ = store::check::check(disk, Path::new(DIR));
}

/// Appends records: a stream, a length, and the payload.
fn append(disk: &Arc<dyn Disk>, mut records: &[u8]) {
    let dir = Path::new(DIR).join("wal");
    let Ok(scan) = wal::scan(&**disk, &dir, Lsn(0), |_| {}) else {
        return;
    };
    let options = Options {
        file_size: LOG_FILE,
        threads: false,
        ..Options::new(dir)
    };
    let Ok(log) = Wal::open(disk.clone(), options, scan) else {
        return;
    };
    while let [stream, length, rest @ ..] = records {
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let urgency = Urgency::Prompt(Durability::Fsync);
        log.append(StreamId(u64::from(*stream % 4)), urgency, |record| {
            record.extend(payload);
        });
        records = rest;
    }
    let _ = log.run_once();
}

/// Changes one byte of one file.
fn spoil(disk: &Arc<dyn Disk>, damage: &[u8]) {
    let [which, block, at, value] = damage else {
        return;
    };
    let mut files = vec![Path::new(DIR).join("manifest-0"), Path::new(DIR).join("manifest-1")];
    let log = Path::new(DIR).join("wal");
    files.extend(disk.list(&log).unwrap_or_default().into_iter().map(|name| log.join(name)));
    let path = &files[usize::from(*which) % files.len()];
    let Ok(file) = disk.open(path, Open::Write) else {
        return;
    };
    let offset = u64::from(*block % 4) * BLOCK as u64;
    let mut bytes = AlignedBuffer::zeroed(BLOCK);
    if file.read(bytes.as_mut_slice(), offset).is_ok() {
        bytes.as_mut_slice()[usize::from(*at)] ^= value;
        let _ = file.write(bytes.as_slice(), offset);
    }
}

/// Records as the store writes them.
fn seeds() -> Vec<Vec<u8>> {
    let append = [
        &[0, 0, 0, 0, 1, 36, 1][..],
        &0_u64.to_le_bytes(),
        &1_u32.to_le_bytes(),
        &[0, 14, 0, 0, 0],
        &[2, 0, 0, 0, 3, 0, 1, 0, 0, 1, b'q', 0, 0, b'x'],
    ]
    .concat();
    let acknowledge = [
        &[0, 0, 0, 0, 1, 21, 2, 1, 0, 0, 0][..],
        &0_u64.to_le_bytes(),
        &1_u64.to_le_bytes(),
    ]
    .concat();
    let define = b"\x02\x01\x09\x07\x00\x0e\x04\x02\x00\x00\x00ab\x03\x00\x00\x00xyz".to_vec();
    vec![append, acknowledge, define]
}
