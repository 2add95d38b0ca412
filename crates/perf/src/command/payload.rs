//! What is published: bodies, content type, properties.

use std::fs;
use std::io::Read;

use client::FieldValue;

use super::given::Given;
use super::{dates, producers, values};
use crate::Error;
use crate::settings::{Body, HEADER, Payload, PropertyValue};

/// The largest message that RabbitMQ takes, whatever its configuration.
const LARGEST: usize = 512 << 20;

/// Documents and fields that `-jb` makes beforehand, and keeps in memory.
const MOST_MADE: usize = 1_000_000;

/// What is published.
pub fn payload(given: &Given) -> Result<Payload, Error> {
    let body = body(given)?;
    let json = matches!(body, Body::Json { .. }).then_some("application/json");
    let content_type = given.short_string("body-content-type")?.or(json);
    Ok(Payload {
        body,
        content_type: content_type.map(str::to_owned),
        properties: properties(given)?,
    })
}

fn body(given: &Given) -> Result<Body, Error> {
    let size = given.number("size", 0..=LARGEST)?;
    let fields = given
        .number("body-field-count", 1..=MOST_MADE)?
        .unwrap_or(1000);
    let bodies = given.number("body-count", 1..=MOST_MADE)?.unwrap_or(100);
    let sizes = producers::steps(given, "variable-size")?;
    if let Some(files) = given.text("body") {
        return Ok(Body::Files(files_of(given, files)?));
    }
    if given.has("json-body") {
        let size = size.unwrap_or(0);
        return Ok(Body::Json {
            size,
            fields,
            bodies,
        });
    }
    if !sizes.is_empty() {
        let sizes = sizes.into_iter().map(|(size, time)| {
            let size = checked_size(given, "variable-size", size as usize)?;
            Ok((size, time))
        });
        return Ok(Body::Varying(sizes.collect::<Result<_, Error>>()?));
    }
    match size {
        Some(size) => Ok(Body::Sized(checked_size(given, "size", size)?)),
        None => Ok(Body::Sized(HEADER)),
    }
}

fn checked_size(given: &Given, long: &str, size: usize) -> Result<usize, Error> {
    let reason = match size {
        0..HEADER => format!(
            "a body begins with {HEADER} bytes of number and time; give {HEADER} or more, or \
             bodies of your own with -B"
        ),
        HEADER..=LARGEST => return Ok(size),
        _ => format!("more than {LARGEST} bytes, the largest message that brokers take"),
    };
    Err(given.wrong(long, &size.to_string(), reason))
}

fn files_of(given: &Given, files: &str) -> Result<Vec<Vec<u8>>, Error> {
    let names = files.split(',').map(str::trim);
    let bodies = names.map(|name| {
        let mut body = Vec::new();
        // Some files have no end.
        let read = fs::File::open(name)
            .and_then(|file| file.take(LARGEST as u64 + 1).read_to_end(&mut body));
        read.map_err(|error| given.wrong("body", name, error))?;
        match body.len() <= LARGEST {
            true => Ok(body),
            false => Err(given.wrong("body", name, format!("more than {LARGEST} bytes"))),
        }
    });
    bodies.collect()
}

/// `-mp`. The names of properties are those of Java's client: `contentType`, `deliveryMode`.
fn properties(given: &Given) -> Result<Vec<(String, PropertyValue)>, Error> {
    let texts = given.values("message-properties");
    let wrong = |reason: String| given.wrong("message-properties", &texts.join(" "), reason);
    let pairs = values::pairs(texts).map_err(wrong)?;
    let properties = pairs.into_iter().map(|(key, value)| {
        let value = property(&key, value).map_err(wrong)?;
        Ok((key, value))
    });
    properties.collect()
}

fn property(key: &str, value: FieldValue) -> Result<PropertyValue, String> {
    let value = match value {
        FieldValue::I64(number) => PropertyValue::Number(number),
        FieldValue::Bool(truth) => PropertyValue::Text(truth.to_string()),
        text => PropertyValue::Text(text.as_str().unwrap_or_default().to_owned()),
    };
    let range = match key {
        "deliveryMode" => 1..=2,
        "priority" => 0..=255,
        "timestamp" => 0..=i64::MAX,
        "headers" => return Err("headers: each is named by itself, such as x-tenant=5".into()),
        _ => return Ok(value),
    };
    match &value {
        PropertyValue::Number(number) if range.contains(number) => Ok(value),
        // As AMQP has it: in seconds since 1970.
        PropertyValue::Text(text) if key == "timestamp" => dates::timestamp(text)
            .and_then(|seconds| i64::try_from(seconds).ok())
            .map(PropertyValue::Number)
            .ok_or_else(|| "timestamp: not a time like 2022-06-03T07:45:54Z".into()),
        _ => Err(format!(
            "{key}: not a number from {} to {}",
            range.start(),
            range.end()
        )),
    }
}
