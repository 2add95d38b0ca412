//! XML answers as a tree that is as deep as answers of SQS are.

use quick_xml::Reader;
use quick_xml::events::Event;

use super::Error;

/// Deepest nesting that is read. Answers of SQS are six deep.
const DEEPEST: usize = 32;

/// An element without its attributes and its namespace prefix.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    /// Local name.
    pub(super) name: String,
    /// The text directly inside.
    pub(super) text: String,
    /// The elements directly inside, in their order.
    pub(super) children: Vec<Element>,
}

impl Element {
    /// Reads a document, and returns its root.
    pub(super) fn parse(document: &[u8]) -> Result<Element, Error> {
        let malformed = |reason: &dyn std::fmt::Display| Error::Malformed(reason.to_string());
        let text = std::str::from_utf8(document).map_err(|error| malformed(&error))?;
        let mut reader = Reader::from_str(text);
        let mut open = vec![Element::default()];
        loop {
            let event = reader.read_event().map_err(|error| malformed(&error))?;
            let Some(inner) = open.last_mut() else {
                return Err(malformed(&"an end without a start"));
            };
            match event {
                Event::Start(start) => {
                    if open.len() > DEEPEST {
                        return Err(malformed(&"too deeply nested"));
                    }
                    open.push(Element::named(start.local_name().as_ref()));
                }
                Event::Empty(empty) => {
                    let element = Element::named(empty.local_name().as_ref());
                    inner.children.push(element);
                }
                Event::End(_) => close(&mut open),
                Event::Text(text) => inner.text.push_str(&text.xml10_content()),
                Event::CData(text) => inner.text.push_str(&text.xml10_content()),
                Event::GeneralRef(reference) => inner
                    .text
                    .push(resolve(&reference).ok_or_else(|| malformed(&"an unknown reference"))?),
                Event::Eof => return root(open).ok_or_else(|| malformed(&"no XML document")),
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
    }

    fn named(name: &str) -> Element {
        Element {
            name: name.to_owned(),
            ..Element::default()
        }
    }

    /// The first child of this name.
    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the first child of this name; empty without one.
    pub(super) fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.as_str())
    }

    /// All children of this name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Moves the innermost open element into the one around it.
fn close(open: &mut Vec<Element>) {
    if let Some(element) = open.pop()
        && let Some(parent) = open.last_mut()
    {
        parent.children.push(element);
    }
}

/// The root, if all that was opened is closed; what stands around it is not looked at.
fn root(mut open: Vec<Element>) -> Option<Element> {
    let document = open.pop()?;
    if !open.is_empty() {
        return None;
    }
    document.children.into_iter().next()
}

/// A character reference, or one of the five that need no declaration.
fn resolve(reference: &quick_xml::events::BytesRef<'_>) -> Option<char> {
    if reference.is_char_ref() {
        return reference.resolve_char_ref().ok().flatten();
    }
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "<?xml version=\"1.0\"?>\n<a:R xmlns:a=\"u\"><M><B>1 &lt;&amp;&#xD;&#252; \
                          <![CDATA[<x>]]></B><E/></M><M/></a:R>\n";

    #[test]
    fn a_document_becomes_a_tree() {
        let root = Element::parse(ANSWER.as_bytes()).unwrap();
        assert_eq!(root.name, "R");
        assert_eq!(root.all("M").count(), 2);
        let message = root.child("M").unwrap();
        assert_eq!(message.text_of("B"), "1 <&\rü <x>");
        assert_eq!(message.text_of("E"), "");
        assert_eq!(message.text_of("none"), "");
    }

    #[test]
    fn whatever_is_cut_or_changed_is_refused_or_read_but_never_panics() {
        let answer = ANSWER.as_bytes();
        for length in 0..answer.len() - 1 {
            let cut = Element::parse(&answer[..length]);
            assert!(cut.is_err(), "{length}");
        }
        for place in 0..answer.len() {
            for byte in [
                0, b'<', b'>', b'&', b';', b'/', b'"', b'!', b'?', b'[', 0xff,
            ] {
                let mut changed = answer.to_vec();
                changed[place] = byte;
                drop(Element::parse(&changed));
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let error = Element::parse("<a>".repeat(100_000).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("too deeply nested"));
        assert!(Element::parse(b"</a>").is_err());
        assert!(Element::parse(b"just text").is_err());
        assert!(Element::parse(b"<a>&nbsp;</a>").is_err());
    }
}
