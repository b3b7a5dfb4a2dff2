//! The first line of a copy.

use std::sync::Arc;

use eureka_registry_core::Wall;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{BODY_MAX, CopyError};
use crate::call::Scope;

const MAGIC: &str = "EUREKA-COPY";
const VERSION: u64 = 1;

/// What a copy says of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) saved: Wall,
    /// Of the body, in bytes.
    pub(super) length: u64,
}

/// A first line that was read, before the body is.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) header: Header,
    checksum: &'a str,
    /// What the check sum covers of the line itself.
    covered: &'a str,
}

impl Header {
    /// The line, with its end.
    pub(super) fn line(&self, subject: &str, body: &[u8]) -> Vec<u8> {
        let covered = format!("{} {} {subject}\n", self.saved.0, self.length);
        let checksum = checksum(&covered, body);
        format!("{MAGIC} {VERSION} {checksum} {covered}").into_bytes()
    }
}

impl<'a> Line<'a> {
    /// Reads a line with its end. What it names is compared first with what is wanted: a copy of something else may be as
    /// large as it likes.
    pub(super) fn read(line: &'a [u8], wanted: &str) -> Result<Self, CopyError> {
        let line = std::str::from_utf8(line).map_err(|_| CopyError::Foreign)?;
        let rest = line.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(' '));
        let (version, rest) = rest
            .and_then(|rest| rest.split_once(' '))
            .ok_or(CopyError::Foreign)?;
        match version.parse() {
            Ok(VERSION) => {}
            Ok(newer) if newer > VERSION => return Err(CopyError::Version(newer)),
            Ok(_) | Err(_) => return Err(CopyError::Foreign),
        }
        let (checksum, covered) = rest.split_once(' ').ok_or(CopyError::Foreign)?;
        let mut fields = covered
            .strip_suffix('\n')
            .ok_or(CopyError::Foreign)?
            .splitn(3, ' ');
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (Some(saved), Some(length)) = (number(), number()) else {
            return Err(CopyError::Foreign);
        };
        let subject = fields.next().ok_or(CopyError::Foreign)?;
        if subject != wanted {
            return Err(CopyError::Subject(subject.chars().take(300).collect()));
        }
        if length > BODY_MAX {
            return Err(CopyError::TooLarge(length));
        }
        Ok(Self {
            header: Header {
                saved: Wall(saved),
                length,
            },
            checksum,
            covered,
        })
    }

    /// Compares the body.
    pub(super) fn check(&self, body: &[u8]) -> Result<(), CopyError> {
        let found = body.len() as u64;
        if found != self.header.length {
            return Err(CopyError::Length {
                told: self.header.length,
                found,
            });
        }
        if checksum(self.covered, body) != self.checksum {
            return Err(CopyError::Checksum);
        }
        Ok(())
    }
}

/// What a copy is of, without spaces.
pub(super) fn subject(scope: &Scope, regions: &[Arc<str>]) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let scope = match scope {
        Scope::All => "all".to_owned(),
        Scope::Vip(vip) => format!("vip={}", encoded(vip)),
        Scope::SecureVip(vip) => format!("secure-vip={}", encoded(vip)),
    };
    let regions: Vec<String> = regions.iter().map(|region| encoded(region)).collect();
    format!("{scope};regions={}", regions.join(","))
}

fn checksum(covered: &str, body: &[u8]) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(covered.as_bytes());
    hasher.update(body);
    format!("{:08x}", hasher.finalize())
}
