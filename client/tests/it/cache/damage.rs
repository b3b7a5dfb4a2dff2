//! Copies that are damaged, cut, foreign, or from the future.

use std::fs;
use std::path::PathBuf;

use eureka_client::cache::copy::{BODY_MAX, CopyError, DiskCopy, Saved};
use eureka_client::call::Scope;
use tempfile::{TempDir, tempdir};

use super::{at, snapshot, up};

struct Subject {
    _directory: TempDir,
    path: PathBuf,
    /// A good copy, and what it holds.
    bytes: Vec<u8>,
    saved: Saved,
}

impl Subject {
    fn new() -> Self {
        let directory = tempdir().unwrap();
        let path = directory.path().join("copy");
        let copy = DiskCopy::new(&path, &Scope::Vip("pay".into()), &[]);
        copy.write(at(0).wall, &snapshot([up("A", "1")])).unwrap();
        Self {
            bytes: fs::read(&path).unwrap(),
            saved: copy.read().unwrap().unwrap(),
            _directory: directory,
            path,
        }
    }

    fn read(&self, bytes: &[u8]) -> Result<Saved, CopyError> {
        fs::write(&self.path, bytes).unwrap();
        let copy = DiskCopy::new(&self.path, &Scope::Vip("pay".into()), &[]);
        Ok(copy.read()?.unwrap())
    }

    /// The copy with another first line.
    fn with_line(&self, line: &str) -> Result<Saved, CopyError> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n').unwrap();
        self.read(&[line.as_bytes(), &self.bytes[end..]].concat())
    }

    fn line(&self) -> String {
        let end = self.bytes.iter().position(|byte| *byte == b'\n').unwrap();
        String::from_utf8(self.bytes[..end].to_vec()).unwrap()
    }
}

#[test]
fn a_flipped_bit_of_any_byte_is_noticed() {
    let subject = Subject::new();
    assert_eq!(subject.read(&subject.bytes).unwrap(), subject.saved);
    let line = subject.line().len();
    for index in 0..subject.bytes.len() {
        // Every bit of the first line, which is read before the check sum is; one of each byte behind it.
        let bits = if index <= line {
            0..8
        } else {
            index % 8..index % 8 + 1
        };
        for bit in bits {
            let mut bytes = subject.bytes.clone();
            bytes[index] ^= 1 << bit;
            let result = subject.read(&bytes);
            assert!(result.is_err(), "bit {bit} of byte {index}: {result:?}");
        }
    }
}

#[test]
fn any_other_length_is_noticed() {
    let subject = Subject::new();
    for length in 0..subject.bytes.len() {
        let result = subject.read(&subject.bytes[..length]);
        assert!(result.is_err(), "{length} bytes: {result:?}");
    }
    for behind in [" ", "\n", "\0", "{}"] {
        let longer = [&subject.bytes, behind.as_bytes()].concat();
        assert!(matches!(subject.read(&longer), Err(CopyError::Length { .. })));
    }
}

#[test]
fn another_file_is_foreign() {
    let subject = Subject::new();
    let long = "x".repeat(200_000);
    let line_without_end = format!("EUREKA-COPY 1 00000000 1 1 {long}");
    for text in [
        "",
        "\n",
        "{}",
        "root:x:0:0:root:/root:/bin/bash\n",
        "EUREKA-COPY",
        "EUREKA-COPY \n",
        "EUREKA-COPY 0 00000000 1 1 all\n",
        "EUREKA-COPY 1 00000000 -1 1 all\n",
        "EUREKA-COPY 1 00000000 1 99999999999999999999 all\n",
        "EUREKA-COPY 1 00000000 1\n",
        &long,
        &line_without_end,
    ] {
        let result = subject.read(text.as_bytes());
        assert!(
            matches!(result, Err(CopyError::Foreign)),
            "{:.40}: {result:?}",
            text
        );
    }
    assert!(matches!(
        subject.read(b"EUREKA-COPY 1 \xff\n"),
        Err(CopyError::Foreign)
    ));
}

#[test]
fn a_newer_version_is_refused_whatever_else_it_says() {
    let subject = Subject::new();
    for line in [
        subject.line().replacen(" 1 ", " 2 ", 1),
        "EUREKA-COPY 7 anything".to_owned(),
    ] {
        let result = subject.with_line(&line);
        assert!(
            matches!(result, Err(CopyError::Version(2 | 7))),
            "{line}: {result:?}"
        );
    }
    assert_eq!(CopyError::Version(2).to_string(), "of a newer version (2)");
}

#[test]
fn a_length_is_not_believed() {
    let subject = Subject::new();
    let line = subject.line();
    let fields: Vec<&str> = line.split(' ').collect();
    let with_length = |length: &str| {
        let mut fields = fields.clone();
        fields[4] = length;
        subject.with_line(&fields.join(" "))
    };
    let length: u64 = fields[4].parse().unwrap();
    for wrong in [0, 1, length - 1, length + 1, BODY_MAX] {
        let result = with_length(&wrong.to_string());
        assert!(
            matches!(result, Err(CopyError::Length { told, .. }) if told == wrong),
            "{result:?}"
        );
    }
    assert!(matches!(
        with_length(&(BODY_MAX + 1).to_string()),
        Err(CopyError::TooLarge(_))
    ));
    assert!(matches!(
        with_length(&u64::MAX.to_string()),
        Err(CopyError::TooLarge(_))
    ));
    assert!(matches!(
        with_length(&format!("0{length}")),
        Err(CopyError::Checksum)
    ));
}

#[test]
fn the_time_is_covered_by_the_check_sum() {
    let subject = Subject::new();
    let line = subject
        .line()
        .replacen(&at(0).wall.0.to_string(), &at(1).wall.0.to_string(), 1);
    assert!(matches!(subject.with_line(&line), Err(CopyError::Checksum)));
}

#[test]
fn what_was_refused_stays_until_the_next_copy() {
    let subject = Subject::new();
    let foreign = b"somebody else's";
    assert!(subject.read(foreign).is_err());
    let copy = DiskCopy::new(&subject.path, &Scope::Vip("pay".into()), &[]);
    assert_eq!(copy.load(), None);
    assert_eq!(fs::read(&subject.path).unwrap(), foreign);
    copy.write(at(0).wall, &snapshot([up("A", "1")])).unwrap();
    assert_eq!(copy.load(), Some(subject.saved));
}
