//! The file itself: read with bounds, replaced as a whole.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use eureka_registry_core::Wall;

use super::CopyError;
use super::header::{Header, Line};

/// A longer first line is not ours: names of many regions fit.
const LINE_MAX: u64 = 64 * 1024;
/// A temporary file this old belongs to nobody who still writes.
const LEFTOVER_AGE: Duration = Duration::from_secs(600);
/// Of a directory, at most so many entries are looked at for leftovers.
const ENTRIES_MAX: usize = 10_000;
/// Names that are tried for a temporary file.
const NAMES: u64 = 16;

/// Header and body, checked; `None` if there is no file. Reads no more than the first line says, and believes that only if
/// the file is as long.
pub(super) fn read(path: &Path, subject: &str) -> Result<Option<(Header, Vec<u8>)>, CopyError> {
    // Before it is opened: to open a pipe waits for somebody who writes.
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CopyError::Disk("look at it", error)),
    };
    if !about.is_file() {
        return Err(CopyError::NoFile);
    }
    let file = File::open(path).map_err(|error| CopyError::Disk("open it", error))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let failed = |error| CopyError::Disk("read it", error);
    (&mut reader)
        .take(LINE_MAX)
        .read_until(b'\n', &mut line)
        .map_err(failed)?;
    let line = Line::read(&line, subject)?;
    let mut body = Vec::new();
    // One more than expected, to notice it.
    (&mut reader)
        .take(line.header.length + 1)
        .read_to_end(&mut body)
        .map_err(failed)?;
    line.check(&body)?;
    Ok(Some((line.header, body)))
}

/// Writes the parts to a new file beside `path`, and renames it to that.
pub(super) fn replace(now: Wall, path: &Path, parts: &[&[u8]]) -> Result<(), CopyError> {
    if is_special(path) {
        return Err(CopyError::NoFile);
    }
    let (mut file, temporary) =
        create_beside(now, path).map_err(|error| CopyError::Disk("create a file beside it", error))?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    let synced = written.and_then(|()| file.sync_all());
    drop(file);
    let renamed = synced
        .map_err(|error| CopyError::Disk("write it", error))
        .and_then(|()| fs::rename(&temporary, path).map_err(|error| CopyError::Disk("replace it", error)));
    if renamed.is_err() {
        // If that fails too, a later process removes it.
        _ = fs::remove_file(&temporary);
        return renamed;
    }
    // So that the new name outlives a loss of power. Not every file system can; then the old copy may come back, whole.
    if cfg!(unix) {
        _ = File::open(directory(path)).and_then(|directory| directory.sync_all());
    }
    Ok(())
}

/// Whether there is a pipe or a device, which renaming would take away from everybody: who is root and names `/dev/null`, so
/// as to have no copy, would leave a system without it. (A directory is safe from that.)
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// Removes temporary files that processes left when they died. What cannot be removed stays.
pub(super) fn remove_leftovers(now: Wall, path: &Path) {
    let (Some(name), Ok(entries)) = (path.file_name(), fs::read_dir(directory(path))) else {
        return;
    };
    for entry in entries.take(ENTRIES_MAX).flatten() {
        if is_temporary(&entry.file_name(), name) && is_leftover(now, &entry) {
            _ = fs::remove_file(entry.path());
        }
    }
}

fn is_leftover(now: Wall, entry: &fs::DirEntry) -> bool {
    let Ok(about) = entry.metadata() else { return false };
    let Ok(modified) = about.modified() else {
        return false;
    };
    let now = UNIX_EPOCH + Duration::from_millis(now.0);
    let old = now.duration_since(modified).is_ok_and(|age| age > LEFTOVER_AGE);
    about.is_file() && old
}

/// A new file: the name may be that of somebody else with the same process id, in another container.
fn create_beside(now: Wall, path: &Path) -> io::Result<(File, PathBuf)> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path names no file",
        ));
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 0..NAMES {
        let temporary = directory(path).join(temporary(name, now.0.saturating_add(attempt)));
        match options.open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// `.NAME.PROCESS-NUMBER.tmp`
fn temporary(name: &OsStr, number: u64) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{number}.tmp", std::process::id()));
    temporary
}

fn is_temporary(candidate: &OsStr, name: &OsStr) -> bool {
    let middle = candidate.as_encoded_bytes().strip_prefix(b".");
    let middle = middle.and_then(|rest| rest.strip_prefix(name.as_encoded_bytes()));
    let middle = middle.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(b".tmp"));
    middle.is_some_and(|middle| middle.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-'))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}
