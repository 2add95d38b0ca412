//! Crashes and failures at chosen operations.

use std::io;

use super::*;

#[test]
fn operations_are_the_calls_that_change_something() {
    let disk = FaultyDisk::new(1);
    let (dir, a, b) = (Path::new("/d"), Path::new("/d/a"), Path::new("/d/b"));
    disk.create_dir(dir).unwrap();
    let file = disk.open(a, Open::Create).unwrap();
    file.allocate(PAGE).unwrap();
    write(&*file, 1, 1, 0);
    file.set_len(PAGE).unwrap();
    file.sync().unwrap();
    disk.rename(a, b).unwrap();
    disk.sync_dir(dir).unwrap();
    disk.remove(b).unwrap();
    disk.remove_dir(dir).unwrap();
    assert_eq!(disk.operations(), 10);

    disk.list(dir).unwrap();
    disk.open(b, Open::Read).unwrap_err();
    disk.open(b, Open::Write).unwrap_err();
    contents(&*file);
    assert_eq!(disk.operations(), 10);
    assert_eq!(disk.restart(Survival::Everything).operations(), 0);
}

#[test]
fn nothing_works_after_a_crash() {
    let disk = FaultyDisk::new(1);
    let path = Path::new("/a");
    let file = marked(&disk, "/a", 1);
    disk.crash_at(disk.operations() + 2);
    file.sync().unwrap();
    assert!(!disk.has_crashed());
    file.sync().unwrap_err();
    assert!(disk.has_crashed());

    let operations = disk.operations();
    let mut buffer = filled(1, 2);
    let attempts = [
        disk.open(path, Open::Read).map(drop),
        disk.open(path, Open::Create).map(drop),
        disk.create_dir(path),
        disk.list(path).map(drop),
        disk.rename(path, path),
        disk.remove(path),
        disk.remove_dir(path),
        disk.sync_dir(path),
        file.write(buffer.as_slice(), 0),
        file.read(buffer.as_mut_slice(), 0),
        file.sync(),
        file.allocate(PAGE),
        file.set_len(0),
        file.len().map(drop),
    ];
    for error in attempts.map(Result::unwrap_err) {
        assert_eq!(error.to_string(), "the simulated machine has crashed");
    }
    assert_eq!(disk.operations(), operations);
    let again = disk.restart(Survival::Everything);
    assert!(!again.has_crashed());
    assert_eq!(mark(&again, "/a"), Some(1));
}

#[test]
fn writes_after_a_crash_leave_no_trace() {
    let disk = FaultyDisk::new(1);
    let file = marked(&disk, "/a", 1);
    disk.crash_now();
    for _ in 0..20 {
        file.write(filled(1, 2).as_slice(), 0).unwrap_err();
    }
    assert_eq!(
        found(&disk.restart(Survival::Everything), "/a"),
        Some(vec![1; BLOCK])
    );
}

#[test]
fn a_sync_that_crashes_has_confirmed_nothing() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    write(&*file, 1, 4, 0);
    disk.crash_at(disk.operations() + 1);
    file.sync().unwrap_err();
    assert_eq!(found(&disk.restart(Survival::Nothing), "/a"), Some(vec![]));
    assert!(outcomes(&disk, |again| found(again, "/a")).len() > TRIES / 8);
}

#[test]
fn faults_that_are_set_too_late_meet_the_next_operation() {
    let disk = FaultyDisk::new(1);
    let file = marked(&disk, "/a", 1);
    disk.fail_at(1, io::ErrorKind::TimedOut);
    assert_eq!(file.sync().unwrap_err().kind(), io::ErrorKind::TimedOut);
    file.sync().unwrap();
    disk.crash_at(1);
    file.sync().unwrap_err();
    assert!(disk.has_crashed());
}

#[test]
fn a_crash_between_operations_leaves_what_was_written() {
    let disk = FaultyDisk::new(1);
    marked(&disk, "/a", 1);
    disk.crash_now();
    assert!(disk.has_crashed());
    assert!(disk.list(Path::new("/")).is_err());
    assert_eq!(mark(&disk.restart(Survival::Nothing), "/a"), Some(1));
}

/// What is found of a write of two blocks over two others, when it crashes or fails.
fn torn(stop: impl Fn(&FaultyDisk)) -> BTreeSet<Vec<u8>> {
    let attempt = |seed| {
        let disk = FaultyDisk::new(seed);
        let file = create(&disk, "/a");
        write(&*file, 1, 2, 0);
        file.sync().unwrap();
        stop(&disk);
        file.write(filled(2, 2).as_slice(), 0).unwrap_err();
        let nothing = disk.restart(Survival::Nothing);
        assert_eq!(found(&nothing, "/a"), Some(vec![1; 2 * BLOCK]));
        let all = sectors(&found(&disk.restart(Survival::Everything), "/a").unwrap());
        let some = sectors(&found(&disk.restart(Survival::Random), "/a").unwrap());
        let written = some.iter().zip(&all).all(|(some, all)| some <= all);
        assert!(written, "what did not reach the system is not on the disk");
        all
    };
    (0..TRIES as u64).map(attempt).collect()
}

#[test]
fn a_write_may_be_torn_by_a_crash_or_a_failure() {
    let crash = torn(|disk| disk.crash_at(disk.operations() + 1));
    let failure = torn(|disk| disk.fail_at(disk.operations() + 1, io::ErrorKind::Other));
    for outcomes in [crash, failure] {
        assert!(outcomes.contains(&vec![1; 16]), "none of it");
        assert!(outcomes.contains(&vec![2; 16]), "all of it");
        let second_block = [[1; 8], [2; 8]].concat();
        let first_block = [[2; 8], [1; 8]].concat();
        assert!(outcomes.contains(&first_block) && outcomes.contains(&second_block));
        assert!(outcomes.len() > TRIES / 8, "{}", outcomes.len());
    }
}

#[test]
fn only_the_chosen_operations_fail_and_with_the_chosen_errors() {
    let disk = FaultyDisk::new(1);
    let file = marked(&disk, "/a", 1);
    let next = disk.operations() + 1;
    disk.fail_at(next, io::ErrorKind::StorageFull);
    disk.fail_at(next + 2, io::ErrorKind::TimedOut);
    let error = file.allocate(8 * PAGE).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), PAGE);
    file.allocate(8 * PAGE).unwrap();
    let error = disk.remove(Path::new("/a")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    disk.remove(Path::new("/a")).unwrap();
    assert!(!disk.has_crashed());
}

#[test]
fn no_later_sync_makes_up_for_a_failed_one() {
    let mut kept = BTreeSet::new();
    for seed in 0..TRIES as u64 {
        let disk = FaultyDisk::new(seed);
        let file = create(&disk, "/a");
        file.allocate(2 * PAGE).unwrap();
        file.sync().unwrap();
        write(&*file, 1, 1, 0);
        disk.fail_at(disk.operations() + 1, io::ErrorKind::Other);
        file.sync().unwrap_err();
        write(&*file, 2, 1, 1);
        file.sync().unwrap();
        assert_eq!(contents(&*file), [[1; BLOCK], [2; BLOCK]].concat());
        let on_disk = found(&disk.restart(Survival::Nothing), "/a").unwrap();
        assert_eq!(on_disk[BLOCK..], [2; BLOCK]);
        kept.insert(sectors(&on_disk[..BLOCK]));

        write(&*file, 1, 1, 0);
        file.sync().unwrap();
        let on_disk = found(&disk.restart(Survival::Nothing), "/a").unwrap();
        assert_eq!(on_disk[..BLOCK], [1; BLOCK], "written again, it is durable");
    }
    assert!(kept.contains(&vec![0; 8]) && kept.contains(&vec![1; 8]));
    assert!(kept.len() > TRIES / 8, "{}", kept.len());
}

#[test]
fn a_sync_makes_a_length_durable_that_an_earlier_one_lost() {
    for seed in 0..20 {
        let disk = FaultyDisk::new(seed);
        let file = create(&disk, "/a");
        file.allocate(2 * PAGE).unwrap();
        disk.fail_at(disk.operations() + 1, io::ErrorKind::Other);
        file.sync().unwrap_err();
        file.sync().unwrap();
        let again = disk.restart(Survival::Nothing);
        assert_eq!(found(&again, "/a"), Some(vec![0; 2 * BLOCK]));
    }
}

#[test]
fn a_failed_sync_of_a_directory_can_be_made_up_for() {
    let disk = FaultyDisk::new(1);
    disk.open(Path::new("/a"), Open::Create).unwrap();
    disk.fail_at(2, io::ErrorKind::Other);
    disk.sync_dir(Path::new("/")).unwrap_err();
    assert_eq!(mark(&disk.restart(Survival::Nothing), "/a"), None);
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(mark(&disk.restart(Survival::Nothing), "/a"), Some(0));
}
