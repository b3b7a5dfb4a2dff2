//! Eureka's XML: the indented one of `XStream`, the compact one, and a reader for both.

mod cursor;
mod instance;
mod list;
mod name;
mod read;
mod text;

pub(super) use instance::{write_instance_content, write_status_page_instance, write_wrapped_instance};
pub(super) use list::{
    read_applications, write_application, write_compact_head, write_compact_tail, write_head, write_run,
    write_tail,
};
pub(super) use read::read_wrapped_instance;
pub(super) use text::{Tag, end_line, tag, write_element, write_named_element, write_tag};
