//! The classes of the codes that services send with an error.
//!
//! A code that names one class decides it, whatever the text says. Codes that
//! cover several classes (`invalid_request_error`, `INVALID_ARGUMENT`,
//! `server_error`, `api_error`, `ValidationException`, `RESOURCE_EXHAUSTED`) are missing on
//! purpose: with them, status, quotas and text decide.
//!
//! Sources: the error pages of the services, and recorded errors.

use super::FailureClass;

/// A row per class. Codes are written as [`normalised`] leaves them.
const CODES: &[(FailureClass, &[&str])] = &[
    (
        FailureClass::Auth,
        &[
            "authenticationerror",
            "permissionerror",
            "invalidapikey",
            "apikeyinvalid",
            "unauthenticated",
            "unauthorized",
            "permissiondenied",
            "accessdeniedexception",
            "expiredtokenexception",
            "unrecognizedclientexception",
            "missingauthenticationtokenexception",
            "invalidsignatureexception",
        ],
    ),
    (
        FailureClass::Overflow,
        &[
            "contextlengthexceeded",
            "requesttoolarge",
            "exceedcontextsizeerror",
            "modelmaxprompttokensexceeded",
            "modelcontextwindowexceeded",
            "contextwindowexceedederror",
            "toomanytokens",
            "toomanyprompttokens",
            // z.ai
            "1261",
        ],
    ),
    (
        FailureClass::NotFound,
        &[
            "modelnotfound",
            "notfounderror",
            "notfound",
            "previousresponsenotfound",
            "resourcenotfoundexception",
            "deploymentnotfound",
        ],
    ),
    (
        FailureClass::RateLimit,
        &[
            "ratelimiterror",
            "ratelimitexceeded",
            "ratelimitreached",
            "ratelimitreachederror",
            "toomanyrequests",
            "throttlingexception",
        ],
    ),
    (
        FailureClass::Overloaded,
        &[
            "overloadederror",
            "engineoverloadederror",
            "serviceunavailable",
            "serviceunavailableexception",
            "modelnotreadyexception",
            "unavailable",
        ],
    ),
    (
        FailureClass::Quota,
        &[
            "insufficientquota",
            "billingerror",
            "usagelimitreached",
            "usagenotincluded",
            "exceededcurrentquotaerror",
            "gousagelimiterror",
            "freeusagelimiterror",
            "servicequotaexceededexception",
            "quotaexceeded",
            "paymentrequired",
            // z.ai
            "1308",
        ],
    ),
    (FailureClass::ToolUseFailed, &["toolusefailed", "malformedfunctioncall"]),
    (FailureClass::Server, &["internalserverexception", "modelstreamerrorexception"]),
    (FailureClass::Network, &["networkerror", "deadlineexceeded", "websocketconnectionlimitreached"]),
    (FailureClass::Refused, &["contentpolicyviolation", "contentfilter"]),
];

/// Reasons for which a model stops without an answer, with their classes. Other
/// reasons are read as text.
const STOP_REASONS: &[(FailureClass, &[&str])] = &[
    (
        FailureClass::Refused,
        &[
            "refusal",
            "sensitive",
            "contentfilter",
            "contentfiltered",
            "guardrailintervened",
            "safety",
            "recitation",
            "blocklist",
            "prohibitedcontent",
            "spii",
            "imagesafety",
            "imageprohibitedcontent",
            "imagerecitation",
        ],
    ),
    (FailureClass::Overflow, &["modelcontextwindowexceeded", "contextwindowexceeded"]),
    (FailureClass::Network, &["networkerror"]),
    (FailureClass::Server, &["error"]),
    (
        FailureClass::ToolUseFailed,
        &[
            "malformedfunctioncall",
            "malformedresponse",
            "malformedmodeloutput",
            "malformedtooluse",
            "unexpectedtoolcall",
        ],
    ),
];

/// The class that `code` alone decides.
pub(super) fn class_of(code: &str) -> Option<FailureClass> {
    look_up(CODES, code)
}

/// The class that the reason for which a model stopped decides.
pub(super) fn class_of_stop_reason(reason: &str) -> Option<FailureClass> {
    look_up(STOP_REASONS, reason)
}

fn look_up(rows: &[(FailureClass, &[&str])], code: &str) -> Option<FailureClass> {
    let code = normalised(code);
    rows.iter().find(|(_, codes)| codes.contains(&code.as_str())).map(|(class, _)| *class)
}

/// `RATE_LIMIT_EXCEEDED`, `rate-limit-exceeded` and `RateLimitExceeded` are one code.
pub(in crate::ai) fn normalised(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_change_a_code() {
        for code in ["RATE_LIMIT_EXCEEDED", "rate-limit-exceeded", "RateLimitExceeded"] {
            assert_eq!(class_of(code), Some(FailureClass::RateLimit), "{code}");
        }
    }

    #[test]
    fn codes_of_several_classes_decide_nothing() {
        for code in ["invalid_request_error", "INVALID_ARGUMENT", "server_error", "api_error", "400", ""] {
            assert_eq!(class_of(code), None, "{code}");
        }
    }

    #[test]
    fn every_code_is_normalised_and_in_one_row() {
        for table in [CODES, STOP_REASONS] {
            let codes: Vec<&str> = table.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
            for (position, code) in codes.iter().enumerate() {
                assert_eq!(normalised(code), *code);
                assert!(!codes[position + 1..].contains(code), "{code} stands twice");
            }
        }
    }
}
