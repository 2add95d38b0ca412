//! PerfTest's CSV: the intervals of one run, in its columns.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::format::{rate, unit, values};
use super::{Show, Shown};
use crate::Error;
use crate::report::record;
use crate::result::{Interval, Run};

pub struct Csv {
    file: File,
    id: String,
    shown: Shown,
}

impl Csv {
    /// Begins a file anew.
    pub fn create(path: &Path, id: String, shown: Shown) -> Result<Csv, Error> {
        let failed = |source| Error::file(path, source);
        let mut file = File::create(path).map_err(failed)?;
        let unit = unit(shown.millis);
        let latencies: Vec<String> = ["consumer", "confirm"]
            .iter()
            .flat_map(|of| {
                ["min", "median", "75th p.", "95th p.", "99th p."]
                    .map(|name| format!("{name} {of} latency ({unit})"))
            })
            .collect();
        writeln!(
            file,
            "id,time (s),published (msg/s),returned (msg/s),confirmed (msg/s),nacked (msg/s),\
             received (msg/s),{}",
            latencies.join(",")
        )
        .map_err(failed)?;
        Ok(Csv { file, id, shown })
    }
}

impl Show for Csv {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        let shown = self.shown;
        let value = |value: f64, applies: bool| match applies {
            true => rate(value),
            false => String::new(),
        };
        let confirmed = shown.sent && shown.confirmed;
        let mut fields = vec![
            self.id.clone(),
            format!("{:.3}", interval.time),
            value(interval.sent_rate, shown.sent),
            value(interval.returned_rate, shown.sent && shown.returned),
            value(interval.confirmed_rate, confirmed),
            value(interval.nacked_rate, confirmed),
            value(interval.received_rate, shown.received),
        ];
        for (latency, applies) in [
            (&interval.consumer_latency, shown.received),
            (&interval.confirm_latency, confirmed),
        ] {
            let [values @ .., _] = values(latency.as_ref(), shown.millis);
            fields.extend(values.map(|value| match applies {
                true => value.to_string(),
                false => String::new(),
            }));
        }
        self.file.write_all(record(&fields).as_bytes())
    }

    fn say(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Run) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_perftests() {
        let path = std::env::temp_dir().join(format!("perf-csv-{}.csv", std::process::id()));
        let shown = Shown {
            sent: true,
            received: true,
            returned: false,
            confirmed: false,
            millis: false,
        };
        let mut csv = Csv::create(&path, "a,b".into(), shown).expect("a file");
        csv.interval(&Interval {
            time: 1.0,
            sent_rate: 100.0,
            received_rate: 5.0,
            ..Interval::default()
        })
        .expect("it is written");
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(&path).expect("it was there");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split(',').count(), 17);
        assert!(lines[0].starts_with("id,time (s),published (msg/s),"));
        assert!(lines[0].contains("75th p. consumer latency (µs)"));
        assert_eq!(lines[1], "\"a,b\",1.000,100,,,,5.0,0,0,0,0,0,,,,,");
    }
}
