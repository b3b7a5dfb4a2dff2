//! Eureka's JSON, written by hand and read leniently.

mod instance;
mod list;
mod read;
mod text;
mod value;

pub(super) use instance::{
    is_compact_machine_key, write_instance, write_reported, write_status_page_instance,
    write_wrapped_instance,
};
pub(super) use list::{
    read_applications, write_application, write_compact_head, write_compact_tail, write_head, write_run,
    write_tail,
};
pub(super) use read::{read_instance, read_reported, read_wrapped_instance};
pub(super) use text::{write_integer, write_member, write_string};
pub(super) use value::{Value, digits, elements, integer, members, root, spelled, text, whole};
