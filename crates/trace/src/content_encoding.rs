//! Decompresses bodies, by the header `content-encoding`.

use std::borrow::Cow;
use std::io::{self, Read};

/// Longest body that is decompressed.
const MAX_DECODED_BYTES: u64 = 256 << 20;

/// Bytes of the buffer that brotli reads into.
const BUFFER_BYTES: usize = 16 << 10;

/// The text of a body, and why it is missing or incomplete. A body that broke off is read as far as
/// it came.
pub(crate) fn decode<'a>(encodings: &str, body: &'a [u8]) -> (Cow<'a, str>, Option<String>) {
    let mut decoded = Cow::Borrowed(body);
    let mut problem = None;
    // The last one was applied last.
    for encoding in encodings.split(',').rev().map(|name| name.trim().to_ascii_lowercase()) {
        let mut bytes = Vec::new();
        let read = match encoding.as_str() {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => read_all(flate2::read::MultiGzDecoder::new(&*decoded), &mut bytes),
            "deflate" => read_all(flate2::read::ZlibDecoder::new(&*decoded), &mut bytes),
            "br" => read_all(brotli_decompressor::Decompressor::new(&*decoded, BUFFER_BYTES), &mut bytes),
            "zstd" => match ruzstd::decoding::StreamingDecoder::new(&*decoded) {
                Ok(decoder) => read_all(decoder, &mut bytes),
                Err(error) => Err(io::Error::other(error)),
            },
            other => {
                return (Cow::Borrowed(""), Some(format!("the body is compressed with `{other}`, which is not read")));
            }
        };
        problem = problem.or_else(|| read.err().map(|error| format!("cannot decompress the body: {error}")));
        decoded = Cow::Owned(bytes);
    }
    let text = match decoded {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    };
    (text, problem)
}

fn read_all(decoder: impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    decoder.take(MAX_DECODED_BYTES).read_to_end(bytes).map(|_| ())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::decode;

    const TEXT: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

    /// The text above, as other programs compressed it.
    const COMPRESSED: [(&str, &str); 4] = [
        ("gzip", "H4sIAAAAAAAAA0stS80rsVIoyMxL50pJLEm0UqhWKqksSFWyUgKJKdVycQEA6qY7PiMAAAA="),
        ("deflate", "eJxLLUvNK7FSKMjMS+dKSSxJtFKoViqpLEhVslICiSnVcnEBANtxC2c="),
        ("br", "GyIAwERP1l+SvcS3bqaYoJjpQUSRRSCl4bAq66wAnOw4205R5AM="),
        ("zstd", "KLUv/QRoGQEAZXZlbnQ6IHBpbmcKZGF0YTogeyJ0eXBlIjoicGluZyJ9CgoQjhOf"),
    ];

    fn bytes(encoded: &str) -> Vec<u8> {
        STANDARD.decode(encoded).unwrap()
    }

    #[test]
    fn every_encoding_of_clients_is_read() {
        for (encoding, encoded) in COMPRESSED {
            assert_eq!(decode(encoding, &bytes(encoded)), (TEXT.into(), None), "{encoding}");
        }
        assert_eq!(decode("", TEXT.as_bytes()), (TEXT.into(), None));
        assert_eq!(decode("Identity", TEXT.as_bytes()), (TEXT.into(), None));
        let (text, problem) = decode("gzip, unknown", b"x");
        assert!(text.is_empty() && problem.unwrap().contains("`unknown`"));
    }

    #[test]
    fn a_body_that_breaks_off_is_a_problem_and_never_a_panic() {
        for (encoding, encoded) in COMPRESSED {
            let body = bytes(encoded);
            for length in 0..body.len() {
                let (text, _) = decode(encoding, &body[..length]);
                assert!(TEXT.starts_with(&*text), "{encoding} {length}: {text}");
            }
            assert!(decode(encoding, &body[..body.len() / 2]).1.is_some(), "{encoding}");
        }
    }
}
