//! Escapes text for HTML. All text from items goes through one of these functions.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use quipu_message::values::MediaSourceKind;

use crate::sanitize::{sanitize, sanitize_line};

/// Sanitizes and escapes text for use between tags.
pub(super) fn escape_text(text: &str) -> String {
    let text = sanitize(text);
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    push_escaped(&text, &mut out);
    out
}

/// Adds sanitized text, escaped for use between tags.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        out.push_str(entity);
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
}

/// Escapes the value of an attribute in double quotes.
pub(super) fn escape_attribute(value: &str) -> String {
    escape_text(&sanitize_line(value))
}

/// Percent-encodes an id for the fragment of a link.
pub(super) fn encode_fragment(id: &str) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(&sanitize_line(id), ENCODED).to_string()
}

/// The escaped URL of a link; `None` if its scheme is not `http`, `https` or `mailto`.
pub(super) fn safe_href(url: &str) -> Option<String> {
    let url = sanitize(url);
    let url = url.trim();
    let (scheme, _) = url.split_once(':')?;
    let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (known && !url.contains(char::is_whitespace)).then(|| escape_text(url))
}

/// An image as a `data:` URL; `None` if it is not base64 or not a PNG, JPEG, GIF or WebP.
pub(super) fn image_data_url(source: &quipu_message::MediaSource) -> Option<String> {
    let kind = source.media_type.text()?;
    let known = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    let data = source.data.text().filter(|_| known && source.kind == MediaSourceKind::Base64)?;
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
    (!data.is_empty() && data.bytes().all(is_base64)).then(|| format!("data:{kind};base64,{data}"))
}
