use crate::{Error, result::Document};
#[derive(Debug, clap::Args)]
pub struct Arguments { files: Vec<String> }
pub fn run(_: &Arguments, _: &mut dyn std::io::Write) -> Result<u8, Error> { Ok(0) }
pub fn page(_: &[(String, Document)]) -> String { String::new() }
pub fn csv(_: &[(String, Document)]) -> String { String::new() }
pub fn changes_page(_: &[crate::changepoint::Analysis]) -> String { String::new() }
