//! `$(NAME)` in a value of the configuration file stands for the environment variable `NAME`, so
//! that a password need not be written into the file.

use super::environment::Environment;

/// The value with each `$(NAME)` replaced; the name of the first variable that is not set, or is
/// not UTF-8 text, is the error.
pub(super) fn interpolate(value: &str, environment: &Environment) -> Result<String, String> {
    let mut result = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("$(") {
        let (before, from_start) = rest.split_at(start);
        result.push_str(before);
        let inner = &from_start[2..];
        match inner
            .split_once(')')
            .filter(|(name, _)| is_variable_name(name))
        {
            Some((name, after)) => {
                let set = environment.variable(name).and_then(|value| value.to_str());
                result.push_str(set.ok_or_else(|| name.to_owned())?);
                rest = after;
            }
            None => {
                result.push_str("$(");
                rest = inner;
            }
        }
    }
    result.push_str(rest);
    Ok(result)
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::{Environment, interpolate};

    #[test]
    fn variables_are_replaced_and_other_text_is_kept() {
        let environment = Environment::for_tests(&[("A", "1"), ("B_2", "$(A)")]);
        let value = |text| interpolate(text, &environment);
        assert_eq!(value("$(A)"), Ok("1".to_owned()));
        assert_eq!(value("x$(A)y$(B_2)z"), Ok("x1y$(A)z".to_owned()));
        assert_eq!(
            value("a $ b $(1) $() $(no name) $("),
            Ok("a $ b $(1) $() $(no name) $(".into())
        );
        assert_eq!(value("$(MISSING)"), Err("MISSING".to_owned()));
    }
}
