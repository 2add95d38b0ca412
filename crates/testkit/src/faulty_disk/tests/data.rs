//! Which data and which lengths survive.

use super::*;

#[test]
fn synced_data_survives_whatever_happens() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    write(&*file, 1, 4, 0);
    file.sync().unwrap();
    disk.crash_now();
    for survival in [Survival::Nothing, Survival::Everything, Survival::Random] {
        let again = disk.restart(survival);
        assert_eq!(
            found(&again, "/a"),
            Some(vec![1; 4 * BLOCK]),
            "{survival:?}"
        );
    }
}

#[test]
fn unsynced_data_is_gone_if_nothing_survives() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    write(&*file, 1, 2, 0);
    file.sync().unwrap();
    write(&*file, 2, 2, 1);
    let again = disk.restart(Survival::Nothing);
    assert_eq!(found(&again, "/a"), Some(vec![1; 2 * BLOCK]));
}

#[test]
fn unsynced_data_is_there_if_only_the_process_was_killed_but_can_still_be_lost() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    write(&*file, 1, 2, 0);
    let killed = disk.restart(Survival::Everything);
    assert_eq!(found(&killed, "/a"), Some(vec![1; 2 * BLOCK]));
    assert_eq!(
        found(&killed.restart(Survival::Nothing), "/a"),
        Some(vec![])
    );

    let file = killed.open(Path::new("/a"), Open::Write).unwrap();
    file.sync().unwrap();
    let crashed = killed.restart(Survival::Nothing);
    assert_eq!(found(&crashed, "/a"), Some(vec![1; 2 * BLOCK]));
}

#[test]
fn each_sector_of_each_unsynced_write_is_kept_or_lost() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    write(&*file, 1, 2, 0);
    file.sync().unwrap();
    write(&*file, 2, 2, 0);
    write(&*file, 3, 1, 1);
    let outcomes = outcomes(&disk, |again| sectors(&found(again, "/a").unwrap()));
    for sector in 0..16 {
        let values: BTreeSet<u8> = outcomes.iter().map(|sectors| sectors[sector]).collect();
        let possible = if sector < 8 {
            vec![1, 2]
        } else {
            vec![1, 2, 3]
        };
        assert!(values.iter().eq(&possible), "sector {sector}: {values:?}");
    }
    let any = |block: [u8; 8]| outcomes.iter().any(|sectors| sectors[..8] == block);
    assert!(
        any([1; 8]) && any([2; 8]),
        "whole writes are often kept or lost"
    );
    assert!(outcomes.len() > TRIES / 8, "{}", outcomes.len());
}

#[test]
fn a_later_write_may_survive_without_an_earlier_one() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    file.allocate(2 * PAGE).unwrap();
    file.sync().unwrap();
    write(&*file, 1, 1, 0);
    write(&*file, 1, 1, 1);
    let outcomes = outcomes(&disk, |again| found(again, "/a").unwrap());
    let gap = [[0; BLOCK], [1; BLOCK]].concat();
    assert!(outcomes.contains(&gap));
}

#[test]
fn unsynced_lengths_are_kept_or_lost() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    let lengths = |disk: &FaultyDisk| outcomes(disk, |again| found(again, "/a").unwrap().len());
    write(&*file, 1, 2, 0);
    assert_eq!(lengths(&disk), [0, 2 * BLOCK].into());
    file.sync().unwrap();
    file.allocate(8 * PAGE).unwrap();
    assert_eq!(lengths(&disk), [2 * BLOCK, 8 * BLOCK].into());
    file.sync().unwrap();
    file.set_len(PAGE).unwrap();
    assert_eq!(lengths(&disk), [BLOCK, 8 * BLOCK].into());
    let before = found(&disk.restart(Survival::Nothing), "/a").unwrap();
    assert_eq!(before.len(), 8 * BLOCK);
    file.sync().unwrap();
    assert_eq!(lengths(&disk), [BLOCK].into());
    assert_eq!(
        found(&disk.restart(Survival::Nothing), "/a"),
        Some(vec![1; BLOCK])
    );
}

#[test]
fn data_whose_length_was_lost_does_not_come_back() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    write(&*file, 1, 2, 0);
    let zeros = outcomes(&disk, |again| {
        let file = again.open(Path::new("/a"), Open::Write).unwrap();
        let was_empty = file.is_empty().unwrap();
        file.allocate(2 * PAGE).unwrap();
        was_empty && contents(&*file) != [0; 2 * BLOCK]
    });
    assert_eq!(zeros, [false].into());
}

#[test]
fn what_was_cut_off_reads_as_zeros_when_the_file_grows_again() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    write(&*file, 1, 2, 0);
    file.sync().unwrap();
    file.set_len(PAGE).unwrap();
    file.allocate(2 * PAGE).unwrap();
    let expected = [[1; BLOCK], [0; BLOCK]].concat();
    assert_eq!(contents(&*file), expected);
    file.sync().unwrap();
    assert_eq!(
        found(&disk.restart(Survival::Nothing), "/a"),
        Some(expected)
    );
}

#[test]
fn restarting_changes_neither_disk_by_the_other() {
    let disk = FaultyDisk::new(1);
    let file = marked(&disk, "/a", 1);
    let again = disk.restart(Survival::Nothing);
    write(&*file, 2, 1, 0);
    assert_eq!(mark(&again, "/a"), Some(1));
    marked(&again, "/a", 3);
    assert_eq!(contents(&*file), [2; BLOCK]);
}

#[test]
fn one_seed_gives_one_course_of_events() {
    let course = |seed| {
        let disk = FaultyDisk::new(seed);
        let file = create(&disk, "/a");
        write(&*file, 1, 8, 0);
        let ends = (0..4).map(|_| found(&disk.restart(Survival::Random), "/a"));
        ends.collect::<Vec<_>>()
    };
    assert_eq!(course(1), course(1));
    assert_ne!(course(1), course(2));
}

#[test]
fn large_files_of_which_little_is_written_are_cheap() {
    let disk = FaultyDisk::new(1);
    for name in 0..8 {
        let file = create(&disk, &format!("/{name}"));
        file.allocate(64 << 20).unwrap();
        write(&*file, 1, 1, 16_000);
        file.sync().unwrap();
        assert_eq!(file.len().unwrap(), 64 << 20);
    }
    // Copies would take 500 MiB of memory each.
    let again: Vec<FaultyDisk> = (0..TRIES).map(|_| disk.restart(Survival::Random)).collect();
    assert_eq!(list(&again[TRIES - 1], "/").len(), 8);
}
