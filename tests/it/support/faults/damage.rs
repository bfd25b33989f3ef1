//! Damages lines of a session file, as disks, power failures and other programs do.

use std::collections::BTreeSet;

use serde_json::Value;

use super::dice::Dice;
use super::reopen::Damage;
use super::witness::words;

/// What happens to a line.
const KINDS: [&str; 9] = [
    "one bit flipped",
    "cut short",
    "cut short, without its line break",
    "partly zeros",
    "all zeros",
    "deleted",
    "exchanged with another",
    "repeated at once",
    "repeated at the end",
];

/// A damaged file, and what may be missing from it.
pub(crate) struct Damaged {
    pub(crate) what: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) damage: Damage,
}

/// Damages one line of a session file that has at least two.
pub(crate) fn damage(bytes: &[u8], dice: &mut Dice) -> Damaged {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let kind = KINDS[dice.below(KINDS.len())];
    let at = dice.below(lines.len());
    let line = lines[at].clone();
    let len = line.len() - 1;
    let mut hit = vec![at];
    match kind {
        "one bit flipped" => lines[at][dice.below(len)] ^= 1 << dice.below(8),
        "cut short" => lines[at] = [&line[..dice.below(len)], b"\n"].concat(),
        "cut short, without its line break" => lines[at].truncate(dice.below(len)),
        "partly zeros" => {
            let from = dice.below(len);
            let n = dice.below(len - from) + 1;
            lines[at][from..from + n].fill(0);
        }
        "all zeros" => lines[at][..len].fill(0),
        "deleted" => drop(lines.remove(at)),
        "exchanged with another" => {
            let other = dice.below(lines.len());
            lines.swap(at, other);
            hit.clear();
        }
        "repeated at once" => {
            lines.insert(at, line.clone());
            hit.clear();
        }
        _ => {
            lines.push(line.clone());
            hit.clear();
        }
    }
    let ids = hit.iter().filter_map(|_| id(&line)).collect();
    let text = String::from_utf8_lossy(&line);
    let damaged: BTreeSet<String> = hit.iter().flat_map(|_| words(&text)).collect();
    // What is left of a line, or the line above, tells what it followed. A line that says
    // nothing any more and begins a branch of its own cannot be placed. A line of which not even
    // the break is left is a deleted one.
    let original: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let is_chain = |at: usize| at < 2 || parent(original[at]) == id(original[at - 1]);
    let cuts_branch = match kind {
        "deleted" => true,
        "cut short, without its line break" if lines[at].is_empty() => true,
        // A last line that begins a branch counts only if it is seen to have been written whole.
        _ if at + 1 == original.len() && !is_chain(at) => true,
        "exchanged with another" => !(1..original.len()).all(is_chain),
        "repeated at once" | "repeated at the end" => false,
        _ => !is_chain(at) && parent(&lines[at]).is_none_or(|left| Some(left) != parent(&line)),
    };
    let damage = Damage { ids, words: damaged, is_irregular: true, cuts_branch };
    Damaged { what: format!("line {} {kind}", at + 1), bytes: lines.concat(), damage }
}

/// The parent a line still tells of.
fn parent(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let (_, value) = text.split_once("\"parentId\":\"")?;
    Some(value.split_once('"')?.0.to_owned())
}

fn id(line: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    Some(value["id"].as_str()?.to_owned())
}
