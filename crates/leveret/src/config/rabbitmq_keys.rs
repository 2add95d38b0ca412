//! The keys of RabbitMQ's configuration that Leveret does not read, so that a `rabbitmq.conf`
//! need not be cleaned before Leveret starts with it, while a typing error is still found.

use super::key::Key;
use super::options;

/// One key a line, sorted, `$name` for a segment of the user's choice.
const TABLE: &str = include_str!("rabbitmq_keys.txt");

fn patterns() -> impl Iterator<Item = &'static str> {
    TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Whether RabbitMQ has this key and Leveret does not read it.
pub(super) fn contain(key: &Key) -> bool {
    patterns().any(|pattern| key.matches(pattern).is_some())
}

/// The key of Leveret or RabbitMQ that looks most like an unknown one, if any looks like it.
pub(super) fn nearest(unknown: &Key) -> Option<String> {
    let written = unknown.to_string();
    let farthest = (written.len() / 4).max(2);
    options::all()
        .map(|option| option.key)
        .chain(patterns())
        .filter_map(|pattern| unknown.fill(pattern))
        .map(|candidate| (strsim::damerau_levenshtein(&written, &candidate), candidate))
        .filter(|(distance, _)| *distance <= farthest)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_key_that_leveret_reads() {
        let patterns: Vec<&str> = patterns().collect();
        assert!(
            patterns.is_sorted_by(|a, b| a < b),
            "sort rabbitmq_keys.txt with LC_ALL=C sort -u"
        );
        for option in options::all() {
            assert!(
                !patterns.contains(&option.key),
                "remove {} from the table",
                option.key
            );
        }
    }

    #[test]
    fn the_nearest_key_is_the_one_meant() {
        let nearest = |text| nearest(&Key::parse(text).unwrap());
        assert_eq!(nearest("hartbeat").as_deref(), Some("heartbeat"));
        assert_eq!(nearest("default_password").as_deref(), Some("default_pass"));
        assert_eq!(
            nearest("listener.tcp.local").as_deref(),
            Some("listeners.tcp.local")
        );
        assert_eq!(
            nearest("leveret.datadir").as_deref(),
            Some("leveret.data_dir")
        );
        assert_eq!(
            nearest("managment.tcp.port").as_deref(),
            Some("management.tcp.port")
        );
        assert_eq!(nearest("entirely.of.my.own"), None);
    }
}
