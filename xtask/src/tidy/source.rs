//! Rules about items: what a file may hold and how long a function is.

use std::collections::BTreeSet;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Violation;
use super::tree::Tree;

const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.files() {
        if let Some(Err((line, error))) = &file.syntax {
            violations.push(Violation::new(&file.path, *line, "syntax", error.clone()));
        }
    }
    for (file, syntax) in tree.rust() {
        let mut functions = Functions {
            path: &file.path,
            violations: &mut violations,
        };
        functions.visit_file(syntax);
        if file.path.ends_with("src/lib.rs") {
            facade(&file.path, syntax, &mut violations);
        }
    }
    unreached_files(tree, &mut violations);
    violations
}

struct Functions<'a> {
    path: &'a str,
    violations: &'a mut Vec<Violation>,
}

impl Functions<'_> {
    fn function(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        block: Option<&syn::Block>,
    ) {
        let line = signature.span().start().line;
        let end = block.map_or(line, |block| block.span().end().line);
        if end + 1 - line > FUNCTION_LINES_MAX {
            let message = format!(
                "`{}` has {} lines, {FUNCTION_LINES_MAX} are allowed",
                signature.ident,
                end + 1 - line
            );
            self.push(line, "function-length", message);
        }
        let names: Vec<_> = signature.inputs.iter().filter_map(argument_name).collect();
        if names.iter().skip(1).any(|name| name == "now") {
            self.push(
                line,
                "now-first",
                format!("`{}`: `now` is the first argument", signature.ident),
            );
        }
        if attributes
            .iter()
            .any(|attribute| attribute.path().is_ident("ignore"))
        {
            self.push(
                line,
                "ignored-test",
                format!("`{}`: a test runs or goes", signature.ident),
            );
        }
    }

    fn push(&mut self, line: usize, rule: &'static str, message: impl Into<String>) {
        self.violations
            .push(Violation::new(self.path, line, rule, message));
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.attrs, &item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }
}

fn argument_name(argument: &syn::FnArg) -> Option<String> {
    let syn::FnArg::Typed(typed) = argument else {
        return None;
    };
    let syn::Pat::Ident(pattern) = &*typed.pat else {
        return Some(String::new());
    };
    Some(pattern.ident.to_string())
}

/// A `lib.rs` is a table of contents: documentation, modules, re-exports.
fn facade(path: &str, syntax: &syn::File, violations: &mut Vec<Violation>) {
    for item in &syntax.items {
        let listed = matches!(item, syn::Item::Use(_) | syn::Item::ExternCrate(_))
            || matches!(item, syn::Item::Mod(module) if module.content.is_none());
        if !listed {
            let message = "lib.rs holds documentation, `mod` and `use`, nothing else";
            violations.push(Violation::new(path, item.span().start().line, "lib-rs", message));
        }
    }
}

/// A file that no `mod` names is not compiled, and nobody is told.
fn unreached_files(tree: &Tree, violations: &mut Vec<Violation>) {
    let mut named = BTreeSet::new();
    for (file, syntax) in tree.rust() {
        let mut modules = Modules {
            directory: file.place().0,
            named: &mut named,
        };
        modules.visit_file(syntax);
    }
    for (file, _) in tree.rust() {
        let (directory, inside) = file.place();
        let is_root = ["build.rs", "src/lib.rs", "src/main.rs", "tests/it/main.rs"].contains(&inside)
            || ["src/bin/", "examples/", "benches/", "fuzz/", "instructions/"]
                .iter()
                .any(|folder| inside.starts_with(folder))
            || inside.contains("/drivers/");
        let name = match file.stem() {
            "mod" => file.path.rsplit('/').nth(1).unwrap_or_default(),
            stem => stem,
        };
        if !is_root && !named.contains(&(directory.to_owned(), name.to_owned())) {
            let message = format!("no `mod {name};` in {directory}: the file is not compiled");
            violations.push(Violation::new(&file.path, 0, "unreached-file", message));
        }
    }
}

struct Modules<'a> {
    directory: &'a str,
    named: &'a mut BTreeSet<(String, String)>,
}

impl<'ast> Visit<'ast> for Modules<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.named
            .insert((self.directory.to_owned(), item.ident.to_string()));
        visit::visit_item_mod(self, item);
    }
}
