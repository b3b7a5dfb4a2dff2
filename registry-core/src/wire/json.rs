//! Eureka's JSON, written by hand and read leniently.

mod instance;
mod list;
mod raw;
mod read;
mod text;

pub(super) use instance::{
    is_compact_machine_key, write_instance, write_reported, write_status_page_instance,
    write_wrapped_instance,
};
pub(super) use list::{
    read_applications, write_application, write_compact_head, write_compact_tail, write_head, write_run,
    write_tail,
};
pub(super) use raw::{Raw, elements, integer, is_array, is_null, members, root, text, whole};
pub(super) use read::{read_instance, read_reported, read_wrapped_instance};
pub(super) use text::{write_integer, write_member, write_string};
