//! Whole pages: that they are well-formed, fetch nothing, and hold what they must.

use std::path::PathBuf;

use super::*;
use crate::result::{Latency, Run};

type Documents = Vec<(String, Document)>;

/// Every kind of result that a page has to cope with.
fn all() -> Vec<(&'static str, Documents)> {
    let empty = Document::begin(None, None, Vec::new());
    let mut bare = empty.clone();
    bare.runs.push(Run::default());
    let mut rates = sample::one_broker();
    rates[0].1.runs[0].consumer_latency = None;
    rates[0].1.runs[0].confirm_latency = None;
    rates[0].1.runs[0].checks = None;
    let mut odd = sample::one_broker();
    let run = &mut odd[0].1.runs[0];
    run.series.truncate(1);
    run.consumer_latency = Some(Latency::default());
    run.totals.sent_rate = f64::NAN;
    run.totals.broker_cpu_us_per_message = Some(f64::INFINITY);
    run.series[0].received_rate = f64::NAN;
    vec![
        ("none", Vec::new()),
        ("empty", vec![("empty.json".into(), empty)]),
        ("bare", vec![("bare.json".into(), bare)]),
        ("one", sample::one_broker()),
        ("rates", rates),
        ("odd", odd),
        ("two", sample::two_brokers()),
        ("suite", sample::suite()),
    ]
}

fn parse(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(page, options).expect("well-formed")
}

#[test]
fn pages_are_well_formed_and_fetch_nothing() {
    let mut pages: Vec<String> = all().iter().map(|(_, documents)| page(documents)).collect();
    pages.push(changes_page(&[sample::analysis()]));
    pages.push(changes_page(&[]));
    for page in &pages {
        let parsed = parse(page);
        for node in parsed.descendants().filter(|node| node.is_element()) {
            assert!(
                !["link", "img", "iframe", "object", "use", "image"]
                    .contains(&node.tag_name().name())
            );
            for attribute in node.attributes() {
                let name = attribute.name();
                assert!(
                    !["src", "srcset", "data", "action"].contains(&name),
                    "{name}"
                );
                assert!(!name.starts_with("on"), "{name}");
                assert!(name != "href" || attribute.value().starts_with('#'));
            }
        }
        for outside in ["http:", "https:", "url(", "@import", "@font-face"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}

#[test]
fn links_lead_somewhere_and_ids_are_single() {
    let analyses = [sample::analysis(), sample::analysis()];
    for page in [page(&sample::suite()), changes_page(&analyses)] {
        let parsed = parse(&page);
        let ids: Vec<&str> = parsed
            .descendants()
            .filter_map(|node| node.attribute("id"))
            .collect();
        let targets = parsed
            .descendants()
            .filter_map(|node| node.attribute("href"));
        let mut links = 0;
        for target in targets {
            links += 1;
            assert_eq!(
                ids.iter().filter(|id| target == format!("#{id}")).count(),
                1,
                "{target}"
            );
        }
        assert!(links > 1);
    }
}

#[test]
fn no_value_is_shown_that_is_not_a_number() {
    for (what, documents) in all() {
        for text in [
            page(&documents),
            text(&documents),
            crate::compare::table(&documents),
        ] {
            for wrong in ["NaN", "inf ", ">inf<", "inf%", ">-"] {
                assert!(!text.contains(wrong), "{what}: {wrong}");
            }
        }
    }
}

#[test]
fn texts_of_results_are_never_markup() {
    let evil = "</title><script>alert(1)</script>\"'&\u{1b}";
    let mut documents = sample::two_brokers();
    let (file, document) = &mut documents[0];
    *file = evil.into();
    document.label = Some(evil.into());
    document.started = evil.into();
    document.command.push(evil.into());
    document.host.name = evil.into();
    for run in &mut document.runs {
        run.name = evil.into();
        run.broker.version = evil.into();
        run.error = Some(evil.into());
        run.parameters.insert(evil.into(), evil.into());
        run.figures.insert(evil.into(), 1.0);
        run.published.insert(evil.into(), 1.0);
        run.stopped.insert(evil.into(), 1);
    }
    let page = titled_page(&documents, Some(evil));
    let parsed = parse(&page);
    let scripts = parsed
        .descendants()
        .filter(|node| node.has_tag_name("script"));
    assert_eq!(scripts.count(), 1);
    assert!(!page.contains("<script>alert"));
    assert!(!text(&documents).contains('\u{1b}'));
    assert!(!crate::compare::table(&documents).contains('\u{1b}'));
}

#[test]
fn errors_and_failed_checks_come_before_figures() {
    let page = page(&sample::suite());
    let problem = page
        .find("1 of 60 runs failed; 1 of 60 runs lost")
        .expect("said");
    assert!(problem < page.find("<h2>Summary</h2>").expect("a summary"));
    assert!(page.contains("541 INTERNAL_ERROR"));
    assert!(page.contains("3 missing, 1 doubled"));
}

#[test]
fn many_loads_are_folded_and_few_are_not() {
    let open = |page: &str| {
        let parsed = parse(page);
        let details = parsed
            .descendants()
            .filter(|node| node.has_tag_name("details"));
        details
            .map(|node| node.has_attribute("open"))
            .collect::<Vec<_>>()
    };
    assert_eq!(open(&page(&sample::two_brokers())), [true; 4]);
    assert_eq!(open(&page(&sample::suite())), [false; 30]);
}

#[test]
fn a_page_has_what_was_measured_how_and_beside_what() {
    let page = page(&sample::two_brokers());
    for part in [
        "Leveret 0.3.0",
        "RabbitMQ 4.1.2",
        "2026-03-01 12:00 UTC",
        "bench1, AMD EPYC 7763 64-Core Processor, 8 cores, 32.0 GiB, Linux 6.8.0-45-generic",
        "leveret perf w1 --against amqp://127.0.0.1:5673 --rounds 2",
        "Published figures",
        "1,538",
        "warm-up",
        "99.99%",
        "B / A",
        "longest commit (ms)",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_report_without_files_to_write_is_a_table() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let file = directory.join("w1.json");
    sample::two_brokers()[0].1.write(&file).expect("written");
    let mut arguments = Arguments {
        files: vec![file],
        html: None,
        csv: None,
        title: None,
    };
    let mut out = Vec::new();
    assert_eq!(run(&arguments, &mut out).expect("shown"), 0);
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains("T=500") && text.contains("passed"), "{text}");

    arguments.html = Some(directory.join("w1.html"));
    arguments.csv = Some(directory.join("w1.csv"));
    arguments.title = Some("Ours & theirs".into());
    let mut out = Vec::new();
    assert_eq!(run(&arguments, &mut out).expect("written"), 0);
    assert!(out.is_empty());
    let page = std::fs::read_to_string(directory.join("w1.html")).expect("a page");
    assert!(page.contains("<title>Ours &amp; theirs</title>"));
    let csv = std::fs::read_to_string(directory.join("w1.csv")).expect("intervals");
    assert!(csv.starts_with("file,label,run,round,"));
}

/// For looking at: `cargo test -p perf write_sample_pages -- --ignored --nocapture` says where.
#[test]
#[ignore = "writes pages for people to look at"]
fn write_sample_pages() {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let directory = target.join("sample-pages");
    std::fs::create_dir_all(&directory).expect("a directory");
    let write = |name: String, page: String| {
        std::fs::write(directory.join(name), page).expect("written");
    };
    for (name, documents) in all() {
        write(format!("{name}.html"), page(&documents));
        let comparison = crate::compare::table(&documents);
        write(
            format!("{name}.txt"),
            format!("{}\n{comparison}", text(&documents)),
        );
        if name == "suite" {
            write(format!("{name}.csv"), csv::intervals(&documents));
        }
    }
    let flat = crate::changepoint::Analysis {
        title: "w3, 4 queues: latency p99".into(),
        unit: "ms".into(),
        changes: Vec::new(),
        ..sample::analysis()
    };
    write("changes.html".into(), changes_page(&[sample::analysis()]));
    write(
        "changes-many.html".into(),
        changes_page(&[sample::analysis(), flat]),
    );
    eprintln!("the pages are in {}", directory.display());
}
