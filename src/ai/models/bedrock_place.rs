//! Bedrock's endpoint, which depends on the region.
//!
//! A base URL is [`BEDROCK_TEMPLATE`], an Amazon address that contains a region, or
//! the address of a proxy. The code that finds a request's credential knows the
//! region and passes it in [`AwsKeys::region`](crate::ai::requests::AwsKeys), or
//! passes the finished address in [`SignIn::base_url`](crate::ai::requests::SignIn).
//! Nothing here reads settings or the environment.
//!
//! Addresses: <https://docs.aws.amazon.com/general/latest/gr/bedrock.html>.

/// The base URL of a Bedrock model before the region is known.
pub const BEDROCK_TEMPLATE: &str = "https://bedrock-runtime.{region}.amazonaws.com";

/// The region used if none is configured.
pub const BEDROCK_DEFAULT_REGION: &str = "us-east-1";

const PLACEHOLDER: &str = "{region}";

/// Inserts `region` into `template`: fills its placeholder, or replaces the region of
/// an Amazon address. Other addresses stay unchanged.
pub fn bedrock_base_url(template: &str, region: &str) -> String {
    match bedrock_region(template) {
        Some(known) => template.replacen(&format!(".{known}."), &format!(".{region}."), 1),
        None => template.replace(PLACEHOLDER, region),
    }
}

/// The region in the host name of an Amazon address.
pub fn bedrock_region(base_url: &str) -> Option<&str> {
    let (_, rest) = base_url.split_once("://")?;
    let host = rest.split(['/', ':']).next()?;
    let rest =
        ["bedrock-runtime.", "bedrock-runtime-fips."].iter().find_map(|name| host.strip_prefix(name))?;
    let region = [".amazonaws.com", ".amazonaws.com.cn"].iter().find_map(|end| rest.strip_suffix(end))?;
    is_region(region).then_some(region)
}

/// The region of an ARN: `arn:aws:bedrock:us-west-2:123456789012:…`.
pub(in crate::ai) fn arn_region(id: &str) -> Option<&str> {
    let mut parts = id.split(':');
    let is_arn = parts.next() == Some("arn");
    let region = parts.nth(2)?;
    (is_arn && is_region(region)).then_some(region)
}

/// Whether `text` is safe in a host name.
pub(in crate::ai) fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_amazon_take_the_region() {
        let check = |template: &str, expected: &str| {
            assert_eq!(bedrock_base_url(template, "eu-west-1"), expected);
        };
        check(BEDROCK_TEMPLATE, "https://bedrock-runtime.eu-west-1.amazonaws.com");
        check(
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
        );
        check(
            "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/",
            "https://bedrock-runtime-fips.eu-west-1.amazonaws.com/",
        );
        check("http://localhost:4000/bedrock", "http://localhost:4000/bedrock");
        check(
            "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com",
            "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com",
        );
    }

    #[test]
    fn regions_are_read_from_hosts_and_arns() {
        assert_eq!(bedrock_region("https://bedrock-runtime.us-east-1.amazonaws.com/x"), Some("us-east-1"));
        assert_eq!(bedrock_region(BEDROCK_TEMPLATE), None);
        assert_eq!(bedrock_region("nonsense"), None);
        assert_eq!(
            arn_region("arn:aws:bedrock:us-west-2:1:inference-profile/us.anthropic.claude"),
            Some("us-west-2")
        );
        assert_eq!(arn_region("arn:aws:bedrock::1:x"), None);
        assert_eq!(arn_region("anthropic.claude-v1:0:a:b"), None);
        assert_eq!(arn_region("arn:aws:bedrock:evil.com/:1:x"), None);
    }
}
