//! Foreign text on its way into a page: the only ways in.

use crate::clean::{clean, one_line};

/// Text between tags.
pub(super) fn text(text: &str) -> String {
    let text = clean(text);
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    push_text(&text, &mut out);
    out
}

/// Adds cleaned text between tags.
pub(super) fn push_text(text: &str, out: &mut String) {
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

/// The value of an attribute, to stand in double quotes.
pub(super) fn attribute(value: &str) -> String {
    text(&one_line(value))
}

/// The part after `#` that leads to an item.
pub(super) fn fragment(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for byte in one_line(id).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// An address that a link may lead to, escaped; none for any other scheme.
pub(super) fn address(url: &str) -> Option<String> {
    let url = clean(url);
    let url = url.trim();
    let (scheme, _) = url.split_once(':')?;
    let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (known && !url.contains(char::is_whitespace)).then(|| text(url))
}

/// A picture's bytes as an address, when they are a picture of a kind we trust.
pub(super) fn picture(source: &quipu_message::Source) -> Option<String> {
    let kind = source.media_type.text()?;
    let known = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    let data = source.data.text().filter(|_| known && source.kind == "base64")?;
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
    (!data.is_empty() && data.bytes().all(is_base64)).then(|| format!("data:{kind};base64,{data}"))
}
