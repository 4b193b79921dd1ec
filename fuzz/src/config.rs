//! Hadoop's XML configuration files.

use crate::Target;
use client::config::hadoop_xml::Properties;
use std::path::Path;

pub fn targets() -> [Target; 1] {
    [Target { name: "hadoop_xml", samples: files, check: check_file }]
}

fn files() -> Vec<Vec<u8>> {
    let property =
        "<property><name>fs.defaultFS</name><value>hdfs://a:8020</value><final>true</final></property>";
    [
        format!("<?xml version=\"1.0\"?>\n<configuration>{property}</configuration>"),
        format!("<configuration><!-- none -->{property}<property><name>x</name><value>${{fs.defaultFS}}/é</value></property></configuration>"),
        "<configuration/>".into(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

fn check_file(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut properties = Properties::default();
    let read = properties.read_text(Path::new("/nowhere/core-site.xml"), &text).is_ok();
    // Values refer to each other; asking must end.
    for key in ["fs.defaultFS", "x"] {
        let _ = properties.get(key);
    }
    read
}
