#[derive(Debug, clap::Args)]
pub struct Arguments { files: Vec<String> }
