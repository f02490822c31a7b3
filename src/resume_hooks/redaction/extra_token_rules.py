"""Add token rules for services that ``rules.json`` does not cover.

The rules have the format of ``rules.json`` and are based on the services' documentation. New rules
of this kind belong here.
"""

from __future__ import annotations

from typing import Any

_WORD_END = "(?![A-Za-z0-9])"
_SLACK_WEBHOOK_EXPRESSION = (
    r"\bhooks\.slack\.com/[a-z]{5,10}/([A-Z0-9]{8,12}/[A-Z0-9]{8,12}/\w{20,30})"
)
_DOPPLER_EXPRESSION = r"\bdp\.(?:st\.(?:[\w-]{2,35}\.)?|s[ac]\.|ct\.)[A-Za-z0-9]{40,44}"
_TEAMS_WEBHOOK_EXPRESSION = r"(?i)/IncomingWebhook/([a-z0-9]{32}/[a-z0-9-]{36}(?:/[\w-]{1,120})?)"
_DISCORD_EXPRESSION = r"(?<![\w.-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,45}(?![\w.-])"

_KEY_BODY_KEYWORDS = (
    "ibaakc ibadanbgkqhkig9w0baqefaasc migh mhccaqee mc4caqawbqydk2vwbcie b3blbnnzac1rzxktdj"
)
_KEY_START_EXPRESSION = (
    r"(?:MII[A-Za-z0-9+/]{3}IBAAKC|MII[A-Za-z0-9+/]{3}IBADANBgkqhkiG9w0BAQEFAASC|MIGH[A-Za-z0-9+/]{4}MBMGByqGSM49AgEG"
    r"|MHcCAQEE|MC4CAQAwBQYDK2VwBCIE|b3BlbnNzaC1rZXktdj)"
)
"""The beginnings of the bodies of RSA, EC, Ed25519 and OpenSSH keys."""

_KEY_BODY_LINES_EXPRESSION = (
    r"[A-Za-z0-9+/]{12,12000}={0,2}"
    r"(?:\s{1,20}(?:\d{1,6}(?:\xe2\x86\x92|[\t:|]))?[A-Za-z0-9+/]{16,76}={0,2}(?![\w+/=.:(-])){0,200}"
)
"""Matches the second and later lines of a key's body, with or without a line number from a tool."""


def _rule(
    kind: str, keywords: str, regex: str, entropy: float = 3.0, allowed: str = ""
) -> dict[str, Any]:
    return {
        "kind": kind,
        "keywords": keywords.split(),
        "regex": regex,
        "entropy": entropy,
        "allowed": [allowed] if allowed else [],
    }


_PURPOSE_WORDS = (
    "sk|key|tok|token|tkn|secret|api|apikey|live|prod|pat|auth|access|priv|private|svc"
    "|refresh|oauth|bot|admin|deploy"
)
_MIXED_CASE_EXPRESSION = (
    r"(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[a-z])(?=(?:[A-Za-z]*\d){3})[A-Za-z0-9]"
)
_PREFIXED_EXPRESSION = (
    rf"(?<![A-Za-z0-9_.-])(?<!sha256=)(?:[A-Za-z][A-Za-z0-9]{{0,11}}[_-]){{0,2}}(?:{_PURPOSE_WORDS})(?:[_-][a-z0-9]{{1,8}}){{0,2}}[_-]"
    rf"(?:{_MIXED_CASE_EXPRESSION}{{24,200}}|[a-f0-9]{{32,128}})(?![A-Za-z0-9])"
)
"""The usual format of newer tokens: words for the service and the purpose, and then random
characters."""

_ENCODED_KEY_EXPRESSION = r"\bLS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[A-Za-z0-9+/]{80,12000}={0,2}"
"""A private key in base64. Certificates and public keys begin with other characters."""
_OLD_VAULT_EXPRESSION = (
    r"(?<![\w.$/-])[sb]\.(?=[A-Za-z0-9]{0,20}\d)(?=[A-Za-z0-9]{0,20}[A-Z])"
    r"[A-Za-z0-9]{24}(?![\w.(-])"
)
_ATLASSIAN_EXPRESSION = (
    r"\b(?:AT[AC]TT3[\w=-]{60,250}|ATBB[A-Za-z0-9]{32}|BBDC-[A-Za-z0-9+/]{40,50})"
)
_UUID_EXPRESSION = "[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"


TOKEN_RULES: list[dict[str, Any]] = [
    _rule("prefixed-token", " ".join(f"{word}_ {word}-" for word in _PURPOSE_WORDS.split("|")),
          _PREFIXED_EXPRESSION, 3.5),
    _rule("prefixed-token", "_sk_ _pk_ _live_ _test_ _key_ _pat_ _tok_ _api_", _PREFIXED_EXPRESSION, 3.5),
    _rule("hubspot-token", "pat-na1- pat-eu1- pat-na2- pat-ap1-", r"\bpat-(?:na1|na2|eu1|ap1)-" + _UUID_EXPRESSION),
    _rule("tailscale-key", "tskey-", r"\btskey-[a-z]{2,12}-[A-Za-z0-9]{6,24}(?:CNTRL)?-[A-Za-z0-9]{16,64}" + _WORD_END),
    _rule("dropbox-token", "sl.", r"(?<![\w.-])sl\.(?:u\.)?[\w-]{60,1500}", 4.0),
    _rule("mapbox-secret-token", "sk.eyj tk.eyj", r"\b[st]k\.eyJ[\w-]{20,300}\.[\w-]{16,64}"),
    _rule("nuget-api-key", "oy2", r"\boy2[a-z0-9]{43}" + _WORD_END),
    _rule("vault-service-token", "s. b.", _OLD_VAULT_EXPRESSION, 3.8, r"(?:[A-Z][a-z]{3,}){2}"),
    _rule("telegram-bot-token", "/bot", r"/bot(\d{6,12}:[\w-]{30,40})"),
    _rule("flutterwave-key", "flwseck", r"\bFLWSECK(?:_TEST)?-[a-f0-9A-Z]{12,64}-X\b"),
    _rule("honeycomb-key", "hcaik_ hcxik_ hcxlk_", r"\bhc[ax][il]k_[a-z0-9]{58}" + _WORD_END),
    _rule("typeform-token", "tfp_", r"\btfp_[\w-]{40,70}"),
    _rule("adafruit-key", "aio_", r"\baio_[A-Za-z0-9]{28}" + _WORD_END),
    _rule("x-bearer-token", "aaaaaaaaaaaaaaaaaaaa", r"\bA{20,22}[\w%]{60,100}", 4.3),
    _rule("encoded-registry-auth", "eyjhdxrocyi6", r"\beyJhdXRocyI6[A-Za-z0-9+/]{40,4000}={0,2}"),
    _rule("minisign-key", "rwrty0iy rwrcsw", r"\bRWR(?:TY0Iy|CSw)[A-Za-z0-9+/]{80,300}={0,2}"),
    _rule("onion-key", ":descriptor:x25519:", r":descriptor:x25519:([A-Z2-7]{52})\b"),
    _rule("nvidia-api-key", "nvapi-", r"\bnvapi-[\w-]{50,80}"),
    _rule("tavily-api-key", "tvly-", r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{28,40}" + _WORD_END),
    _rule("cerebras-api-key", "csk-", r"\bcsk-[a-z0-9]{40,60}" + _WORD_END),
    _rule("fireworks-api-key", "fw_", r"\bfw_[A-Za-z0-9]{22,32}" + _WORD_END),
    _rule("notion-api-token", "ntn_", r"\bntn_[A-Za-z0-9]{40,60}" + _WORD_END),
    _rule("render-api-key", "rnd_", r"\brnd_[A-Za-z0-9]{28,40}" + _WORD_END),
    _rule("posthog-key", "phx_ phs_", r"\bph[xs]_[A-Za-z0-9]{40,60}" + _WORD_END),
    _rule("sentry-token", "sntrys_ sntryu_", r"\bsntry[su]_[\w+/=-]{40,300}"),
    _rule("terraform-cloud-token", ".atlasv1.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}"),
    _rule("atlassian-token", "atatt3 atctt3 atbb bbdc-", _ATLASSIAN_EXPRESSION),
    _rule("square-token", "sq0atp- sq0csp-", r"\bsq0(?:atp|csp)-[\w-]{22,50}"),
    _rule("easypost-key", "ezak ezt", r"\bEZ[AT]K[a-zA-Z0-9]{54}" + _WORD_END),
    _rule("cloudflare-key", "v1.0-", r"\bv1\.0-[a-f0-9]{24}-[a-f0-9]{100,160}"),
    _rule("fly-token", "fm1 fm2_ fo1_", r"\b(?:fm[12][ar]?_[\w+/=,-]{60,900}|fo1_[\w-]{43})"),
    _rule("contentful-token", "cfpat-", r"\bCFPAT-[\w-]{40,50}"),
    _rule("clojars-token", "clojars_", r"\bCLOJARS_[a-z0-9]{60}" + _WORD_END),
    _rule("crates-token", "cio", r"\bcio[A-Za-z0-9]{32}" + _WORD_END, 3.5),
    _rule("jfrog-token", "akcp cmvmdgtu", r"\b(?:AKCp[A-Za-z0-9]{60,75}|cmVmdGtu[A-Za-z0-9]{50,60})"),
    _rule("brevo-api-key", "xkeysib- xsmtpsib-", r"\bx(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}" + _WORD_END),
    _rule("shippo-token", "shippo_", r"\bshippo_(?:live|test)_[a-f0-9]{40}"),
    _rule("aws-access-token", "akia asia", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}" + _WORD_END),
    _rule("anthropic-api-key", "sk-ant-", r"\bsk-ant-[a-z]{2,6}\d{2}-[\w-]{20,200}"),
    _rule("openai-api-key", "sk-proj- sk-svcacct- sk-admin-", r"\bsk-(?:proj|svcacct|admin)-[\w-]{20,200}"),
    _rule("openrouter-api-key", "sk-or-v1-", r"\bsk-or-v1-[a-f0-9]{64}" + _WORD_END),
    _rule("secret-key", "sk-", r"\bsk-[A-Za-z0-9]{32,64}(?![\w-])", 3.5),
    _rule("groq-api-key", "gsk_", r"\bgsk_[A-Za-z0-9]{52}" + _WORD_END),
    _rule("xai-api-key", "xai-", r"\bxai-[A-Za-z0-9]{80}" + _WORD_END),
    _rule("replicate-api-token", "r8_", r"\br8_[A-Za-z0-9]{37}" + _WORD_END),
    _rule("huggingface-access-token", "hf_", r"\bhf_[A-Za-z0-9]{34}" + _WORD_END),
    _rule("langsmith-api-key", "lsv2_", r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}" + _WORD_END),
    _rule("google-client-secret", "gocspx-", r"\bGOCSPX-[\w-]{28}(?![\w-])"),
    _rule("google-access-token", "ya29.", r"\bya29\.[\w-]{30,1000}"),
    _rule("google-refresh-token", "1//0", r"\b1//0[\w-]{40,200}"),
    _rule("azure-client-secret", "q~", r"(?<![\w~.-])[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~-])"),
    _rule("azure-storage-key", "accountkey=", r"(?i)\bAccountKey=([A-Za-z0-9+/]{86}==)"),
    _rule("azure-shared-access-key", "sharedaccesskey=", r"(?i)\bSharedAccessKey=([A-Za-z0-9+/]{43}=)"),
    _rule("azure-sas-signature", "sig=", r"(?i)[?&;]sig=([A-Za-z0-9%+/]{43,64}(?:%3D|=))"),
    _rule("github-app-token", "ghs_", r"\bghs_[0-9A-Za-z_.-]{37,600}"),
    _rule("supabase-token", "sbp_ sb_secret_", r"\b(?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,60})" + _WORD_END),
    _rule("docker-access-token", "dckr_pat_ dckr_oat_", r"\bdckr_[po]at_[\w-]{27,40}"),
    _rule("figma-token", "figd_", r"\bfigd_[\w-]{40,60}"),
    _rule("vault-service-token", "hvs.", r"\bhvs\.[\w-]{24,120}" + _WORD_END, 3.5),
    _rule("discord-webhook", "/webhooks/", r"\bdiscord(?:app)?\.com/api/webhooks/\d{15,21}/([\w-]{60,80})"),
    _rule("slack-session-token", "xoxc- xoxd-", r"\bxox[cd]-[\w%-]{30,300}"),
    _rule("stripe-webhook-secret", "whsec_", r"\bwhsec_[A-Za-z0-9+/]{32,64}"),
    _rule("notion-api-token", "secret_", r"\bsecret_[A-Za-z0-9]{43}" + _WORD_END, 3.5),
    _rule("netlify-access-token", "nfp_", r"\bnfp_[A-Za-z0-9]{36}" + _WORD_END),
    _rule("neon-api-key", "napi_", r"\bnapi_[a-z0-9]{60,70}" + _WORD_END),
    _rule("buildkite-token", "bkua_", r"\bbkua_[a-f0-9]{40}" + _WORD_END),
    _rule("circleci-token", "ccipat_", r"\bCCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}" + _WORD_END),
    _rule("sonar-token", "squ_ sqp_ sqa_", r"\bsq[upa]_[a-f0-9]{40}" + _WORD_END),
    _rule("new-relic-key", "nrak- nrii-", r"\b(?:NRAK-[A-Z0-9]{27}|NRII-[\w-]{32})" + _WORD_END),
    _rule("doppler-token", "dp.s dp.c", _DOPPLER_EXPRESSION + _WORD_END),
    _rule("mailgun-api-key", "key-", r"\bkey-[a-f0-9]{32}" + _WORD_END),
    _rule("mailchimp-api-key", "-us", r"\b[a-f0-9]{32}-us\d{1,2}" + _WORD_END),
    _rule("telegram-bot-token", ":aa", r"(?<![\d:-])\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _rule("slack-webhook", "hooks.slack.com", _SLACK_WEBHOOK_EXPRESSION),
    _rule("jwt", "eyj", r"(?<![\w-])eyJ[\w-]{14,4000}\.eyJ[\w-]{10,8000}\.[\w-]{16,1400}"),
    _rule("jwt-in-base64", "zxlk", r"(?<![\w-])ZXlK[\w+/-]{100,12000}={0,2}", 4.0),
    _rule("encoded-private-key", "ls0tls1crudj", _ENCODED_KEY_EXPRESSION, 4.0),
    _rule("encoded-token", "z2hwx", r"\bZ2hwX[A-Za-z0-9+/]{40,60}={0,2}"),
    _rule("encoded-token", "z2l0ahvix3bhdf", r"\bZ2l0aHViX3BhdF[A-Za-z0-9+/]{90,140}={0,2}"),
    _rule("encoded-token", "c2stch c2styw z2xwyxqt", r"\b(?:c2stcHJvai|c2stYW50L|Z2xwYXQt)[\w+/]{20,300}={0,2}"),
    _rule("encoded-token", "qutjq", r"\bQUtJQ[A-Za-z0-9+/]{21,23}(?![A-Za-z0-9+/])={0,2}"),
    _rule("discord-bot-token", "mt mj mz nd nt nj nz od ot", _DISCORD_EXPRESSION, 3.5),
    _rule("microsoft-teams-webhook", "incomingwebhook", _TEAMS_WEBHOOK_EXPRESSION),
    _rule("azure-workflow-signature", "sig=", r"[?&]sig=([\w-]{43})(?![\w%=-])", 3.5),
    _rule("private-key", _KEY_BODY_KEYWORDS, r"(?<![A-Za-z0-9+/])" + _KEY_START_EXPRESSION + _KEY_BODY_LINES_EXPRESSION,
          4.0),
]  # fmt: skip
