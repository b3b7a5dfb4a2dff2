//! The copy on disk: what goes in comes out, and what is there is never half of something.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use eureka_client::cache::copy::{CopyError, DiskCopy};
use eureka_client::call::Scope;
use eureka_registry_core::{
    Action, DataCenter, Instance, LeaseTerms, LeaseView, Metadata, Port, Status, Wall,
};
use tempfile::tempdir;

use super::{at, instance, lease, snapshot, up};

fn copy(path: &Path) -> DiskCopy {
    DiskCopy::new(path, &Scope::All, &[])
}

fn read(path: &Path) -> Vec<LeaseView> {
    copy(path).read().unwrap().unwrap().instances
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// No field has its default.
fn full() -> LeaseView {
    let text = |text: &str| Some(Arc::from(text));
    let machine = [
        ("instance-id", "i-1"),
        ("availability-zone", "us-east-1c"),
        ("", "empty"),
        ("ü/ß", "\u{1F980}"),
    ];
    let odd = [
        ("", "an empty key"),
        ("a/b", "/"),
        ("quote\"", "back\\slash"),
        ("<xml>", "&amp;"),
        ("line\nbreak", "\t\u{1}"),
        ("schlüssel", "größe \u{1F980}"),
        ("empty", ""),
        ("a.b:c d", " padded "),
        ("null", "null"),
    ];
    lease(Instance {
        instance_id: text("host:örders:8080/ü"),
        app: "ORDERS-Ü".into(),
        app_group: text("GROUP"),
        host_name: "host".into(),
        ip_address: "fe80::1".into(),
        sid: text("sid"),
        port: Port {
            number: 0,
            enabled: false,
        },
        secure_port: Port {
            number: -1,
            enabled: true,
        },
        home_page_url: text("http://host/"),
        status_page_url: text("http://host/info"),
        health_check_url: text("http://host/health"),
        secure_health_check_url: text("https://host/health"),
        vip_address: text("a,b"),
        secure_vip_address: text("c,,d"),
        country_id: 49,
        data_center: DataCenter::Amazon(machine.into_iter().collect()),
        status: Status::OutOfService,
        overridden_status: Status::OutOfService,
        lease: LeaseTerms {
            renewal_interval_secs: 7,
            duration_secs: 21,
        },
        metadata: odd.into_iter().collect::<Metadata>(),
        last_dirty: Some(1_699_999_999_999),
        asg_name: text("asg"),
    })
}

#[test]
fn every_field_comes_back() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("copy");
    let mut full = full();
    full.action = Action::Modified;
    full.coordinating = true;
    full.lease.evicted = Wall(1_700_000_000_009);
    let mut bare = lease(Instance::new("BARE", "", "host", ""));
    bare.instance = Arc::new(Instance {
        last_dirty: None,
        data_center: DataCenter::Netflix,
        ..(*bare.instance).clone()
    });
    // In the order of their keys.
    let views = [bare, up("ORDERS", "1"), full];
    copy(&path)
        .write(Wall(1_700_000_123_456), &snapshot(views.clone()))
        .unwrap();
    let saved = copy(&path).read().unwrap().unwrap();
    assert_eq!(saved.instances, views);
    assert_eq!(saved.at, Wall(1_700_000_123_456));
    assert_eq!(saved.left_out, 0);
    assert_eq!(copy(&path).load(), Some(saved));
    assert_eq!(names(directory.path()), ["copy"], "no temporary file stays");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn many_instances_and_none_come_back() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("copy");
    for count in [0, 1, 2_000] {
        let views: Vec<_> = (0..count)
            .map(|index| up(&format!("APP-{:03}", index / 7), &format!("{index:05}")))
            .collect();
        copy(&path).write(at(0).wall, &snapshot(views.clone())).unwrap();
        assert_eq!(read(&path), views);
    }
}

#[test]
fn no_file_is_no_copy_and_no_error() {
    let directory = tempdir().unwrap();
    assert!(copy(&directory.path().join("copy")).read().unwrap().is_none());
    assert!(copy(&directory.path().join("copy")).load().is_none());
}

#[test]
fn what_is_of_something_else_is_refused() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("copy");
    let regions = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<_>>();
    let subjects = [
        (Scope::All, regions(&[])),
        (Scope::All, regions(&["eu"])),
        (Scope::All, regions(&["eu", "us"])),
        (Scope::All, regions(&["eu,us"])),
        (Scope::Vip("a b;regions=".into()), regions(&[])),
        (Scope::SecureVip("a b;regions=".into()), regions(&[])),
        (Scope::Vip("ü\n".into()), regions(&[])),
    ];
    for (index, (scope, regions)) in subjects.iter().enumerate() {
        DiskCopy::new(&path, scope, regions)
            .write(at(0).wall, &snapshot([up("A", "1")]))
            .unwrap();
        for (other, (scope, regions)) in subjects.iter().enumerate() {
            let result = DiskCopy::new(&path, scope, regions).read();
            if index == other {
                assert_eq!(result.unwrap().unwrap().instances.len(), 1, "{scope:?}");
            } else {
                assert!(
                    matches!(result, Err(CopyError::Subject(_))),
                    "{index} read as {other}"
                );
            }
        }
    }
    assert_eq!(
        names(directory.path()),
        ["copy"],
        "what was refused is still there"
    );
}

#[test]
fn a_directory_that_is_missing_or_none_does_no_harm() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "something else").unwrap();
    for path in [directory.path().join("missing/copy"), file.join("copy")] {
        let copy = copy(&path);
        assert!(matches!(
            copy.write(at(0).wall, &snapshot([])),
            Err(CopyError::Disk("create a file beside it", _))
        ));
        assert_eq!(copy.load(), None);
        assert_eq!(copy.stats().failed, 1);
        assert_eq!(copy.stats().written, 0);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "something else");
    assert_eq!(names(directory.path()), ["file"]);
}

#[test]
fn what_cannot_be_replaced_stays_and_leaves_no_temporary_file() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("copy");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "").unwrap();
    assert!(matches!(
        copy(&path).write(at(0).wall, &snapshot([])),
        Err(CopyError::Disk("replace it", _))
    ));
    assert!(matches!(copy(&path).read(), Err(CopyError::NoFile)));
    assert_eq!(names(directory.path()), ["copy"]);
    assert_eq!(names(&path), ["inside"]);
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    assert!(matches!(copy(&path).read(), Err(CopyError::NoFile)));
    // Nor replaced: it might as well be a device that others need. The same by a link, as `/dev/stdout` is one.
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    for special in [&path, &link] {
        let written = copy(special).write(at(0).wall, &snapshot([up("A", "1")]));
        assert!(matches!(written, Err(CopyError::NoFile)), "{written:?}");
        assert!(!fs::metadata(special).unwrap().is_file());
    }
    assert_eq!(names(directory.path()), ["link", "pipe"]);
}

#[test]
fn a_symbolic_link_is_followed_when_read_and_replaced_when_written() {
    let directory = tempdir().unwrap();
    let (target, link) = (directory.path().join("target"), directory.path().join("link"));
    copy(&target)
        .write(at(0).wall, &snapshot([up("A", "old")]))
        .unwrap();
    symlink(&target, &link).unwrap();
    assert_eq!(read(&link), [up("A", "old")]);
    copy(&link)
        .write(at(1).wall, &snapshot([up("A", "new")]))
        .unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
    assert_eq!(read(&link), [up("A", "new")]);
    assert_eq!(read(&target), [up("A", "old")], "what it pointed to is as it was");

    let dangling = directory.path().join("dangling");
    symlink(directory.path().join("nowhere"), &dangling).unwrap();
    assert!(copy(&dangling).read().unwrap().is_none());
}

#[test]
fn what_a_dead_process_left_is_removed_by_a_later_one() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("copy");
    let now = Wall(1_700_000_000_000);
    copy(&path).write(now, &snapshot([up("A", "old")])).unwrap();
    let modified = |name: &str, secs_ago: u64| {
        let file = directory.path().join(name);
        fs::write(&file, "EUREKA-COPY 1 half of it").unwrap();
        let time = UNIX_EPOCH + Duration::from_millis(now.0) - Duration::from_secs(secs_ago);
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    modified(".copy.77-1700.tmp", 601);
    modified(".copy.77-1701.tmp", 599);
    modified(".copy.me-7.tmp", 601);
    modified(".copy2.77-1700.tmp", 601);
    assert_eq!(
        read(&path),
        [up("A", "old")],
        "it died before it renamed: the old copy counts"
    );
    copy(&path).write(now, &snapshot([up("A", "new")])).unwrap();
    assert_eq!(
        names(directory.path()),
        [
            ".copy.77-1701.tmp",
            ".copy.me-7.tmp",
            ".copy2.77-1700.tmp",
            "copy"
        ],
        "what may still be written, and what is not ours, stays"
    );
    assert_eq!(read(&path), [up("A", "new")]);
}

#[test]
fn two_writers_of_one_path_leave_one_whole_copy() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("copy");
    let of = |name: &str, count: usize| -> Vec<_> {
        (0..count)
            .map(|index| lease(instance(name, &format!("{index:04}"), Status::Up)))
            .collect()
    };
    let (small, large) = (of("SMALL", 3), of("LARGE", 300));
    copy(&path).write(at(0).wall, &snapshot(small.clone())).unwrap();
    std::thread::scope(|scope| {
        let writers = [small.clone(), large.clone()].map(|views| {
            let (path, snapshot) = (path.clone(), snapshot(views));
            scope.spawn(move || {
                for _ in 0..100 {
                    copy(&path).write(at(0).wall, &snapshot).unwrap();
                }
            })
        });
        while !writers.iter().all(|writer| writer.is_finished()) {
            let found = read(&path);
            assert!(found == small || found == large, "{} instances", found.len());
        }
    });
    assert_eq!(names(directory.path()), ["copy"]);
}
