//! Made-up JSON documents.

use crate::load::random::Random;

/// Characters of names and values.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// `count` objects of about `size` bytes, of `fields` names and values.
pub fn documents(size: usize, fields: usize, count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let names: Vec<String> = (0..fields.max(1)).map(|_| word(random, 5, 20)).collect();
    let values: Vec<String> = (0..fields.max(1)).map(|_| value(random)).collect();
    (0..count.max(1))
        .map(|_| document(size, &names, &values, random))
        .collect()
}

fn document(size: usize, names: &[String], values: &[String], random: &mut Random) -> Vec<u8> {
    let mut text = String::from("{");
    while text.len() + 1 < size {
        if text.len() > 1 {
            text.push(',');
        }
        let any = |of: &[String], random: &mut Random| random.below(of.len() as u64) as usize;
        let (name, value) = (any(names, random), any(values, random));
        text.push_str(&format!("\"{}\":{}", names[name], values[value]));
    }
    text.push('}');
    text.into_bytes()
}

fn value(random: &mut Random) -> String {
    match random.below(3) {
        0 => random.below(1_000_000).to_string(),
        1 => (random.below(2) == 0).to_string(),
        _ => format!("\"{}\"", word(random, 5, 50)),
    }
}

fn word(random: &mut Random, min: u64, max: u64) -> String {
    let length = min + random.below(max - min);
    let letter = |random: &mut Random| LETTERS[random.below(LETTERS.len() as u64) as usize];
    (0..length).map(|_| char::from(letter(random))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_json_of_about_that_size() {
        let documents = documents(2_000, 50, 10, &mut Random::new(7));
        assert_eq!(documents.len(), 10);
        for document in documents {
            assert!((2_000..2_100).contains(&document.len()));
            let parsed: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
            assert!(parsed.as_object().is_some_and(|object| object.len() > 10));
        }
        assert_eq!(super::documents(0, 0, 0, &mut Random::new(7)), [b"{}"]);
    }
}
