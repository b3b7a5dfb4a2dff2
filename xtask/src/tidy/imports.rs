//! Rules about what may name what: the direction of dependencies inside the crates.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Violation;
use super::tree::{File, Tree};

const LIBRARIES: [&str; 5] = ["registry-core", "replication", "http-api", "grpc-api", "client"];
const RUNTIMES: [&str; 4] = ["tokio", "hyper", "hyper_util", "tonic"];
/// The only modules of a library that may touch a runtime.
const EDGES: [&str; 5] = ["driver", "http", "keep_alive", "service", "watch"];
/// The same for the client alone: without the feature that brings the runtime, what is left of them is built without it.
const CLIENT_EDGES: [&str; 4] = ["cache", "caller", "discover", "grpc"];
/// What grpc-api speaks, and therefore names wherever it wants.
const SPOKEN: (&str, &str) = ("grpc-api", "tonic");
/// The machine's modules that `wire` may read: what bytes are made of, and nothing that decides.
const WIRE_READS: [&str; 6] = ["model", "snapshot", "repair", "time", "digest", "wire"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, syntax) in tree.rust() {
        let (directory, inside) = file.place();
        if !LIBRARIES.contains(&directory) || !inside.starts_with("src/") {
            continue;
        }
        let mut paths = Paths { found: Vec::new() };
        paths.visit_file(syntax);
        for (line, path) in &paths.found {
            if let Some((rule, message)) = forbidden(file, path) {
                violations.push(Violation::new(&file.path, *line, rule, message));
            }
        }
        if directory == "registry-core" && inside == "src/lib.rs" && !is_no_std(syntax) {
            let message = "registry-core is `no_std` without features: `#![no_std]` or `cfg_attr(.., no_std)` is missing";
            violations.push(Violation::new(&file.path, 1, "no-std", message));
        }
    }
    violations
}

fn forbidden(file: &File, path: &[String]) -> Option<(&'static str, String)> {
    let (directory, inside) = file.place();
    let root = path.first()?.as_str();
    let module = module_of(inside);
    let is_edge = EDGES.contains(&module) || (directory == "client" && CLIENT_EDGES.contains(&module));
    if RUNTIMES.contains(&root) && !is_edge && (directory, root) != SPOKEN {
        return Some((
            "runtime",
            format!("`{root}` belongs in {} or the server", EDGES.join(", ")),
        ));
    }
    if directory != "registry-core" {
        return None;
    }
    let target = inside_crate(path);
    match module {
        "lib" | "shared" => None,
        "wire" => target
            .filter(|target| !WIRE_READS.contains(target))
            .map(|target| {
                (
                    "wire",
                    format!("wire reads {} only, not `{target}`", WIRE_READS.join(", ")),
                )
            }),
        _ if root == "std" => Some((
            "machine",
            "the machine is no_std: use `core` or `alloc`".to_owned(),
        )),
        _ => target
            .filter(|target| ["shared", "wire"].contains(target))
            .map(|target| ("machine", format!("the machine does not know `{target}`"))),
    }
}

/// `wire` for `src/wire/json.rs` and for `src/wire.rs`.
fn module_of(inside: &str) -> &str {
    let inside = inside.trim_start_matches("src/");
    let module = inside.split('/').next().unwrap_or(inside);
    module.strip_suffix(".rs").unwrap_or(module)
}

/// The module of this crate that a path starts in, if it starts with `crate` (or climbs with `super`).
fn inside_crate(path: &[String]) -> Option<&str> {
    let mut parts = path
        .iter()
        .map(String::as_str)
        .skip_while(|part| *part == "super");
    match (path.first()?.as_str(), parts.next()?) {
        ("crate", _) => path
            .get(1)
            .map(String::as_str)
            .filter(|name| is_module_name(name)),
        ("super", target @ ("shared" | "wire")) => Some(target),
        _ => None,
    }
}

/// `crate::Instance` names a re-export, `crate::model` a module.
fn is_module_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_no_std(syntax: &syn::File) -> bool {
    syntax.attrs.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("no_std"),
        syn::Meta::List(list) => {
            list.path.is_ident("cfg_attr")
                && list
                    .tokens
                    .to_string()
                    .split([',', ' '])
                    .any(|token| token == "no_std")
        }
        syn::Meta::NameValue(_) => false,
    })
}

/// Every path of a file with its line, imports spelled out; test modules aside.
struct Paths {
    found: Vec<(usize, Vec<String>)>,
}

impl Paths {
    fn use_tree(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let mut path = prefix.to_vec();
        match tree {
            syn::UseTree::Path(next) => {
                path.push(next.ident.to_string());
                self.use_tree(&path, &next.tree);
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(&path, tree)),
            syn::UseTree::Name(name) => self.end(path, &name.ident),
            syn::UseTree::Rename(rename) => self.end(path, &rename.ident),
            syn::UseTree::Glob(glob) => self.found.push((glob.span().start().line, path)),
        }
    }

    fn end(&mut self, mut path: Vec<String>, name: &syn::Ident) {
        path.push(name.to_string());
        self.found.push((name.span().start().line, path));
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = item.attrs.iter().any(|attribute| {
            let list = attribute.meta.require_list();
            list.is_ok_and(|list| list.path.is_ident("cfg") && list.tokens.to_string() == "test")
        });
        if !is_test {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.end(Vec::new(), &item.ident);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let parts = path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect();
            self.found.push((path.span().start().line, parts));
        }
        visit::visit_path(self, path);
    }
}
