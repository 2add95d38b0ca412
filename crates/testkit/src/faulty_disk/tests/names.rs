//! Which names survive, and what they lead to.

use super::*;

#[test]
fn a_new_name_may_be_lost_until_its_directory_is_synced() {
    let disk = FaultyDisk::new(1);
    let file = disk.open(Path::new("/a"), Open::Create).unwrap();
    write(&*file, 1, 1, 0);
    file.sync().unwrap();
    assert_eq!(mark(&disk.restart(Survival::Nothing), "/a"), None);
    assert_eq!(mark(&disk.restart(Survival::Everything), "/a"), Some(1));
    assert_eq!(
        outcomes(&disk, |again| mark(again, "/a")),
        [None, Some(1)].into()
    );
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(mark(&disk.restart(Survival::Nothing), "/a"), Some(1));
}

#[test]
fn a_removed_name_may_come_back_until_its_directory_is_synced() {
    let disk = FaultyDisk::new(1);
    marked(&disk, "/a", 1);
    disk.remove(Path::new("/a")).unwrap();
    assert_eq!(mark(&disk, "/a"), None);
    assert_eq!(mark(&disk.restart(Survival::Nothing), "/a"), Some(1));
    assert_eq!(mark(&disk.restart(Survival::Everything), "/a"), None);
    assert_eq!(
        outcomes(&disk, |again| mark(again, "/a")),
        [None, Some(1)].into()
    );
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(outcomes(&disk, |again| mark(again, "/a")), [None].into());
}

#[test]
fn a_renamed_file_is_found_under_its_old_name_or_its_new_one_or_both() {
    let disk = FaultyDisk::new(1);
    marked(&disk, "/b", 2);
    marked(&disk, "/a", 1);
    disk.rename(Path::new("/a"), Path::new("/b")).unwrap();
    let names = |again: &FaultyDisk| (mark(again, "/a"), mark(again, "/b"));
    assert_eq!(names(&disk), (None, Some(1)));
    assert_eq!(names(&disk.restart(Survival::Nothing)), (Some(1), Some(2)));
    assert_eq!(names(&disk.restart(Survival::Everything)), (None, Some(1)));
    let possible = [(Some(1), Some(2)), (None, Some(1)), (Some(1), Some(1))];
    assert_eq!(outcomes(&disk, names), possible.into());
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(outcomes(&disk, names), [(None, Some(1))].into());
}

#[test]
fn renaming_does_nothing_if_both_names_lead_to_the_file() {
    let disk = FaultyDisk::new(1);
    marked(&disk, "/a", 1);
    disk.rename(Path::new("/a"), Path::new("/b")).unwrap();
    let names = |again: &FaultyDisk| (mark(again, "/a"), mark(again, "/b"));
    let both = (Some(1), Some(1));
    let again = (0..TRIES).map(|_| disk.restart(Survival::Random));
    let again = again
        .into_iter()
        .find(|again| names(again) == both)
        .unwrap();
    again.rename(Path::new("/a"), Path::new("/b")).unwrap();
    assert_eq!(names(&again), both);
    again.remove(Path::new("/a")).unwrap();
    assert_eq!(names(&again), (None, Some(1)));
}

#[test]
fn a_file_that_moved_is_found_even_if_its_old_name_is_used_again() {
    let disk = FaultyDisk::new(1);
    marked(&disk, "/a", 1);
    disk.rename(Path::new("/a"), Path::new("/b")).unwrap();
    disk.open(Path::new("/a"), Open::Create).unwrap();
    let names = |again: &FaultyDisk| (mark(again, "/a"), mark(again, "/b"));
    let possible = [
        (Some(1), None),
        (Some(1), Some(1)),
        (None, Some(1)),
        (Some(0), Some(1)),
    ];
    assert_eq!(outcomes(&disk, names), possible.into());
}

#[test]
fn either_directory_makes_the_new_name_durable_when_a_file_moved() {
    for (synced, possible) in [
        ("/x", vec![(None, Some(1))]),
        ("/y", vec![(None, Some(1)), (Some(1), Some(1))]),
    ] {
        let disk = FaultyDisk::new(1);
        disk.create_dir(Path::new("/x")).unwrap();
        disk.create_dir(Path::new("/y")).unwrap();
        marked(&disk, "/x/a", 1);
        disk.rename(Path::new("/x/a"), Path::new("/y/a")).unwrap();
        disk.sync_dir(Path::new(synced)).unwrap();
        let outcomes = outcomes(&disk, |again| (mark(again, "/x/a"), mark(again, "/y/a")));
        assert!(outcomes.iter().eq(&possible), "{synced}: {outcomes:?}");
    }
}

#[test]
fn a_replaced_name_leads_to_the_old_file_or_to_the_new_one() {
    let disk = FaultyDisk::new(1);
    marked(&disk, "/a", 1);
    let file = disk.open(Path::new("/a"), Open::Create).unwrap();
    assert_eq!(mark(&disk, "/a"), Some(0));
    write(&*file, 2, 1, 0);
    file.sync().unwrap();
    assert_eq!(
        outcomes(&disk, |again| mark(again, "/a")),
        [Some(1), Some(2)].into()
    );
}

#[test]
fn removed_and_replaced_files_stay_usable_through_their_handles() {
    let disk = FaultyDisk::new(1);
    let removed = marked(&disk, "/removed", 1);
    let replaced = marked(&disk, "/replaced", 2);
    let renamed_over = marked(&disk, "/renamed-over", 3);
    disk.remove(Path::new("/removed")).unwrap();
    disk.open(Path::new("/replaced"), Open::Create).unwrap();
    disk.rename(Path::new("/replaced"), Path::new("/renamed-over"))
        .unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    for (file, byte) in [(removed, 1), (replaced, 2), (renamed_over, 3)] {
        assert_eq!(contents(&*file), [byte; BLOCK]);
        write(&*file, 9, 1, 1);
        file.sync().unwrap();
        assert_eq!(contents(&*file)[BLOCK..], [9; BLOCK]);
    }
    assert_eq!(list(&disk, "/"), [Path::new("renamed-over")]);
}

#[test]
fn directories_are_durable_at_once_with_those_above_them() {
    let disk = FaultyDisk::new(1);
    disk.create_dir(Path::new("data/queues/1")).unwrap();
    disk.create_dir(Path::new("data/queues/1")).unwrap();
    let again = disk.restart(Survival::Nothing);
    assert_eq!(list(&again, "data"), [Path::new("queues")]);
    assert_eq!(list(&again, "data/queues"), [Path::new("1")]);
    assert!(list(&again, "elsewhere").is_empty());
}

#[test]
fn a_removed_directory_may_come_back_until_the_one_above_is_synced() {
    let disk = FaultyDisk::new(1);
    disk.create_dir(Path::new("/d/e")).unwrap();
    marked(&disk, "/d/e/a", 1);
    disk.remove(Path::new("/d/e/a")).unwrap();
    disk.remove_dir(Path::new("/d/e")).unwrap();
    disk.remove_dir(Path::new("/d")).unwrap();
    let look = |again: &FaultyDisk| (list(again, "/").len(), list(again, "/d").len());
    let outcomes = outcomes(&disk, |again| (look(again), mark(again, "/d/e/a")));
    let possible = [
        ((0, 0), None),
        ((1, 0), None),
        ((1, 1), None),
        ((1, 1), Some(1)),
    ];
    assert_eq!(outcomes, possible.into());
    assert_eq!(mark(&disk.restart(Survival::Nothing), "/d/e/a"), Some(1));
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(look(&disk.restart(Survival::Nothing)), (0, 0));
}

#[test]
fn a_directory_that_is_made_again_is_empty_for_good() {
    let disk = FaultyDisk::new(1);
    disk.create_dir(Path::new("/d")).unwrap();
    marked(&disk, "/d/a", 1);
    disk.remove(Path::new("/d/a")).unwrap();
    disk.remove_dir(Path::new("/d")).unwrap();
    disk.create_dir(Path::new("/d")).unwrap();
    assert_eq!(outcomes(&disk, |again| list(again, "/d")), [vec![]].into());
}
