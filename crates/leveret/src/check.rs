//! `leveret check`: what is in a data directory, and whether it is sound.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context, bail};
use broker::DefinitionSummary;
use store::check::{Cut, QueueReport, Report, check, repair};
use store::{DirectoryLock, Disk, RealDisk};

use crate::cli::{CheckArguments, EXIT_DAMAGED};

/// Checks, repairs if asked to; returns the exit status.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<u8> {
    let dir = &arguments.dir;
    if !dir.join("wal").is_dir() {
        bail!("{} is no data directory of Leveret", dir.display());
    }
    // Held until the end, so that no server starts meanwhile.
    let _lock = DirectoryLock::take(dir, "leveret check")?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let report = check(&disk, dir)?;
    let summary = DefinitionSummary::read(&report.definitions)?;
    let mut out = io::stdout().lock();
    print(&mut out, &report, &summary).context("cannot write to standard output")?;
    if !arguments.repair {
        return Ok(match report.is_sound() {
            true => 0,
            false => EXIT_DAMAGED,
        });
    }
    let cuts = repair(&disk, dir, &report)?;
    print_cuts(&mut out, &cuts, &summary).context("cannot write to standard output")?;
    Ok(0)
}

fn print(out: &mut impl Write, report: &Report, summary: &DefinitionSummary) -> io::Result<()> {
    let bytes: u64 = report.log.iter().map(|file| file.used).sum();
    writeln!(
        out,
        "log           {} files, {} in use, positions {} to {}",
        report.log.len(),
        size(bytes),
        report.start,
        report.end
    )?;
    if let Some(file) = report.torn() {
        writeln!(
            out,
            "              {}: the last batch, at byte {}, was not finished; nothing of it was \
             confirmed, and the next start cuts it off",
            file.path.display(),
            file.used
        )?;
    }
    writeln!(
        out,
        "definitions   {} vhosts, {} users, {} exchanges, {} queues, {} bindings",
        summary.vhosts,
        summary.users,
        summary.exchanges,
        summary.queues.len(),
        summary.bindings
    )?;
    let messages: u64 = report
        .queues
        .iter()
        .map(|queue| queue.in_log + queue.in_segments)
        .sum();
    writeln!(out, "messages      {messages}")?;
    for queue in &report.queues {
        print_queue(out, queue, summary)?;
    }
    for path in &report.leftovers {
        writeln!(
            out,
            "left over     {}: goes at the next start",
            path.display()
        )?;
    }
    print_damage(out, report)
}

fn print_queue(
    out: &mut impl Write,
    queue: &QueueReport,
    summary: &DefinitionSummary,
) -> io::Result<()> {
    let total = queue.in_log + queue.in_segments;
    writeln!(
        out,
        "  {:<24} {total} messages: {} in the log, {} in {} segments of {}; stream {}",
        name(queue.stream, summary),
        queue.in_log,
        queue.in_segments,
        queue.segments,
        size(queue.bytes),
        queue.stream
    )
}

fn print_damage(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.is_sound() {
        return writeln!(out, "sound");
    }
    if let Some(damage) = &report.damage {
        writeln!(
            out,
            "DAMAGED       {} at byte {}: the log is readable up to position {}, and goes on later; \
             what is counted above is what comes before",
            damage.path.display(),
            damage.offset,
            damage.end
        )?;
    }
    for chunk in report.queues.iter().flat_map(|queue| &queue.unreadable) {
        writeln!(
            out,
            "DAMAGED       {} at byte {}: {} messages: {}",
            chunk.path.display(),
            chunk.offset,
            chunk.messages,
            chunk.problem
        )?;
    }
    Ok(())
}

fn print_cuts(out: &mut impl Write, cuts: &[Cut], summary: &DefinitionSummary) -> io::Result<()> {
    if cuts.is_empty() {
        return writeln!(out, "nothing to repair");
    }
    for cut in cuts {
        match cut {
            Cut::Log { damage, files } => {
                writeln!(
                    out,
                    "cut           {} from byte {} on: everything after position {} is lost",
                    damage.path.display(),
                    damage.offset,
                    damage.end
                )?;
                for file in files {
                    writeln!(out, "cut           {}: all of it is lost", file.display())?;
                }
            }
            Cut::Tail(path, offset) => writeln!(
                out,
                "cut           {} from byte {offset} on: nothing that was confirmed",
                path.display()
            )?,
            Cut::Messages { stream, count } => writeln!(
                out,
                "cut           {count} messages of {}: they are lost",
                name(*stream, summary)
            )?,
        }
    }
    Ok(())
}

fn name(stream: store::StreamId, summary: &DefinitionSummary) -> String {
    match summary.queues.get(&stream) {
        Some((vhost, name)) => format!("'{name}' in '{vhost}'"),
        None => "(a queue that is gone)".to_owned(),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes.div_ceil(1_024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
