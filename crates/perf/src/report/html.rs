//! Markup that is well-formed by construction.
//!
//! Whatever a result file says (labels, brokers' names, arguments) is somebody else's text.
//! It becomes [`Markup`] through `From`, which escapes it; only string constants of this program get
//! in unescaped. Elements are always closed, so that the page is XML, too, and can be checked as such.

use std::fmt::Write;

/// Escaped text and complete elements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markup(String);

/// Attributes of an element.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    /// Nothing.
    pub fn new() -> Markup {
        Markup::default()
    }

    /// Text of this program that is markup already.
    pub fn trusted(markup: &'static str) -> Markup {
        Markup(markup.into())
    }

    /// Adds something at the end.
    pub fn push(&mut self, content: impl Into<Markup>) {
        self.0.push_str(&content.into().0);
    }

    /// With something at the end.
    pub fn with(mut self, content: impl Into<Markup>) -> Markup {
        self.push(content);
        self
    }

    /// Whether there is anything to see.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of a file.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl From<&str> for Markup {
    fn from(text: &str) -> Markup {
        Markup(escape(text))
    }
}

impl From<String> for Markup {
    fn from(text: String) -> Markup {
        Markup(escape(&text))
    }
}

impl From<&String> for Markup {
    fn from(text: &String) -> Markup {
        Markup(escape(text))
    }
}

impl FromIterator<Markup> for Markup {
    fn from_iter<I: IntoIterator<Item = Markup>>(parts: I) -> Markup {
        let mut all = Markup::new();
        parts.into_iter().for_each(|part| all.push(part));
        all
    }
}

/// An element with content.
pub fn element(name: &'static str, attributes: Attributes, content: impl Into<Markup>) -> Markup {
    let mut markup = open(name, attributes);
    let _ = write!(markup, ">{}</{name}>", content.into().0);
    Markup(markup)
}

/// An element that HTML knows to be empty, such as `meta`, or any of SVG.
pub fn void(name: &'static str, attributes: Attributes) -> Markup {
    let mut markup = open(name, attributes);
    markup.push_str("/>");
    Markup(markup)
}

fn open(name: &'static str, attributes: Attributes) -> String {
    let mut markup = format!("<{name}");
    for (key, value) in attributes {
        let _ = write!(markup, " {key}=\"{}\"", escape(value));
    }
    markup
}

/// Text for content and attributes. What XML cannot hold is replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            // Marks that turn the direction of text could make it read as something else.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A whole page: title, style and script inside, and nothing fetched, which its policy forbids
/// the browser as well.
pub fn page(title: &str, body: Markup) -> String {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
    let head = void("meta", &[("charset", "utf-8")])
        .with(void(
            "meta",
            &[
                ("http-equiv", "Content-Security-Policy"),
                ("content", policy),
            ],
        ))
        .with(void(
            "meta",
            &[
                ("name", "viewport"),
                ("content", "width=device-width, initial-scale=1"),
            ],
        ))
        .with(void(
            "meta",
            &[("name", "color-scheme"), ("content", "light dark")],
        ))
        .with(element("title", &[], title))
        .with(element(
            "style",
            &[],
            Markup::trusted(include_str!("style.css")),
        ));
    let body = element("main", &[], body).with(element(
        "script",
        &[],
        Markup::trusted(include_str!("script.js")),
    ));
    let html = element(
        "html",
        &[("lang", "en")],
        element("head", &[], head).with(element("body", &[], body)),
    );
    format!("<!DOCTYPE html>\n{}\n", html.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let label = "<script>alert('1')</script> & \"co\"\u{0}\u{202e}";
        let markup = element("p", &[("title", label)], label).into_string();
        let text =
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;co&quot;\u{fffd}\u{fffd}";
        assert_eq!(markup, format!("<p title=\"{text}\">{text}</p>"));
    }

    #[test]
    fn style_and_script_need_no_escaping() {
        for text in [include_str!("style.css"), include_str!("script.js")] {
            assert!(!text.contains(['<', '&']));
        }
    }
}
