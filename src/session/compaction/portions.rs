//! Divides a conversation that is longer than a request into portions. Pure.

use std::collections::VecDeque;

use super::shorten::{MIN_CHARS, head_and_tail, within};

/// Most portions of a conversation. What comes before them is left out: nobody wants to pay for
/// reading a conversation of a thousand windows by surprise.
pub(super) const MAX_PORTIONS: u64 = 8;

/// Consecutive messages, as texts, that one request can summarise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Portion(pub(super) Vec<String>);

/// A conversation in portions, oldest first.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Portions {
    pub(super) portions: VecDeque<Portion>,
    /// Messages at the beginning that are in none.
    pub(super) n_left_out: usize,
}

impl Portions {
    /// Divides `texts` into portions of at most `max_chars`, of which the last ones are full.
    pub(super) fn of(mut texts: Vec<String>, max_chars: usize) -> Self {
        let mut portions = VecDeque::new();
        while !texts.is_empty() && (portions.len() as u64) < MAX_PORTIONS {
            let at = start_of_last(&texts, max_chars);
            portions.push_front(Portion(texts.split_off(at)).within(max_chars));
        }
        if portions.is_empty() {
            portions.push_front(Portion::default());
        }
        Self { portions, n_left_out: texts.len() }
    }
}

impl Portion {
    /// Divides it, because it is longer than a request; a single message is shortened. `None`
    /// if it cannot be smaller.
    pub(super) fn smaller(mut self) -> Option<Vec<Self>> {
        if let [text] = &self.0[..] {
            let half = text.chars().count() / 2;
            return (half >= MIN_CHARS).then(|| vec![Self(vec![head_and_tail(text, half)])]);
        }
        let n_chars: usize = self.0.iter().map(|text| text.chars().count()).sum();
        let at = start_of_last(&self.0, n_chars / 2);
        let after = self.0.split_off(at);
        (!self.0.is_empty() && !after.is_empty()).then(|| vec![self, Self(after)])
    }

    /// A single message that is too long is shortened.
    fn within(mut self, max_chars: usize) -> Self {
        let max_chars = max_chars.max(MIN_CHARS);
        match &mut self.0[..] {
            [text] => Self(vec![within(std::mem::take(text), max_chars)]),
            _ => self,
        }
    }

    /// The same messages with shorter texts, half as much as far as that is possible.
    pub(super) fn shortened(&self) -> Self {
        let half = |text: &String| within(text.clone(), (text.chars().count() / 2).max(MIN_CHARS / 2));
        Self(self.0.iter().map(half).collect())
    }
}

/// Where the last texts begin that have at most `max_chars` together; at least one.
fn start_of_last(texts: &[String], max_chars: usize) -> usize {
    let mut n_chars = 0_usize;
    let too_much = texts.iter().rposition(|text| {
        n_chars = n_chars.saturating_add(text.chars().count());
        n_chars > max_chars
    });
    too_much.map_or(0, |at| (at + 1).min(texts.len().saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(lengths: &[usize]) -> Vec<String> {
        lengths.iter().enumerate().map(|(at, n)| ((b'a' + at as u8) as char).to_string().repeat(*n)).collect()
    }

    /// The first letters of each portion.
    fn shown(portions: &Portions) -> String {
        let letters =
            |portion: &Portion| portion.0.iter().filter_map(|text| text.chars().next()).collect::<String>();
        portions.portions.iter().map(letters).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_last_portions_are_full_and_the_oldest_messages_are_left_out() {
        assert_eq!(shown(&Portions::of(texts(&[4, 4, 4]), 12)), "abc");
        assert_eq!(shown(&Portions::of(texts(&[4, 4, 4]), 11)), "a bc");
        let many = Portions::of(texts(&[1; 20]), 2);
        assert_eq!((shown(&many), many.n_left_out), ("ef gh ij kl mn op qr st".to_owned(), 4));
        assert_eq!(Portions::of(Vec::new(), 9).portions, [Portion::default()]);
    }

    #[test]
    fn a_message_that_is_too_long_keeps_its_beginning_and_its_end() {
        let long = format!("{}{}{}", "ü".repeat(500), "x".repeat(3_000), "ß".repeat(500));
        let portions = Portions::of(vec![long, "b".to_owned()], 1_000).portions;
        let expected = format!("{}\n[3000 characters omitted]\n{}", "ü".repeat(500), "ß".repeat(500));
        assert_eq!(portions, [Portion(vec![expected]), Portion(vec!["b".to_owned()])]);
    }

    #[test]
    fn what_does_not_fit_gets_smaller_until_it_cannot() {
        let halves = Portion(texts(&[3, 3, 3])).smaller().unwrap();
        assert_eq!(halves, [Portion(texts(&[3, 3])), Portion(vec!["ccc".to_owned()])]);
        assert_eq!(Portion(texts(&[9, 1])).smaller().unwrap().len(), 2);
        assert_eq!(Portion(texts(&[1, 9])).smaller().unwrap().len(), 2);
        let shorter = Portion(texts(&[4_000])).smaller().unwrap();
        assert!(shorter[0].0[0].contains("[2000 characters omitted]"));
        assert_eq!(Portion(texts(&[1_999])).smaller(), None);
        assert_eq!(Portion::default().smaller(), None);
    }

    #[test]
    fn shortened_portion_has_all_messages() {
        let shorter = Portion(texts(&[4_000, 600, 100])).shortened();
        let lengths: Vec<usize> =
            shorter.0.iter().map(|text| text.chars().filter(|c| "abc".contains(*c)).count()).collect();
        // The notes have an "a" and a "c" in "characters" each, twice.
        assert_eq!(lengths, [2_000 + 4, 500 + 4, 100]);
    }

    proptest! {
        /// No message is lost, except the counted ones at the beginning, and no portion with
        /// more than one message is too long.
        #[test]
        fn portions_are_the_conversation(lengths in prop::collection::vec(1_usize..50, 0..24), max in 1_usize..100) {
            let all = texts(&lengths);
            let divided = Portions::of(all.clone(), max);
            let read: Vec<String> = divided.portions.iter().flat_map(|portion| portion.0.clone()).collect();
            prop_assert_eq!(&all[divided.n_left_out..], &read[..]);
            for Portion(texts) in &divided.portions {
                prop_assert!(texts.len() == 1 || texts.concat().chars().count() <= max);
            }
        }
    }
}
