//! Accounting: tokens and dollars of answers, by turn, model, branch, session, day and
//! project.
//!
//! `record` reads the usage of a session file without its texts, `sum` adds records up.
//! Forked sessions repeat the entries of their source, so a record is counted once per
//! entry. Requests of a flat-rate plan are counted in tokens, not in dollars. Days are
//! those of a time zone.
//!
//! ```
//! use pi::session::{UsageReport, read_usage};
//! use pi::util::clock::Zone;
//!
//! let path = std::path::Path::new("tests/fixtures/sessions/tools3.jsonl");
//! let records = read_usage(path)?;
//! let report = UsageReport::of(&records, &Zone::system(), |_| None);
//! assert_eq!(report.total.requests, records.len() as u64);
//! for (model, sum) in &report.by_model {
//!     println!("{model}: {} tokens, ${:.4}", sum.tokens(), sum.cost_usd);
//! }
//! # Ok::<(), pi::session::OpenError>(())
//! ```

mod record;
mod sum;

pub(super) use record::CACHE_GRAIN_TOKENS;
pub use record::{UsageRecord, read_usage, read_usage_since, usage_since};
pub(super) use sum::billed_again_usd;
pub use sum::{UsageReport, UsageSum};
