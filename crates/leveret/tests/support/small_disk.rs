//! A file system of a few hundred megabytes, for the data of one broker: in memory, mounted where
//! only that broker sees it, or else with the rights of `sudo`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::Builder;

use super::folder::Folder;

pub struct SmallDisk {
    folder: Folder,
    mounted: Mounted,
}

enum Mounted {
    /// In the namespace of this process, which waits for the end of its standard input.
    ForOthers(Child),
    /// For everybody, by `sudo`.
    ForAll,
}

impl SmallDisk {
    /// # Panics
    /// If nobody lets us mount anything: a test of a full disk must not pass without one.
    pub fn new(megabytes: u32) -> SmallDisk {
        let folder = Folder::new("small-disk");
        let size = format!("size={megabytes}m");
        let unshared = match unshare(folder.path(), &size) {
            Ok(holder) => {
                let mounted = Mounted::ForOthers(holder);
                return SmallDisk { folder, mounted };
            }
            Err(reason) => reason,
        };
        match sudo_mount(folder.path(), &size) {
            Ok(()) => SmallDisk {
                folder,
                mounted: Mounted::ForAll,
            },
            Err(reason) => panic!(
                "no small file system to fill: `unshare -rm` and a tmpfs in it: {unshared}; \
                 `sudo -n mount`: {reason}. Allow one of them (on Ubuntu: \
                 sysctl kernel.apparmor_restrict_unprivileged_userns=0), or run as root"
            ),
        }
    }

    /// A broker that keeps its data on this disk.
    pub fn under(&self, builder: Builder) -> Builder {
        let builder = builder.data_dir(self.folder.path().join("data"));
        match &self.mounted {
            Mounted::ForAll => builder,
            Mounted::ForOthers(holder) => {
                let command = ["nsenter".to_owned()].into_iter().chain(enter(holder));
                builder.by_way_of(command)
            }
        }
    }

    /// Where this process finds the broker's data.
    pub fn data_dir(&self) -> PathBuf {
        let path = self.folder.path().join("data");
        match &self.mounted {
            Mounted::ForAll => path,
            Mounted::ForOthers(holder) => {
                let root = PathBuf::from(format!("/proc/{}/root", holder.id()));
                root.join(path.strip_prefix("/").expect("an absolute path"))
            }
        }
    }

    /// Bytes that are free.
    pub fn free(&self) -> u64 {
        let output = Command::new("stat")
            .args(["--file-system", "--format=%a %S"])
            .arg(self.data_dir())
            .output()
            .expect("stat");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<u64> = text.split_whitespace().flat_map(str::parse).collect();
        match numbers[..] {
            [blocks, size] => blocks * size,
            _ => panic!("stat says {output:?}"),
        }
    }

    /// From now on nobody can write to it.
    pub fn make_read_only(&self) {
        let mount = ["mount", "-o", "remount,bind,ro"];
        let mut command = match &self.mounted {
            Mounted::ForAll => Command::new("sudo"),
            Mounted::ForOthers(_) => Command::new("nsenter"),
        };
        match &self.mounted {
            Mounted::ForAll => command.arg("-n"),
            Mounted::ForOthers(holder) => command.args(enter(holder)),
        };
        let output = command.args(mount).arg(self.folder.path()).output();
        let output = output.expect("mount");
        assert!(output.status.success(), "{output:?}");
    }

    /// Takes all room that is left, for as long as the file is there.
    pub fn fill_up(&self) -> PathBuf {
        let path = self.data_dir().with_file_name("somebody else's");
        let filled = Command::new("dd")
            .args(["if=/dev/zero", "bs=4096", "status=none"])
            .arg(format!("of={}", path.display()))
            .output()
            .expect("dd");
        assert!(!filled.status.success(), "there is no end to this disk");
        assert!(fs::metadata(&path).is_ok(), "{filled:?}");
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        match &mut self.mounted {
            Mounted::ForOthers(holder) => {
                let _ = holder.kill();
                let _ = holder.wait();
            }
            Mounted::ForAll => {
                let path = self.folder.path();
                let _ = Command::new("sudo")
                    .args(["-n", "umount"])
                    .arg(path)
                    .status();
            }
        }
    }
}

/// Arguments of `nsenter`: into the namespaces of that process.
fn enter(holder: &Child) -> [String; 5] {
    let target = format!("--target={}", holder.id());
    let [user, mount] = ["--user", "--mount"].map(str::to_owned);
    [
        target,
        user,
        mount,
        "--preserve-credentials".into(),
        "--".into(),
    ]
}

/// Mounts it in a namespace of its own, whose process is returned.
fn unshare(path: &Path, size: &str) -> Result<Child, String> {
    const SCRIPT: &str = r#"mount -t tmpfs -o "$2,mode=700" tmpfs "$1" && echo ready && exec cat"#;
    let mut holder = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"])
        .arg(path)
        .arg(size)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    let stdout = holder.stdout.take().expect("piped");
    let _ = BufReader::new(stdout).read_line(&mut line);
    if line.trim() == "ready" {
        return Ok(holder);
    }
    let output = holder.wait_with_output().map_err(|e| e.to_string())?;
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

fn sudo_mount(path: &Path, size: &str) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let owner = fs::metadata(path).expect("our folder").uid();
    let mounted = Command::new("sudo")
        .args(["-n", "mount", "-t", "tmpfs", "-o"])
        .arg(format!("{size},uid={owner},mode=700"))
        .arg("tmpfs")
        .arg(path)
        .output()
        .map_err(|error| error.to_string())?;
    match mounted.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned()),
    }
}
