"""Our own token rules, beside ``rules.json``; a service that is missing goes here.

Same form as there. The facts are the services' own documentation of what their tokens look like.
"""

from __future__ import annotations

from typing import Any

_EDGE = "(?![A-Za-z0-9])"
_SLACK = r"\bhooks\.slack\.com/[a-z]{5,10}/([A-Z0-9]{8,12}/[A-Z0-9]{8,12}/\w{20,30})"
_DOPPLER = r"\bdp\.(?:st\.(?:[\w-]{2,35}\.)?|s[ac]\.|ct\.)[A-Za-z0-9]{40,44}"
_TEAMS = r"(?i)/IncomingWebhook/([a-z0-9]{32}/[a-z0-9-]{36}(?:/[\w-]{1,120})?)"
_DISCORD = r"(?<![\w.-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,45}(?![\w.-])"

_KEY_WORDS = "ibaakc ibadanbgkqhkig9w0baqefaasc migh mhccaqee mc4caqawbqydk2vwbcie b3blbnnzac1rzxktdj"
_KEY_STARTS = (
    r"(?:MII[A-Za-z0-9+/]{3}IBAAKC|MII[A-Za-z0-9+/]{3}IBADANBgkqhkiG9w0BAQEFAASC|MIGH[A-Za-z0-9+/]{4}MBMGByqGSM49AgEG"
    r"|MHcCAQEE|MC4CAQAwBQYDK2VwBCIE|b3BlbnNzaC1rZXktdj)"
)
"""How the bodies of RSA, EC, Ed25519 and OpenSSH keys begin."""

_KEY_LINES = (
    r"[A-Za-z0-9+/]{12,12000}={0,2}"
    r"(?:\s{1,20}(?:\d{1,6}(?:\xe2\x86\x92|[\t:|]))?[A-Za-z0-9+/]{16,76}={0,2}(?![\w+/=.:(-])){0,200}"
)
"""How such a body goes on, with a number before each line as tools print it."""


def _token(kind: str, keywords: str, regex: str, entropy: float = 3.0) -> dict[str, Any]:
    return {"kind": kind, "keywords": keywords.split(), "regex": regex, "entropy": entropy, "allowed": []}


TOKENS: list[dict[str, Any]] = [
    _token("aws-access-token", "akia asia", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}" + _EDGE),
    _token("anthropic-api-key", "sk-ant-", r"\bsk-ant-[a-z]{2,6}\d{2}-[\w-]{20,200}"),
    _token("openai-api-key", "sk-proj- sk-svcacct- sk-admin-", r"\bsk-(?:proj|svcacct|admin)-[\w-]{20,200}"),
    _token("openrouter-api-key", "sk-or-v1-", r"\bsk-or-v1-[a-f0-9]{64}" + _EDGE),
    _token("secret-key", "sk-", r"\bsk-[A-Za-z0-9]{32,64}(?![\w-])", 3.5),
    _token("groq-api-key", "gsk_", r"\bgsk_[A-Za-z0-9]{52}" + _EDGE),
    _token("xai-api-key", "xai-", r"\bxai-[A-Za-z0-9]{80}" + _EDGE),
    _token("replicate-api-token", "r8_", r"\br8_[A-Za-z0-9]{37}" + _EDGE),
    _token("huggingface-access-token", "hf_", r"\bhf_[A-Za-z0-9]{34}" + _EDGE),
    _token("langsmith-api-key", "lsv2_", r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}" + _EDGE),
    _token("google-client-secret", "gocspx-", r"\bGOCSPX-[\w-]{28}(?![\w-])"),
    _token("google-access-token", "ya29.", r"\bya29\.[\w-]{30,1000}"),
    _token("google-refresh-token", "1//0", r"\b1//0[\w-]{40,200}"),
    _token("azure-client-secret", "q~", r"(?<![\w~.-])[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~-])"),
    _token("azure-storage-key", "accountkey=", r"(?i)\bAccountKey=([A-Za-z0-9+/]{86}==)"),
    _token("azure-shared-access-key", "sharedaccesskey=", r"(?i)\bSharedAccessKey=([A-Za-z0-9+/]{43}=)"),
    _token("azure-sas-signature", "sig=", r"(?i)[?&;]sig=([A-Za-z0-9%+/]{43,64}(?:%3D|=))"),
    _token("github-app-token", "ghs_", r"\bghs_[0-9A-Za-z_.-]{37,600}"),
    _token("supabase-token", "sbp_ sb_secret_", r"\b(?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,60})" + _EDGE),
    _token("docker-access-token", "dckr_pat_ dckr_oat_", r"\bdckr_[po]at_[\w-]{27,40}"),
    _token("figma-token", "figd_", r"\bfigd_[\w-]{40,60}"),
    _token("vault-service-token", "hvs.", r"\bhvs\.[\w-]{24,120}" + _EDGE, 3.5),
    _token("discord-webhook", "/webhooks/", r"\bdiscord(?:app)?\.com/api/webhooks/\d{15,21}/([\w-]{60,80})"),
    _token("slack-session-token", "xoxc- xoxd-", r"\bxox[cd]-[\w%-]{30,300}"),
    _token("stripe-webhook-secret", "whsec_", r"\bwhsec_[A-Za-z0-9+/]{32,64}"),
    _token("notion-api-token", "secret_", r"\bsecret_[A-Za-z0-9]{43}" + _EDGE, 3.5),
    _token("netlify-access-token", "nfp_", r"\bnfp_[A-Za-z0-9]{36}" + _EDGE),
    _token("neon-api-key", "napi_", r"\bnapi_[a-z0-9]{60,70}" + _EDGE),
    _token("buildkite-token", "bkua_", r"\bbkua_[a-f0-9]{40}" + _EDGE),
    _token("circleci-token", "ccipat_", r"\bCCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}" + _EDGE),
    _token("sonar-token", "squ_ sqp_ sqa_", r"\bsq[upa]_[a-f0-9]{40}" + _EDGE),
    _token("new-relic-key", "nrak- nrii-", r"\b(?:NRAK-[A-Z0-9]{27}|NRII-[\w-]{32})" + _EDGE),
    _token("doppler-token", "dp.s dp.c", _DOPPLER + _EDGE),
    _token("mailgun-api-key", "key-", r"\bkey-[a-f0-9]{32}" + _EDGE),
    _token("mailchimp-api-key", "-us", r"\b[a-f0-9]{32}-us\d{1,2}" + _EDGE),
    _token("telegram-bot-token", ":aa", r"(?<![\d:-])\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _token("slack-webhook", "hooks.slack.com", _SLACK),
    _token("jwt", "eyj", r"(?<![\w-])eyJ[\w-]{14,4000}\.eyJ[\w-]{10,8000}\.[\w-]{16,1400}"),
    _token("jwt-in-base64", "zxlk", r"(?<![\w-])ZXlK[\w+/-]{100,12000}={0,2}", 4.0),
    _token("encoded-private-key", "ls0tls1crudj", r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{80,12000}={0,2}", 4.0),
    _token("encoded-token", "z2hwx", r"\bZ2hwX[A-Za-z0-9+/]{40,60}={0,2}"),
    _token("encoded-token", "z2l0ahvix3bhdf", r"\bZ2l0aHViX3BhdF[A-Za-z0-9+/]{90,140}={0,2}"),
    _token("encoded-token", "c2stch c2styw z2xwyxqt", r"\b(?:c2stcHJvai|c2stYW50L|Z2xwYXQt)[\w+/]{20,300}={0,2}"),
    _token("encoded-token", "qutjq", r"\bQUtJQ[A-Za-z0-9+/]{21,23}(?![A-Za-z0-9+/])={0,2}"),
    _token("discord-bot-token", "mt mj mz nd nt nj nz od ot", _DISCORD, 3.5),
    _token("microsoft-teams-webhook", "incomingwebhook", _TEAMS),
    _token("azure-workflow-signature", "sig=", r"[?&]sig=([\w-]{43})(?![\w%=-])", 3.5),
    _token("private-key", _KEY_WORDS, r"(?<![A-Za-z0-9+/])" + _KEY_STARTS + _KEY_LINES, 4.0),
]  # fmt: skip
