//! The files that the rules look at, with each Rust file parsed once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// All text files of the work tree by their path from its root, with `/` between the parts.
#[derive(Default)]
pub(super) struct Tree {
    files: BTreeMap<String, File>,
    /// Files that are kept byte for byte: only their names count.
    kept: Vec<String>,
}

pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
    /// The syntax of a Rust file; the message and line of the parser if it has none.
    pub(super) syntax: Option<Result<syn::File, (usize, String)>>,
}

impl Tree {
    /// Reads what git tracks or would track.
    pub(super) fn read() -> Result<Self> {
        let root = crate::root();
        let listing = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(&root)
            .output()
            .context("git ls-files")?;
        if !listing.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
        }
        let mut tree = Self::default();
        for path in String::from_utf8(listing.stdout)?.split_terminator('\0') {
            tree.read_file(&root, path)?;
        }
        Ok(tree)
    }

    fn read_file(&mut self, root: &Path, path: &str) -> Result<()> {
        let file: PathBuf = root.join(path);
        if !file.is_file() {
            return Ok(()); // deleted but not yet committed
        }
        let bytes = std::fs::read(&file).with_context(|| path.to_owned())?;
        match String::from_utf8(bytes) {
            Ok(text) if !is_kept_byte_for_byte(path) => self.add(path, text),
            _ => self.kept.push(path.to_owned()),
        }
        Ok(())
    }

    pub(super) fn add(&mut self, path: &str, text: impl Into<String>) {
        let text = text.into();
        let syntax = path
            .ends_with(".rs")
            .then(|| syn::parse_file(&text).map_err(|error| (error.span().start().line, error.to_string())));
        self.files.insert(
            path.to_owned(),
            File {
                path: path.to_owned(),
                text,
                syntax,
            },
        );
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// The Rust files that parse.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&File, &syn::File)> {
        self.files.values().filter_map(|file| match &file.syntax {
            Some(Ok(syntax)) => Some((file, syntax)),
            _ => None,
        })
    }

    /// Whether a file or directory of that name is in the tree.
    pub(super) fn holds(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        let mut names = self.files.keys().chain(&self.kept);
        names.any(|name| name == path || name.starts_with(&directory))
    }
}

impl File {
    /// The crate's directory and the path inside of it.
    pub(super) fn place(&self) -> (&str, &str) {
        self.path.split_once('/').unwrap_or(("", &self.path))
    }

    /// `lease` for `registry-core/src/lease.rs`.
    pub(super) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.strip_suffix(".rs").unwrap_or(name)
    }
}

/// Recordings, corpora, generated code and lock files stay as whatever made them wrote them.
fn is_kept_byte_for_byte(path: &str) -> bool {
    let parts = ["golden", "corpus", "recorded", "generated"];
    let names = ["Cargo.lock", "go.sum", "package-lock.json", "LICENSE"];
    path.split('/').any(|part| parts.contains(&part))
        || path.rsplit('/').next().is_some_and(|name| names.contains(&name))
        || [".jsonl", ".gz"].iter().any(|suffix| path.ends_with(suffix))
}
