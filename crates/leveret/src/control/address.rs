//! Where the control socket is.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const NAME: &str = "control.sock";
/// Bytes that the address of a Unix socket holds on every system, with the zero at its end.
const MAX_ADDRESS: usize = 100;

/// The socket of the server that uses that directory.
pub fn in_data_dir(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// A path that the address of a socket has room for.
pub struct Short {
    /// Leads to the same file, while this lives.
    pub path: PathBuf,
    _dir: Option<File>,
}

impl Short {
    /// Where the path is too long, it goes by way of its open directory.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn new(path: &Path) -> io::Result<Short> {
        if path.as_os_str().len() < MAX_ADDRESS {
            return Ok(Short {
                path: path.to_owned(),
                _dir: None,
            });
        }
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let dir = File::open(parent.unwrap_or(Path::new(".")))?;
        let name = path.file_name().unwrap_or_default();
        let by_number = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
        Ok(Short {
            path: by_number.join(name),
            _dir: Some(dir),
        })
    }
}
