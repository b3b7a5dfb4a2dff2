//! What is written: cuts of lists, characters that could break a document, the status page.

use std::sync::Arc;

use eureka_registry_core::wire::{
    Boundary, Codec, Format, ListFrame, StatusPage, read_applications, read_instance, write_instance,
    write_list, write_list_head, write_list_piece, write_list_tail,
};
use eureka_registry_core::{LeaseView, Status};

use super::{full, view, with_metadata};

const FRAME: ListFrame<'_> = ListFrame {
    version: "1",
    hash: "UP_5_",
    tell_empty: true,
};

fn text(view: &LeaseView, format: Format, masked: bool) -> String {
    let mut out = Vec::new();
    write_instance(format, view, masked, &mut out);
    String::from_utf8(out).expect("it is text")
}

#[test]
fn any_cut_of_a_list_gives_the_bytes_of_the_whole() {
    let list: Vec<Arc<LeaseView>> = ["A/1", "A/2", "A/3", "B/1", "C/1", "C/2"]
        .iter()
        .filter_map(|name| name.split_once('/'))
        .map(|(app, id)| full(app, id))
        .collect();
    for codec in Codec::ALL {
        let whole = write_list(codec, &FRAME, &list);
        for cut in 1_u32..1 << (list.len() - 1) {
            let mut out = Vec::new();
            write_list_head(codec, &FRAME, &mut out);
            let mut start = 0;
            for end in 1..=list.len() {
                if end < list.len() && cut & (1 << (end - 1)) == 0 {
                    continue;
                }
                let boundary = match start {
                    0 => Boundary::First,
                    _ if list[start - 1].instance.app == list[start].instance.app => {
                        Boundary::SameApplication
                    }
                    _ => Boundary::NewApplication,
                };
                write_list_piece(codec, boundary, &list[start..end], &mut out);
                start = end;
            }
            write_list_tail(codec, &FRAME, false, &mut out);
            assert_eq!(out, whole, "{codec:?} cut {cut:b}");
        }
    }
}

#[test]
fn a_full_instance_survives_both_formats() {
    let view = full("APP", "i-1");
    for format in [Format::Json, Format::Xml] {
        let read = read_instance(format, text(&view, format, true).as_bytes()).expect("it is readable");
        assert_eq!(read, *view, "{format:?}");
    }
}

#[test]
fn what_a_client_may_register_cannot_break_a_list() {
    let hostile = [
        (
            "\u{0}\u{1}\u{7f}\u{85}",
            "\u{0}\u{1}\u{1b}\u{7f}\u{85}\u{2028}\u{fffe}\u{ffff}\u{fffd}",
        ),
        ("<!--", "]]><!--<script>&amp;&#0;"),
        ("a:b", "\r\n\t "),
        ("xml", "\""),
        ("", "empty key"),
        ("@class", "java.lang.Runtime"),
        ("-1 _$é😀", "é😀"),
        ("\\u0000\"", "\\"),
    ];
    let view = with_metadata(&hostile);
    let list = [Arc::clone(&view), full("Z", "1")];
    for codec in Codec::ALL {
        let body = write_list(codec, &FRAME, &list);
        let read = read_applications(codec.format(), &body).expect("it is readable");
        assert_eq!((read.instances.len(), read.left_out), (2, 0), "{codec:?}");
        if codec == Codec::Xml {
            let allowed = |c: char| matches!(c, '\n' | '\t' | ' '..='\u{fffd}' | '\u{10000}'..);
            let body = String::from_utf8(body).expect("it is text");
            assert!(body.chars().all(allowed));
            let metadata = &read.instances[0].instance.metadata;
            assert_eq!(metadata.get("a:b"), Some("\r\n\t "));
            assert_eq!(metadata.get("<!--"), Some("]]><!--<script>&amp;&#0;"));
            assert_eq!(metadata.get("-1 _$é😀"), Some("é😀"));
            let replaced = "\u{fffd}\u{fffd}\u{fffd}\u{7f}\u{85}\u{2028}\u{fffd}\u{fffd}\u{fffd}";
            assert_eq!(metadata.get("\u{0}\u{1}\u{7f}\u{85}"), Some(replaced));
            assert_eq!(metadata.get(""), None);
        }
    }
}

#[test]
fn json_escapes_like_jackson() {
    let view = with_metadata(&[("k", "a\"b\\c/<>&'\n\t\r\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀")]);
    let body = text(&view, Format::Json, false);
    let escaped = r#""metadata":{"k":"a\"b\\c/<>&'\n\t\r\b\f\u0001\u001F"#;
    assert!(body.contains(escaped), "{body}");
    assert!(body.contains("\u{7f}é😀\"}"), "{body}");
}

#[test]
fn one_odd_character_is_escaped_wherever_it_stands() {
    for (odd, in_json, in_xml) in [
        ('"', r#"\""#, "&quot;"),
        ('\\', r"\\", "\\"),
        ('&', "&", "&amp;"),
        ('<', "<", "&lt;"),
        ('>', ">", "&gt;"),
        ('\'', "'", "&apos;"),
        ('\r', r"\r", "&#xd;"),
        ('\u{1f}', r"\u001F", "\u{fffd}"),
        ('\u{fffe}', "\u{fffe}", "\u{fffd}"),
        ('\u{f000}', "\u{f000}", "\u{f000}"),
    ] {
        for len in [0, 2, 5, 11, 40] {
            for place in 0..=len {
                let plain =
                    |middle: &str| format!("{}{middle}{}", "a".repeat(place), "a".repeat(len - place));
                let view = with_metadata(&[("k", &plain(odd.encode_utf8(&mut [0; 4])))]);
                let json = text(&view, Format::Json, false);
                assert!(json.contains(&format!(r#""k":"{}""#, plain(in_json))), "{json}");
                let xml = text(&view, Format::Xml, false);
                assert!(xml.contains(&format!("<k>{}</k>", plain(in_xml))), "{xml}");
            }
        }
    }
}

#[test]
fn a_single_instance_in_xml_hides_what_version_1_did_not_know() {
    for (status, shown) in [
        (Status::Up, "UP"),
        (Status::Down, "DOWN"),
        (Status::Starting, "STARTING"),
        (Status::OutOfService, "DOWN"),
        (Status::Unknown, "DOWN"),
    ] {
        let mut instance = (*full("A", "1").instance).clone();
        instance.status = status;
        let view = view(instance);
        assert!(text(&view, Format::Xml, true).contains(&format!("<status>{shown}</status>")));
        assert!(text(&view, Format::Xml, false).contains(&format!("<status>{status}</status>")));
        assert!(text(&view, Format::Json, true).contains(&format!(r#""status":"{status}""#)));
    }
}

#[test]
fn the_status_page_is_as_recorded() {
    let page = StatusPage {
        general: vec![("num-of-cpus", "2".into()), ("server-uptime", "00:00".into())],
        application: vec![("registered-replicas", String::new())],
        instance: None,
        healthy: Some(true),
    };
    let write = |format| {
        let mut out = Vec::new();
        page.write(format, &mut out);
        String::from_utf8(out).expect("it is text")
    };
    let json = r#"{"generalStats":{"num-of-cpus":"2","server-uptime":"00:00"},"applicationStats":{"registered-replicas":""},"healthy":true}"#;
    assert_eq!(write(Format::Json), json);
    let xml = "<com.netflix.eureka.util.StatusInfo>
  <generalStats>
    <num-of-cpus>2</num-of-cpus>
    <server-uptime>00:00</server-uptime>
  </generalStats>
  <applicationStats>
    <registered-replicas></registered-replicas>
  </applicationStats>
  <healthy>true</healthy>
</com.netflix.eureka.util.StatusInfo>";
    assert_eq!(write(Format::Xml), xml);
}

#[test]
fn the_server_s_own_instance_has_no_action_on_the_status_page() {
    let page = StatusPage {
        instance: Some((*full("EUREKA", "self")).clone()),
        ..StatusPage::default()
    };
    for format in [Format::Json, Format::Xml] {
        let mut out = Vec::new();
        page.write(format, &mut out);
        let text = String::from_utf8(out).expect("it is text");
        assert!(
            text.contains("lastDirtyTimestamp") && !text.contains("actionType"),
            "{text}"
        );
    }
}
