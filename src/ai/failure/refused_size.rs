//! Reads the token counts in the error of a request that was too long.
//!
//! Services word these errors in many ways, so a number gets its meaning from the
//! words around it: the clue nearest before it, otherwise the one right after it.

/// The token counts that an error names when a request was too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusedSize {
    /// The most tokens the service accepts: its context window, its limit of the input, or its
    /// limit of tokens per minute.
    pub limit: Option<u64>,
    /// The tokens of the request, perhaps with those reserved for the answer. Above `limit` if
    /// both are known.
    pub requested: Option<u64>,
    /// By how many tokens the request was too long.
    pub excess: Option<u64>,
}

/// What a number in such an error counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Limit,
    Requested,
    Excess,
}

/// Words before a number, by meaning. The last one before the number decides.
const CLUES: &[(Meaning, &[&str])] = &[
    (
        Meaning::Limit,
        &[
            "limit",
            "maximum",
            "max ",
            "max_",
            "at most",
            "up to",
            "allowed",
            "context length",
            "context size",
            "context window",
            "model length",
            "n_ctx",
            "less than",
            "should be",
            "must be",
            "<=",
            "> ",
            "budget",
            "capacity",
        ],
    ),
    (
        Meaning::Requested,
        &[
            "requested",
            "contains",
            "contained",
            "has ",
            "have ",
            "given",
            "resulted in",
            "got ",
            "received",
            "too long",
            "too large",
            "(length",
            "count (",
            "count of",
            "request (",
            "input (",
            "prompt (",
            "prompt of",
            "input of",
            "request of",
            "to keep the first",
            "need",
            "your ",
            "n_prompt_tokens",
            "total of",
            "actual",
        ],
    ),
    (Meaning::Excess, &["exceeded by", "exceeds by", "tokens over", "too long by", "too large by"]),
];

/// Words right after a number that make it the limit: `32768 maximum context length`.
const LIMIT_FOLLOWS: &[&str] =
    &["maximum", "max ", "token limit", "-token limit", "token context", "-token context", "context"];

/// Words right after a number of tokens that make it the size of the request.
const FOLLOWS_REQUESTED: &[&str] =
    &["> ", "+ ", "exceed", "is longer", "is greater", "is larger", "is more", "is too", "do not fit"];

/// Units of numbers that are not tokens.
const OTHER_UNITS: &[&str] = &[
    "byte",
    "kb",
    "mb",
    "kib",
    "mib",
    "character",
    "char",
    "image",
    "page",
    "second",
    "ms",
    "%",
    "message",
    "tool",
];

/// Smaller numbers are no sizes, such as the 1 of `[1, 98304]`.
const MIN_TOKENS: u64 = 100;

impl RefusedSize {
    /// The counts in `text`; `None` if it names none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let mut size = Self { excess: negative_room(&lower), ..Self::default() };
        let mut before = 0;
        let mut adds = false;
        for number in numbers(&lower) {
            let tail = lower[number.end..].trim_start_matches([' ', ')', ']', ',', '`', '\'']);
            if OTHER_UNITS.iter().any(|unit| tail.starts_with(unit)) {
                continue;
            }
            let lead = &lower[before..number.start];
            let meaning = if adds { Some(Meaning::Requested) } else { meaning(lead, tail) };
            size.add(meaning, number.tokens, adds);
            adds = tail.starts_with("+ ");
            before = number.end;
        }
        size.checked()
    }

    fn add(&mut self, meaning: Option<Meaning>, tokens: u64, adds: bool) {
        match meaning {
            Some(Meaning::Limit) => self.limit = self.limit.or(Some(tokens)),
            Some(Meaning::Requested) if adds => {
                self.requested = Some(self.requested.unwrap_or(0).saturating_add(tokens));
            }
            Some(Meaning::Requested) => self.requested = self.requested.max(Some(tokens)),
            Some(Meaning::Excess) => self.excess = self.excess.or(Some(tokens)),
            None => {}
        }
    }

    /// Drops what contradicts itself, and derives the excess.
    fn checked(mut self) -> Option<Self> {
        if let (Some(limit), Some(requested)) = (self.limit, self.requested) {
            self.requested = Some(requested).filter(|requested| *requested > limit);
        }
        let difference = self.requested.zip(self.limit).map(|(requested, limit)| requested - limit);
        self.excess = self.excess.or(difference);
        (self != Self::default()).then_some(self)
    }
}

/// The meaning of a number between `lead`, which begins after the number before, and `tail`.
fn meaning(lead: &str, tail: &str) -> Option<Meaning> {
    let compared = tail.strip_prefix("tokens").unwrap_or(tail).trim_start_matches([' ', ')', '`']);
    if FOLLOWS_REQUESTED.iter().any(|clue| compared.starts_with(clue)) {
        return Some(Meaning::Requested);
    }
    let ends = CLUES.iter().flat_map(|(meaning, clues)| {
        clues.iter().filter_map(|clue| Some((lead.rfind(clue)? + clue.len(), clue.len(), *meaning)))
    });
    let nearest = ends.max_by_key(|(end, length, _)| (*end, *length)).map(|(.., meaning)| meaning);
    let by = lead.trim_end().ends_with(" by").then_some(Meaning::Excess);
    let follows = || LIMIT_FOLLOWS.iter().any(|clue| tail.starts_with(clue)).then_some(Meaning::Limit);
    by.or_else(follows).or(nearest)
}

/// How much too long the prompt is, if the service computed a limit of the answer below one
/// token: `max_tokens must be at least 1, got -2048`. pi never requests less than one.
fn negative_room(lower: &str) -> Option<u64> {
    if !super::patterns::ANSWER_LIMITS.iter().any(|name| lower.contains(name)) {
        return None;
    }
    lower.match_indices('-').find_map(|(at, _)| {
        let starts_number = lower[..at].ends_with([' ', '=', ':', '(', '`', '\'', '"']);
        let digits = &lower[at + 1..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok().filter(|_| starts_number)
    })
}

/// A number of tokens in a text, with its place there.
struct FoundNumber {
    start: usize,
    end: usize,
    tokens: u64,
}

/// The numbers in `text` that may be counts of tokens: no parts of words, ids, dates or versions.
fn numbers(text: &str) -> impl Iterator<Item = FoundNumber> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find(|c: char| c.is_ascii_digit())?;
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, ',' | '_' | '.');
            let length = text[start..].find(|c| !is_part(c)).unwrap_or(text.len() - start);
            let digits = text[start..start + length].trim_end_matches([',', '_', '.']);
            let mut end = start + digits.len();
            from = start + length;
            let is_joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '#');
            if text[..start].chars().next_back().is_some_and(is_joined) {
                continue;
            }
            let Some(mut tokens) = grouped(digits) else { continue };
            if text[end..].starts_with('k') {
                end += 1;
                tokens = tokens.saturating_mul(1_000);
            }
            let mut after = text[end..].chars();
            let next_joins = match after.next() {
                Some('-') => !text[end..].starts_with("-token"),
                Some('.' | ',') | None => false,
                Some(c) => c.is_alphanumeric() || c == '_' || c == '/',
            };
            if !next_joins && tokens >= MIN_TOKENS {
                return Some(FoundNumber { start, end, tokens });
            }
        }
    })
}

/// The value of `128000`, `128,000`, `128_000` or `128.000`; `None` for other numbers.
fn grouped(digits: &str) -> Option<u64> {
    let mut groups = digits.split([',', '_', '.']);
    let first = groups.next()?;
    let mut whole = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.len() > 3 {
            return None;
        }
        whole.push_str(group);
    }
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_overflow_are_read_in_every_known_wording() {
        let rows: &[(&str, [Option<u64>; 3])] = &[
            (
                "prompt is too long: 210000 tokens > 200000 maximum",
                [Some(200_000), Some(210_000), Some(10_000)],
            ),
            (
                "input length and `max_tokens` exceed context limit: 183434 + 21333 > 200000, decrease input length",
                [Some(200_000), Some(204_767), Some(4_767)],
            ),
            (
                "This model's maximum context length is 128,000 tokens. However, you requested 130000 tokens (129000 in the messages, 1000 in the completion).",
                [Some(128_000), Some(130_000), Some(2_000)],
            ),
            (
                "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens.",
                [Some(8_192), Some(9_000), Some(808)],
            ),
            (
                "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280000 tokens.",
                [Some(272_000), Some(280_000), Some(8_000)],
            ),
            (
                "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
                [Some(1_048_576), Some(1_250_074), Some(201_498)],
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
                [Some(131_072), Some(537_812), Some(406_740)],
            ),
            ("exceeds the maximum allowed input length of 262144 tokens", [Some(262_144), None, None]),
            (
                "The input (300000 tokens) is longer than the model's context length (262144 tokens)",
                [Some(262_144), Some(300_000), Some(37_856)],
            ),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                [Some(32_768), Some(40_000), Some(7_232)],
            ),
            (
                "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
                [Some(512), Some(2_009), Some(1_497)],
            ),
            (
                "the request exceeds the available context size (n_ctx 4096, n_prompt_tokens 5000)",
                [Some(4_096), Some(5_000), Some(904)],
            ),
            (
                "Trying to keep the first 6269 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
                [Some(4_096), Some(6_269), Some(2_173)],
            ),
            (
                "The decoder prompt (length 9000) is longer than the maximum model length of 8192",
                [Some(8_192), Some(9_000), Some(808)],
            ),
            (
                "prompt token count of 300000 exceeds the limit of 128000",
                [Some(128_000), Some(300_000), Some(172_000)],
            ),
            (
                "exceeded model token limit: 262144 (requested: 300000)",
                [Some(262_144), Some(300_000), Some(37_856)],
            ),
            ("Range of input length should be [1, 98304]", [Some(98_304), None, None]),
            ("context window exceeds limit (2013)", [Some(2_013), None, None]),
            (
                "Request too large for model `llama-3.1-8b-instant` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12500, please reduce your message size and try again.",
                [Some(6_000), Some(12_500), Some(6_500)],
            ),
            ("prompt too long; exceeded max context length by 1119 tokens", [None, None, Some(1_119)]),
            (
                "too many tokens: size limit exceeded by 25836 tokens. The limit for this model is 4096 tokens.",
                [Some(4_096), None, Some(25_836)],
            ),
            ("max_tokens must be at least 1, got -2048", [None, None, Some(2_048)]),
            (
                "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4500 `inputs` tokens and 200 `max_new_tokens`",
                [Some(4_096), Some(4_500), Some(404)],
            ),
            (
                "prompt has 9000 tokens but the configured context size is 8192",
                [Some(8_192), Some(9_000), Some(808)],
            ),
            (
                "the prompt of 140k tokens is over the 128k token limit",
                [Some(128_000), Some(140_000), Some(12_000)],
            ),
        ];
        for (text, [limit, requested, excess]) in rows.iter().copied() {
            assert_eq!(RefusedSize::read(text), Some(RefusedSize { limit, requested, excess }), "{text}");
        }
    }

    #[test]
    fn other_numbers_are_no_sizes() {
        for text in [
            "",
            "prompt is too long",
            "413: Payload Too Large",
            "the request is larger than the limit of 33554432 bytes",
            "400: no room for gpt-4-32000 on 2026-11-28 (req_200000, limit v1.5.20)",
            "too many images: the limit is 100 images",
        ] {
            assert_eq!(RefusedSize::read(text), None, "{text}");
        }
    }
}
