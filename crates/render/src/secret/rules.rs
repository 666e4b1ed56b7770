//! Patterns of the credentials of well-known services.

use super::value::{has_letters_and_digits, is_basic_auth, is_password};

/// How to find one kind of credential.
pub(super) struct SecretRule {
    /// Name in reports and in place of a masked value.
    pub(super) kind: &'static str,
    /// Texts at which to try the pattern, in any case; if empty, the whole text is searched.
    pub(super) keywords: &'static [&'static str],
    /// Regular expression that begins at the keyword. If it has a group, only the group is secret.
    pub(super) pattern: &'static str,
    /// Additional condition on the secret part.
    pub(super) check: fn(&str) -> bool,
}

/// A rule without an additional condition.
const fn pattern_rule(kind: &'static str, keywords: &'static [&'static str], pattern: &'static str) -> SecretRule {
    SecretRule { kind, keywords, pattern, check: |_| true }
}

/// A rule whose match must also pass a check.
const fn checked_rule(
    kind: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
    check: fn(&str) -> bool,
) -> SecretRule {
    SecretRule { kind, keywords, pattern, check }
}

/// If matches overlap, the kind of the earlier rule is reported.
pub(super) const RULES: &[SecretRule] = &[
    pattern_rule(
        "private key",
        &["-----begin"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    pattern_rule("age key", &["age-secret-key-"], r"(?-u:\b)AGE-SECRET-KEY-1[0-9A-Za-z]{40,}"),
    pattern_rule("Anthropic key", &["sk-ant-"], r"(?-u:\b)sk-ant-[A-Za-z0-9_-]{16,}"),
    checked_rule(
        "OpenAI key",
        &["sk-"],
        r"(?-u:\b)sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,200}(?-u:\b)",
        has_letters_and_digits,
    ),
    pattern_rule(
        "GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
    ),
    pattern_rule(
        "GitLab token",
        &["glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glagent-", "gloas-"],
        r"(?-u:\b)gl(?:pat|dt|rt|ptt|ft|agent|oas)-[A-Za-z0-9_.-]{20,}",
    ),
    pattern_rule("AWS key", &["akia", "asia", "abia"], r"(?-u:\b)(?:AKIA|ASIA|ABIA)[0-9A-Z]{16}(?-u:\b)"),
    pattern_rule("Google key", &["aiza"], r"(?-u:\b)AIza[0-9A-Za-z_-]{35}"),
    pattern_rule(
        "Google token",
        &["ya29.", "gocspx-"],
        r"(?-u:\b)(?:ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,})",
    ),
    pattern_rule(
        "Slack token",
        &["xox", "xapp-"],
        r"(?-u:\b)(?:xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,})",
    ),
    pattern_rule(
        "Slack webhook",
        &["hooks.slack.com/"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/-]{20,})",
    ),
    pattern_rule(
        "Discord webhook",
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        r"discord(?:app)?\.com/api/webhooks/([0-9]{10,}/[A-Za-z0-9_-]{20,})",
    ),
    pattern_rule("Teams webhook", &["webhook.office.com/"], r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/_-]{60,})"),
    checked_rule(
        "Discord token",
        &[],
        r"(?-u:\b)[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?-u:\b)",
        has_letters_and_digits,
    ),
    checked_rule("Telegram token", &[], r"(?-u:\b)[0-9]{8,10}:[A-Za-z0-9_-]{35}(?-u:\b)", has_letters_and_digits),
    pattern_rule(
        "Stripe key",
        &["sk_live_", "rk_live_", "pk_live_", "sk_test_", "rk_test_", "pk_test_"],
        r"(?-u:\b)[srp]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ),
    pattern_rule("Stripe webhook secret", &["whsec_"], r"(?-u:\b)whsec_[A-Za-z0-9+/=]{24,}"),
    pattern_rule("npm token", &["npm_"], r"(?-u:\b)npm_[A-Za-z0-9]{30,}"),
    pattern_rule("PyPI token", &["pypi-"], r"(?-u:\b)pypi-[A-Za-z0-9_-]{40,}"),
    pattern_rule("RubyGems key", &["rubygems_"], r"(?-u:\b)rubygems_[0-9a-f]{40,}"),
    pattern_rule("crates.io token", &["cio"], r"(?-u:\b)cio[A-Za-z0-9]{32}(?-u:\b)"),
    pattern_rule("Docker token", &["dckr_"], r"(?-u:\b)dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    pattern_rule("Mapbox token", &["sk.eyj"], r"(?-u:\b)sk\.eyJ[A-Za-z0-9_-]{20,1000}\.[A-Za-z0-9_-]{16,}"),
    pattern_rule("Doppler token", &["dp."], r"(?-u:\b)dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,}"),
    pattern_rule(
        "JSON web token",
        &["eyj"],
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,1000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{4,}",
    ),
    pattern_rule("Hugging Face token", &["hf_"], r"(?-u:\b)hf_[A-Za-z0-9]{30,}"),
    pattern_rule("Groq key", &["gsk_"], r"(?-u:\b)gsk_[A-Za-z0-9]{40,}"),
    pattern_rule("xAI key", &["xai-"], r"(?-u:\b)xai-[A-Za-z0-9]{60,}"),
    pattern_rule("Perplexity key", &["pplx-"], r"(?-u:\b)pplx-[A-Za-z0-9]{40,}"),
    pattern_rule("Replicate token", &["r8_"], r"(?-u:\b)r8_[A-Za-z0-9]{30,}"),
    pattern_rule("SendGrid key", &["sg."], r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}"),
    pattern_rule("Brevo key", &["xkeysib-", "xsmtpsib-"], r"(?-u:\b)x(?:key|smtp)sib-[A-Za-z0-9-]{40,}"),
    pattern_rule("Mailgun key", &["key-"], r"(?-u:\b)key-[0-9a-zA-Z]{32}(?-u:\b)"),
    pattern_rule("Mailchimp key", &[], r"(?-u:\b)[0-9a-f]{32}-us[0-9]{1,2}(?-u:\b)"),
    pattern_rule("Twilio key", &["sk"], r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)"),
    pattern_rule("DigitalOcean token", &["dop_v1_", "doo_v1_", "dor_v1_"], r"(?-u:\b)do[opr]_v1_[0-9a-f]{40,}"),
    pattern_rule("Vault token", &["hvs.", "hvb.", "hvr."], r"(?-u:\b)hv[bsr]\.[A-Za-z0-9_-]{20,}"),
    pattern_rule("Terraform token", &[".atlasv1."], r"\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    pattern_rule("Databricks token", &["dapi"], r"(?-u:\b)dapi[0-9a-f]{32}(?:-[0-9])?(?-u:\b)"),
    pattern_rule("Linear key", &["lin_api_", "lin_oauth_"], r"(?-u:\b)lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    pattern_rule(
        "Notion token",
        &["ntn_", "secret_"],
        r"(?-u:\b)(?:ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{43}(?-u:\b))",
    ),
    pattern_rule(
        "Supabase token",
        &["sbp_", "sb_secret_"],
        r"(?-u:\b)(?:sbp_[0-9A-Za-z]{36,}|sb_secret_[A-Za-z0-9_-]{20,})",
    ),
    pattern_rule(
        "Shopify token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"(?-u:\b)shp(?:at|ca|pa|ss)_[0-9a-zA-Z]{32,}",
    ),
    pattern_rule("Square token", &["sq0"], r"(?-u:\b)sq0[a-z]{3}-[0-9A-Za-z_-]{20,}"),
    pattern_rule("New Relic key", &["nrak-", "nraa-", "nrii-"], r"(?-u:\b)NR(?:AK|AA|II)-[A-Za-z0-9_-]{20,}"),
    pattern_rule("Datadog key", &["dd_api_key"], r#"(?i)DD_API_KEY["']?\s*[:=]\s*["']?([0-9a-f]{32})"#),
    pattern_rule("Grafana token", &["glsa_", "glc_"], r"(?-u:\b)(?:glsa_[A-Za-z0-9_]{32,}|glc_[A-Za-z0-9+/=]{32,})"),
    pattern_rule("Sentry token", &["sntrys_", "sntryu_"], r"(?-u:\b)sntry[su]_[A-Za-z0-9+/=_-]{30,}"),
    pattern_rule("Postman key", &["pmak-"], r"(?-u:\b)PMAK-[0-9a-f-]{40,}"),
    pattern_rule("PlanetScale token", &["pscale_"], r"(?-u:\b)pscale_(?:tkn|pw|oauth)_[A-Za-z0-9=._-]{30,}"),
    pattern_rule("Pulumi token", &["pul-"], r"(?-u:\b)pul-[0-9a-f]{40}(?-u:\b)"),
    pattern_rule("Tailscale key", &["tskey-"], r"(?-u:\b)tskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    pattern_rule("Figma token", &["figd_", "figu_"], r"(?-u:\b)fig[du]_[A-Za-z0-9_-]{30,}"),
    pattern_rule(
        "Atlassian token",
        &["atatt3", "atctt3", "atbb"],
        r"(?-u:\b)(?:AT[AC]TT3[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9]{28,})",
    ),
    pattern_rule("Netlify token", &["nfp_"], r"(?-u:\b)nfp_[A-Za-z0-9]{36,}"),
    pattern_rule("Heroku key", &["hrku-"], r"(?-u:\b)HRKU-[A-Za-z0-9_-]{36,}"),
    pattern_rule("Fly.io token", &["fm2_", "fo1_"], r"(?-u:\b)(?:fm2_[A-Za-z0-9+/=]{60,}|fo1_[A-Za-z0-9_-]{40,})"),
    pattern_rule("1Password token", &["ops_ey"], r"(?-u:\b)ops_ey[A-Za-z0-9_=+/-]{60,}"),
    pattern_rule("Azure SAS signature", &["sig="], r"(?-u:\b)sig=([A-Za-z0-9%+/]{30,}={0,2})"),
    checked_rule("basic authorization", &["basic "], r#"(?i:basic)\s+([A-Za-z0-9+/]{4,}={0,2})"#, is_basic_auth),
    pattern_rule("bearer token", &["bearer"], r"(?i:bearer)\s+([A-Za-z0-9._~+/-]{12,}=*)"),
    pattern_rule(
        "authorization",
        &["authorization"],
        r#"(?i:authorization)\\?["']?\s*[:=]\s*\\?["']?(?i:token|bot|apikey|api-key|key)\s+([A-Za-z0-9._~+/=-]{12,})"#,
    ),
    pattern_rule("cookie", &["cookie:"], r#"(?i:cookie):[ \t]*([^\s=;"'\\]+=[^\r\n"'\\]{4,})"#),
    checked_rule("password in an address", &["://"], r#"://[^\s/:@"'`<>]*:([^\s/@"'`<>]+)@"#, is_password),
    checked_rule(
        "password",
        &["curl"],
        r#"curl(?:\.exe)?(?:[^\n|;]|\\\r?\n){0,500}?[ \t](?:-[a-zA-Z]*[uU]|--(?:proxy-)?user)[ =]*["']?[^\s"':]*:([^\s"']+)"#,
        is_password,
    ),
    checked_rule("password", &["sshpass"], r#"sshpass[ \t]+-p[ \t]*["']?([^\s"']+)"#, is_password),
    checked_rule(
        "password",
        &["machine"],
        r"(?-u:\b)machine\s+\S+\s+login\s+\S+\s+(?:account\s+\S+\s+)?password\s+(\S+)",
        is_password,
    ),
];
