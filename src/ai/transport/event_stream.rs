//! Amazon's binary event streams, framed incrementally from bytes.
//!
//! Pure: accepts chunks of any size and returns messages in order. Decoders
//! interpret the messages. Both checksums of a message are verified before its
//! contents are used; the checksum of the lengths is verified before the parser
//! waits for the rest.
//!
//! Format: <https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html>,
//! header types: <https://smithy.io/2.0/aws/amazon-eventstream.html>.

use std::borrow::Cow;

/// Longest message accepted; the format allows a payload of 16 MiB.
pub(in crate::ai) const MESSAGE_LIMIT_BYTES: usize = 24 << 20;

/// Length of the message, length of its headers, checksum of both.
const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;

/// One message of the stream.
#[derive(Debug, PartialEq)]
pub(in crate::ai) struct Message<'a> {
    pub(in crate::ai) headers: Headers<'a>,
    pub(in crate::ai) payload: &'a [u8],
}

/// The headers that identify a message; empty where absent.
#[derive(Debug, Default, PartialEq)]
pub(in crate::ai) struct Headers<'a> {
    /// `event`, `exception` or `error`.
    pub(in crate::ai) message_type: Cow<'a, str>,
    pub(in crate::ai) event_type: Cow<'a, str>,
    pub(in crate::ai) exception_type: Cow<'a, str>,
    pub(in crate::ai) error_code: Cow<'a, str>,
    pub(in crate::ai) error_message: Cow<'a, str>,
}

/// The texts contain "interrupted", because sending the request again helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::ai) enum EventStreamError {
    #[error("stream interrupted: the {0} of a message do not match their checksum")]
    Checksum(&'static str),
    #[error("stream interrupted: a message with impossible lengths or headers")]
    Malformed,
    #[error("the stream holds a message larger than {limit_bytes} bytes")]
    TooLong { limit_bytes: usize },
}

/// Splits a byte stream into messages. Feed with [`Self::push`], then drain with
/// [`Self::next`].
#[derive(Debug)]
pub(in crate::ai) struct EventStreamParser {
    buffer: Vec<u8>,
    /// Start of the message being read; earlier bytes are consumed.
    start: usize,
    limit_bytes: usize,
}

impl EventStreamParser {
    pub(in crate::ai) fn new(limit_bytes: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, limit_bytes }
    }

    /// Adds the next bytes of the stream.
    pub(in crate::ai) fn push(&mut self, bytes: &[u8]) {
        // Never moves more bytes than are pending, and only after a message was returned.
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message in the bytes pushed so far.
    ///
    /// # Errors
    /// If the bytes are damaged or the message is too long; the parser must not be
    /// used afterwards.
    pub(in crate::ai) fn next(&mut self) -> Result<Option<Message<'_>>, EventStreamError> {
        let pending = self.buffer.get(self.start..).unwrap_or_default();
        let Some(prelude) = pending.first_chunk::<PRELUDE_BYTES>() else { return Ok(None) };
        let lengths = Lengths::read(*prelude, self.limit_bytes)?;
        let Some(message) = pending.get(..lengths.total) else { return Ok(None) };
        self.start += lengths.total;
        let (body, checksum) =
            message.split_last_chunk::<CHECKSUM_BYTES>().ok_or(EventStreamError::Malformed)?;
        if crc32fast::hash(body) != u32::from_be_bytes(*checksum) {
            return Err(EventStreamError::Checksum("contents"));
        }
        let content = body.get(PRELUDE_BYTES..).and_then(|rest| rest.split_at_checked(lengths.headers));
        let (headers, payload) = content.ok_or(EventStreamError::Malformed)?;
        let headers = Headers::read(headers).ok_or(EventStreamError::Malformed)?;
        Ok(Some(Message { headers, payload }))
    }
}

struct Lengths {
    total: usize,
    headers: usize,
}

impl Lengths {
    fn read(prelude: [u8; PRELUDE_BYTES], limit_bytes: usize) -> Result<Self, EventStreamError> {
        let [a, b, c, d, e, f, g, h, checksum @ ..] = prelude;
        if crc32fast::hash(&[a, b, c, d, e, f, g, h]) != u32::from_be_bytes(checksum) {
            return Err(EventStreamError::Checksum("lengths"));
        }
        let length = |bytes: [u8; 4]| usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX);
        let (total, headers) = (length([a, b, c, d]), length([e, f, g, h]));
        if total > limit_bytes {
            return Err(EventStreamError::TooLong { limit_bytes });
        }
        if headers.saturating_add(PRELUDE_BYTES + CHECKSUM_BYTES) > total {
            return Err(EventStreamError::Malformed);
        }
        Ok(Self { total, headers })
    }
}

impl<'a> Headers<'a> {
    /// `None` if the bytes are not valid headers.
    fn read(mut rest: &'a [u8]) -> Option<Self> {
        let mut headers = Self::default();
        while !rest.is_empty() {
            let length = take::<1>(&mut rest)?[0];
            let name = take_slice(&mut rest, usize::from(length))?;
            let [kind] = take::<1>(&mut rest)?;
            let value = match kind {
                // Booleans: the type itself is the value.
                0 | 1 => &[],
                2 => take_slice(&mut rest, 1)?,
                3 => take_slice(&mut rest, 2)?,
                4 => take_slice(&mut rest, 4)?,
                // Long integer and timestamp.
                5 | 8 => take_slice(&mut rest, 8)?,
                // Byte array and string.
                6 | 7 => {
                    let length = u16::from_be_bytes(take::<2>(&mut rest)?);
                    take_slice(&mut rest, usize::from(length))?
                }
                // UUID.
                9 => take_slice(&mut rest, 16)?,
                _ => return None,
            };
            let slot = match (name, kind) {
                (b":message-type", 7) => &mut headers.message_type,
                (b":event-type", 7) => &mut headers.event_type,
                (b":exception-type", 7) => &mut headers.exception_type,
                (b":error-code", 7) => &mut headers.error_code,
                (b":error-message", 7) => &mut headers.error_message,
                _ => continue,
            };
            *slot = String::from_utf8_lossy(value);
        }
        Some(headers)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

fn take_slice<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with these header bytes and valid checksums.
    fn message(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = PRELUDE_BYTES + headers.len() + payload.len() + CHECKSUM_BYTES;
        let mut bytes = Vec::new();
        bytes.extend(u32::try_from(total).unwrap().to_be_bytes());
        bytes.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend(headers);
        bytes.extend(payload);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn string(name: &str, value: &str) -> Vec<u8> {
        let mut bytes = vec![u8::try_from(name.len()).unwrap()];
        bytes.extend(name.as_bytes());
        bytes.push(7);
        bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend(value.as_bytes());
        bytes
    }

    /// Event types and payloads up to the first error; then the error.
    fn read(chunks: &[&[u8]], limit_bytes: usize) -> (Vec<(String, Vec<u8>)>, Option<EventStreamError>) {
        let mut parser = EventStreamParser::new(limit_bytes);
        let mut messages = Vec::new();
        for chunk in chunks {
            parser.push(chunk);
            loop {
                match parser.next() {
                    Ok(Some(Message { headers, payload })) => {
                        messages.push((headers.event_type.into_owned(), payload.to_vec()));
                    }
                    Ok(None) => break,
                    Err(error) => return (messages, Some(error)),
                }
            }
        }
        (messages, None)
    }

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let two = [message(&string(":event-type", "a"), b"{}"), message(&string(":event-type", "b"), b"")];
        let bytes = two.concat();
        let expected = (vec![("a".to_owned(), b"{}".to_vec()), ("b".to_owned(), Vec::new())], None);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(read(&[head, tail], 1_000), expected, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single, 1_000), expected);
    }

    #[test]
    fn headers_of_all_types_are_passed_over() {
        let mut headers = Vec::new();
        for (kind, length) in [(0_u8, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
            headers.extend([1, b'x', kind]);
            headers.extend(vec![0xff; length]);
        }
        headers.extend([1, b'x', 6, 0, 2, 9, 9]);
        headers.extend(string(":event-type", "a"));
        let (messages, error) = read(&[&message(&headers, b"p")], 1_000);
        assert_eq!((messages, error), (vec![("a".to_owned(), b"p".to_vec())], None));
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let whole = message(&string(":event-type", "a"), b"{\"x\":1}");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let (messages, error) = read(&[&damaged], 1_000);
            assert!(messages.is_empty() && matches!(error, Some(EventStreamError::Checksum(_))), "byte {at}");
        }
    }

    #[test]
    fn impossible_messages_are_refused() {
        let check = |bytes: Vec<u8>, expected: EventStreamError| {
            assert_eq!(read(&[&bytes], 100), (Vec::new(), Some(expected)));
        };
        let prelude = |total: u32, headers: u32| {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
            bytes
        };
        // An oversized message is rejected before its bytes have arrived.
        check(prelude(101, 0), EventStreamError::TooLong { limit_bytes: 100 });
        check(prelude(u32::MAX, u32::MAX), EventStreamError::TooLong { limit_bytes: 100 });
        check(prelude(0, 0), EventStreamError::Malformed);
        check(prelude(15, 0), EventStreamError::Malformed);
        check(prelude(20, 5), EventStreamError::Malformed);
        check(message(&[9, b'x'], b""), EventStreamError::Malformed);
        check(message(&[1, b'x', 10], b""), EventStreamError::Malformed);
        check(message(&[1, b'x', 7, 0, 9, b'y'], b""), EventStreamError::Malformed);
    }
}
