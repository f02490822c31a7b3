"""List what the user said about the work: demands, choices and open questions.

Demands are recognized by typical words. It is better to miss a demand than to list a false one: a
model treats a listed demand as a fact, and the talk contains the other demands anyway. A question,
a joke, a doubt, a heading, or a line of code or of a log is never a demand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from resume_hooks.reading.digest import prose
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_remember_secrets
from resume_hooks.reading.digest.facts import Quote, RecordPosition
from resume_hooks.reading.digest.prose import is_question
from resume_hooks.reading.digest.pull_requests import PullRequests
from resume_hooks.reading.digest.reversals import find_indexes_of_binding_statements
from resume_hooks.reading.digest.talk import MAX_TYPED_CHARACTERS
from resume_hooks.redaction.lazy_patterns import compile_lazily

_FILLER_WORDS_PATTERN = "and|but|or|please|then|so|also|ok|okay|yes|yeah|no|just|now|hm+"

_DEMAND_PATTERN = compile_lazily(
    rf"""(?:\A\W*(?:/\S+\s+)?|[,;:.\u2013\u2014-]\s+|\b(?:{_FILLER_WORDS_PATTERN})\b[ ,:.-]*)  # An imperative clause.
      (?:(?:do\s+not|don'?t|never|always|avoid|stop|prefer|ensure|make\s+sure|be\s+sure|remember|keep|stick\s+to|use|leave|
           no\s+longer|let'?s\s+(?:not|use|keep|only|set|rename|cut|leave|stick|avoid|prefer|drop|skip|call|go\s+with))\s+\S
      | (?:add|write|run|follow|create|do|fix|put|call|commit|push|check|delete|remove)\b[^?]*
        \b(?:only|first(?=\W*\Z|[,;.]|\s\()|instead|but\s+not|before\s+\w+ing|don'?t|for\s+now|no\s+\w+|never|always
           |as\s+\w+\s+as)\b)
    | \b(?:  # Most positions are inside a word. They are excluded by a single check.
        (?<!\bi\s)(?:must|should|shall|(?:has|have|ought|is|are)\s+to)(?:\s+(?:not|never|always|also|be))*\s+\w
      | (?:must|should)n'?t\b
      | (?:we|you|it|they|that|this)\s+(?:only\s+)?needs?\s+to\b
      | (?:we|you|i)\s+(?:\w+ly\s+)?(?:do\s+not|don'?t)\s+(?:want|need|use|allow|do|commit|push)\b
      | (?:we|i)\s+(?:\w+ly\s+)?(?:want|prefer|insist|require)\b(?!\s+to\s+(?:analy|see|know|understand|check|look|ask))
      | i(?:'d|\s+would)\s+(?:rather|prefer)\b | from\s+now\s+on\b | no\s+longer\s+(?:use|do|need|want)\b
      | as\s+\w+\s+as\s+possible\b | at\s+(?:most|least)\s+\d
      | (?:is|are)\s+(?:forbidden|not\s+allowed|required|mandatory)\b
      | (?:use|using|do|make|call|name|put|write|keep|want|like|have|be)\b[^?]{1, 80}\b(?:instead\s+of|rather\s+than)\b
      | instead\W*\Z
      | (?:nunca|siempre|jamais|toujours|niemals|immer|muss|sempre|nicht|kein\w*|nie|mai)\b)
    | \A\W*only\s+\w | ,\s+not\s+\w+[\w\s]*\W*\Z
    | 반드시 | 하지\s?마 | 말고 | 항상 | 절대 | 해야 | 不要 | 必须 | 总是 | 只能 | 務必 | 必ず | しないで
    """,
    re.VERBOSE,
)
"""Words that mark a demand. Like other slow patterns in this module, the pattern matches lower-case
text, because ignoring the case would take twice as long."""

_JOKE_OR_DOUBT_PATTERN = compile_lazily(
    r"""[\U0001F600-\U0001F606\U0001F61C\U0001F61D\U0001F923\U0001F643] | [;:]-?[)DP](?!\w)
    | \b(?:lol|lmao|rofl|ha(?:ha)+|hehe|jk|just\ kidding|i\ wonder|wondering|i\ guess|maybe|perhaps|not\ sure|we\ could
        |i(?:'m|\ am)\ (?:also\ )?thinking|i\ bet|i\ kind\ of
        |i\ don'?t\ (?:understand|know|think|see|get)|(?:is|are)\ never)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words that show that a sentence is a joke, a doubt or a remark although it looks like a demand.
"""

_QUESTION_START_PATTERN = compile_lazily(
    rf"""\W*(?:(?:{_FILLER_WORDS_PATTERN}|sure|q|question)\b[,:.\s]*)*
    (?:(?:can|could|should|shall|would|will|do|does|did|are|is|was|were|have|has)(?:n'?t)?\s+
         (?:i|we|you|it|they|there|this|that|the|these|those)\b
      |(?:why|what|how|where|which|who|when)(?:'s)?\s+
         (?:is|are|do|does|did|was|were|would|should|can|could|exactly|hard|many|much|happens)\b
      |(?:tell|show|explain|remind)\s+(?:to\s+)?me\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""The first words of questions that have no question mark."""

_MACHINE_LINE_PATTERN = compile_lazily(
    r"""\s*(?://|/\*|(?:agent|assistant|user|human):|[\u00d7✗✓✖➜\u276f$>|│└├]|=>|\d+[.:]\d|\[[+\d]|"[\w-]+":
         |(?:error|warn|warning|npm)\b|[\w./-]{1,80}:\s(?:error|warning|fatal)\b|at\s\S+\()
    | .*(?:\bnpm\ err|[{;]\s*\Z) | .*(?:[,(\u2013\u2014]|\s(?:the|or|and|to|a|of|that))\s*\Z
    | ["'\u201c].*["'\u201d]\W*\Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A line of code or of a log, an incomplete sentence from a pasted text, or a quotation."""


MAX_SEARCHED_CHARACTERS = 25_000
"""At most this many characters in the user's messages are searched for demands, starting with the
latest message."""

# The maximum number of characters in an answer that is listed as a choice. The talk shows longer
# answers.
MAX_CHOICE_CHARACTERS = 160
# The maximum number of characters in a question together with the user's choice.
MAX_ANSWER_CHARACTERS = 400
# A demand with fewer words is quoted together with the sentence before it, which names the subject.
MIN_DEMAND_WORDS = 8

# At most this many characters in a client's summary are searched for the user's messages.
MAX_SUMMARY_CHARACTERS = 60_000
# This many characters at the start of a message in a summary are compared with the prompts.
MAX_COMPARED_CHARACTERS = 50
# This many characters at the start of two demands are compared. If they are the same, the demands
# are treated as versions of one demand.
MAX_COMPARED_DEMAND_CHARACTERS = 80
_USER_MESSAGES_SECTION_PATTERN = compile_lazily(
    r"^[#*\d. \t]*all user messages[^\n]*\n([\s\S]*?)"
    r"(?=^(?:\d+\.[ \t]|#|</)|^[^\n]*\bconstraints\b[^\n]*:\**$|\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_SUMMARIZED_RULES_PATTERN = compile_lazily(
    r"^[ \t]*(?![-*][ \t])[^\n]*\bconstraints\b[^\n]*:\**[ \t]*\n((?:[ \t]*[-*][ \t][^\n]+(?:\n|\Z))+)",
    re.IGNORECASE | re.MULTILINE,
)
"""The list of constraints in a client's summary. They may come from the user, from instructions or
from memory."""

FROM_SUMMARY_NOTE = "from the client's summary"
_QUOTED_MESSAGE_PATTERN = compile_lazily(r"\"((?:[^\"\\\n]|\\.){8,4000})\"")

# At most this many characters in the last request are searched for words.
MAX_REQUEST_CHARACTERS = 2_000
_PREFERENCE_PATTERN = compile_lazily(
    r"""\bprefer(?:s|red|ence)?\b | \b(?:cap|limit|budget|deadline)\b.*\d | \bwithout\s+(?:my\s+)?explicit\b
    | \b(?:make|be)\s+sure\b
    | \bi\s+(?:\w+ly\s+)?(?:don'?t|do\s+not|dis)\s*like\b | \bi\s+(?:don'?t|do\s+not)\s+want\b | \bi\s+hate\b
    | \blet'?s\s+(?:use|call|name|rename|go\s+with|stick|keep|set|focus|base|drop|skip)\b\s+(?:\S+\s+){2}
    | \b(?:use|call|name|put|write|say)\b[^.?!]{1,60}(?:\binstead\b|\brather\s+than\b|\band\s+not\b|,\s+not\b)
    | (?:\A|[,;]\s|\b(?:and|but|please|then)\s)(?:keep|retain|preserve)\s+\S+\s+\S
    | \b(?:should|must|_?needs?_?\s+to|ha(?:ve|s)\s+to|ought\s+to)\s+
      (?:(?:still|also|always|only|just|not|never|\w+ly)\s+)*
      (?:be\s+(?:documented|tested|covered|reflected|validated|verified)\b|be\s+(?!\w+ed\b|able|good|fine|ok|enough|easy|possible|no\s)|(?:use|follow|stay|remain|keep|go|match|return|
      handle|live|contain|include|support|have)\b)
    | \b(?:we|i)\s+(?:(?:\w+ly|only|still|just|do)\s+)*want\s+(?!to\b)\S+\s+\S+\s
    | \b(?:we|i)\s+(?:(?:\w+ly|only|still|just|do)\s+)*want\s+to\s+(?:be|use|keep|avoid|get\s+rid|have|support)\b
    | \bstop\s+(?:\w+ing|the|using)\b | \b(?:as|after|once|when(?:ever)?)\s+(?:each|every)\b | \b(?:each|every)\s+time\b
    | \bone\s+at\s+a\s+time\b | \bas\s+(?:we|you)\s+go\b
    """,
    re.VERBOSE,
)
"""Statements that constrain later work, although they are not worded as instructions."""

_STYLE_WISH_PATTERN = compile_lazily(
    r"\b(?:be|more|explain|extremely|keep\s+(?:it|this|them|answers))\s+(?:\w+\s+){0,3}"
    r"(?:concise|brief|short(?:er)?|terse|simple)\b|"
    r"\btoo\s+(?:verbose|long|complex|wordy)\b|\bas\s+(?:simple|lightweight|short|concise|small)\s+as\s+possible\b|"
    r"\bsimplest\s+possible\b"
)
"""Wishes about the style of the work or of the answers."""

_ONE_ANSWER_START_PATTERN = compile_lazily(
    rf"\W*(?:(?:{_FILLER_WORDS_PATTERN})\b\W*)*(?:(?:can|could)\s+you\s+)?"
    r"(?:(?:explain|describe|list|summari[sz]e|show|tell|give|answer|rephrase|reformulate|outline|compare)\b|"
    r"(?:make|write|create)\s+(?:me\s+)?(?:an?|the)\s+(?:\w+\s+){0,3}(?:list|table|summary|overview|answer|text)\b|"
    r"(?:that|this|it)(?:'s|\s+(?:is|was|looks|seems))\s+(?:\w+\s+){0,3}too\s)",
    re.IGNORECASE,
)
"""The first words in a request that concerns the form of a single answer, or in a complaint about
one."""
_HABIT_WORD_PATTERN = compile_lazily(
    r"\b(?:always|never|each|every|whenever|from\s+now\s+on|in\s+(?:the\s+)?future|answers|replies|responses|"
    r"explanations|summaries|when\s+you)\b",
    re.IGNORECASE,
)

_LASTING_WORD_PATTERN = compile_lazily(
    r"\b(?:always|never|must(?:n'?t)?|do\s+not|don'?t|avoid|prefer|no\s+longer|from\s+now\s+on|instead\s+of|rather\s+than|"
    r"not\s+allowed|forbidden|required|mandatory|ensure|as\s+\w+\s+as\s+possible|without|too\s+(?:verbose|long|complex)|"
    r"focus\s+on|keep\s+(?:each|every)|let'?s\s+not\s+(?:leave|use|add|mix|touch|break|put|call)|"
    r"nunca|siempre|jamais|toujours|niemals|immer|muss|sempre|nicht|kein\w*|nie|mai)\b|"
    r"반드시|하지\s?마|말고|항상|절대|해야|不要|必须|总是|只能|務必|必ず|しないで"
)
"""Words that show that a demand still applies after the next step."""

_ONE_TIME_REQUEST_PATTERN = compile_lazily(
    r"""\A\W*(?:wait\b|i\s+mean\s+we\b|hm+\b|oh\b
        |let'?s\s+(?:discuss|talk|see|try|do\s+(?:it|that|this)|go\b|continue|proceed)
        |(?:while\s+)?i\s+(?:think|see|wonder|want\s+option)\b|because\b|go\s+with\s+option\b)
    | \A\W*(?:yes|yeah|yep|no|nope|ok(?:ay)?|sure|right|that|this|it|these|those)\b(?:\W+\S+){0,9}\Z
    | \A\W*(?:yes|yeah|yep|ok(?:ay)?|sure)\b
    | \b(?:ensure|make\s+(?:sure|certain))\s+(?:that\s+)?(?:we\s+have|there\s+(?:is|are)
      |(?:our|the)\s+(?![^.]*\b(?:always|never|only)\b)[\w,./\s]{1,80}?\s(?:supports?|has|have))\b
    | \b(?:we|i)\s+want\s+(?:an?|another)\s | \bthere\s+(?:should|must|has\s+to)\s+be\s+(?:an?|some)\s
    | \?\s+(?:because|since)\b
    | \b(?:for|right)\s+now\b | \bthis\s+time\b | \A\W*don'?t\s+(?:worry|bother)\b
    | \A\W*(?:don'?t|do\s+not)\s+(?:run|do|start|continue|proceed|wait|answer)\W*\Z
    | \b(?:we|i)\s+don'?t\s+(?:need|have|know)\b
    | \boption\s+\w\W*\Z | :\W*\Z | \u2026\Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Signs that a sentence is not a lasting demand: it concerns only the next step, introduces
something else, or has no subject."""

_TASK_START_PATTERN = compile_lazily(
    rf"\A\W*(?:(?:/\S+\W+)?(?:(?:{_FILLER_WORDS_PATTERN}|great|sure)\b\W*)*(?:(?:make|be)\s+sure\s+(?:that\s+)?(?:you|to)\s+)?"
    r"(?:add|fix|review|research|merge|create|implement|update|check|find|investigate|rename|remove|delete|commit|push|"
    r"open|move|refactor|analy[sz]e|summari[sz]e|generate|draft|prepare|replace|verify|rebase|split|convert|build|install|"
    r"address|resolve|rewrite|compare|make\s+(?:an?|me)|write\s+(?:an?|me|the)|look\s+(?:at|into))\b)",
    re.IGNORECASE,
)
"""The first words in a request for a single task."""

_STANDING_WORD_PATTERN = compile_lazily(
    r"\b(?:always|never|each|every|only|must|should|shall|needs?|do\s+not|don'?t|not|no|avoid|without|instead|rather|keep|"
    r"prefer|whenever|when|if|once|one\s+(?:at\s+a\s+time|by\s+one)|after|before|often|frequently|regularly|as\s+(?:you|we)\s+go|from\s+now\s+on|at\s+(?:most|least))\b|[^\x00-\x7f]{3}",
    re.IGNORECASE,
)
"""Words that show that a demand may bind later work. The pattern also matches any word in a
non-Latin script."""

_LEADING_REPLY_PATTERN = compile_lazily(
    r"\W*(?:(?:yes|yeah|yep|ok(?:ay)?|sure|great|no|nope|na|oh|hm+|ah|so|and|also)\b[,.!:\u2013\u2014-]+\s*|"
    r"(?:ok(?:ay)?|so|and|also)\s+)+",
    re.IGNORECASE,
)
"""Words such as "yes" or "no" that come before a demand."""
MIN_WORDS_AFTER_REPLY = 5  # The minimum number of words in a demand that follows a "yes" or "no".
_REPLY_START_PATTERN = compile_lazily(
    r"\W*(?:yes|yeah|yep|ok(?:ay)?|sure|no|nope)\b", re.IGNORECASE
)
# The minimum number of characters in a prompt that may contain a document by somebody else.
MIN_DOCUMENT_CHARACTERS = 800
_MARKUP_LINE_PATTERN = compile_lazily(r"^[ \t]*(?:[-*+•]|\d+[.)]|#{1,6}|\||```)[ \t]", re.MULTILINE)
HEADING_PATTERN = compile_lazily(r"^[ \t]*#{1,6}[ \t][^\n]*$", re.MULTILINE)
# The minimum number of characters in a template or in a prompt with a pasted review.
MIN_TEMPLATE_CHARACTERS = 400
# The maximum number of records between a command and the prompt that the command loads.
MAX_RECORDS_BEFORE_COMMAND_TEXT = 2
_ROLE_START_PATTERN = compile_lazily(
    r"\W*(?:you\s+are|you're|act\s+as|your\s+(?:role|task|job)\s+is)\s+(?:an?|the|now|to)\b",
    re.IGNORECASE,
)
"""The start of a template that assigns a role, such as "You are a"."""
_TAGGED_PART_PATTERN = compile_lazily(r"^[ \t]*<([a-z][\w-]{1,40})>[ \t]*$", re.MULTILINE)
MIN_TAGGED_PARTS = 2  # The minimum number of tagged parts in a template.
_REVIEW_ROW_PATTERN = compile_lazily(
    r"^\W*(?:P[0-3]\b|(?:critical|major|minor|nit|high|medium|low|blocker|severity|suggestion|issue|finding)s?\b"
    r"[^\n:]{0,20}[:\])]|[\w./-]{1,200}\.\w{1,5}:\d+)",
    re.IGNORECASE | re.MULTILINE,
)
"""The start of a row in a review: the severity of a finding, or a location in a file."""
MIN_REVIEW_ROWS = 3  # A prompt with fewer rows that look like those of a review contains none.
# A paragraph before or after a pasted text is the user's own only if it has at most this many
# characters.
MAX_OWN_PARAGRAPH_CHARACTERS = 200
MIN_MARKUP_LINES = 5  # The minimum number of markup lines in a prompt with a pasted document.


def is_demand(sentence: str) -> bool:
    """Check whether a sentence contains a word that marks a demand, such as "never"."""
    return _DEMAND_PATTERN.search(sentence.lower()) is not None


def only_looks_like_demand(sentence: str) -> bool:
    """Check whether a sentence that looks like a demand is only a question, joke, doubt or log line."""
    is_asking = is_question(sentence) or _QUESTION_START_PATTERN.match(sentence) is not None
    return (
        is_asking
        or _MACHINE_LINE_PATTERN.match(sentence) is not None
        or _JOKE_OR_DOUBT_PATTERN.search(sentence) is not None
    )


def list_constraints(facts: LineageFacts, pull_requests: PullRequests) -> Iterator[DigestEntry]:
    """Yield the user's demands about the way of working, the latest first.

    Three kinds of demands are left out: those that concern only the next step, those that the user
    revoked, and those that wait for a pull request that was merged or closed. A short demand
    includes the sentence before it. Demands that only a summary quotes, because the file no longer
    contains the user's message, come after the others. The constraints that the latest summary
    lists come last.
    """
    demands: list[tuple[str, RecordPosition]] = []
    templates = _find_positions_of_templates(facts.prompts.quotes)
    chosen = _find_positions_of_choices(facts)
    for quote in (*_list_latest_quotes(facts.prompts.quotes), *_find_summarized_messages(facts)):
        if (
            quote.position in facts.foreign_prompts
            or quote.position in templates
            or quote.position in chosen
        ):
            continue
        sentences = list(
            prose.split_sentences(HEADING_PATTERN.sub("", _select_own_words(quote.text)))
        )
        binding_indexes = []
        for index, sentence in enumerate(sentences):
            if _is_binding(sentence) and not _only_adds_to_previous_sentence(sentences, index):
                binding_indexes.append(index)
        for index in reversed(binding_indexes):
            demands.append((_prepend_subject_sentence(sentences, index), quote.position))
    beginnings: set[str] = set()
    for index in find_indexes_of_binding_statements([text for text, _ in demands]):
        text, position = demands[index]
        beginning = text[:MAX_COMPARED_DEMAND_CHARACTERS].lower()
        if beginning not in beginnings and not pull_requests.has_wait_ended(text, position):
            beginnings.add(beginning)
            yield make_entry(text, position)
    for quote in _find_summarized_rules(facts):
        beginning = quote.text[:MAX_COMPARED_DEMAND_CHARACTERS].lower()
        if beginning not in beginnings:
            beginnings.add(beginning)
            yield make_entry(quote.text, quote.position, FROM_SUMMARY_NOTE)


def _find_positions_of_choices(facts: LineageFacts) -> frozenset[RecordPosition]:
    """Return the positions of the records in which every answer by the user is listed as a choice.

    An answer is listed as a choice if it is short enough.
    """
    max_lengths: dict[RecordPosition, int] = {}
    for answer in facts.answers:
        choice = answer.text.rpartition(" -> ")[2]
        max_lengths[answer.position] = max(max_lengths.get(answer.position, 0), len(choice))
    return frozenset(
        position for position, length in max_lengths.items() if length <= MAX_CHOICE_CHARACTERS
    )


def _find_summarized_messages(facts: LineageFacts) -> Iterator[Quote]:
    """Yield the user's messages that only a client's summary contains, the latest summary first."""
    if not facts.summaries:
        return
    known_text = " ".join(
        " ".join(quote.full_text.lower().split()) for quote in facts.prompts.quotes
    )
    for summary in reversed(facts.summaries):
        section = _USER_MESSAGES_SECTION_PATTERN.search(summary.text[:MAX_SUMMARY_CHARACTERS])
        rows = section[1].split("\n") if section else []
        for row in rows:
            for message_text in _QUOTED_MESSAGE_PATTERN.findall(row) or [
                prose.MARKUP_PATTERN.sub("", row)
            ]:
                beginning = " ".join(message_text.lower().split())[:MAX_COMPARED_CHARACTERS]
                if beginning not in known_text:
                    yield Quote(message_text, summary.position, summary.uuid)


def _find_summarized_rules(facts: LineageFacts) -> Iterator[Quote]:
    """Yield the constraints that the client's latest summary lists."""
    for summary in reversed(facts.summaries):
        rules = _SUMMARIZED_RULES_PATTERN.search(summary.text[:MAX_SUMMARY_CHARACTERS])
        if rules is not None:
            for row in rules[1].splitlines():
                yield Quote(prose.MARKUP_PATTERN.sub("", row), summary.position, summary.uuid)
            return


def _is_binding(sentence: str) -> bool:
    """Check whether a sentence demands something from later work. A "yes" at its start is ignored."""
    lowered = sentence.lower()
    is_standing_demand = is_demand(sentence) and _LASTING_WORD_PATTERN.search(lowered) is not None
    is_style = _STYLE_WISH_PATTERN.search(lowered) is not None
    if not is_standing_demand and not is_style and _PREFERENCE_PATTERN.search(lowered) is None:
        return False  # Most sentences end here, and the checks so far take half of the time.
    if only_looks_like_demand(sentence):
        return False
    if sentence.startswith("/compact") or _is_task(sentence) or _concerns_single_answer(sentence):
        return False
    return is_style or _ONE_TIME_REQUEST_PATTERN.search(_remove_leading_reply(sentence)) is None


def _concerns_single_answer(sentence: str) -> bool:
    """Check whether a sentence is about the style of a single answer and not of every answer."""
    is_style = _STYLE_WISH_PATTERN.search(sentence.lower()) is not None
    is_about_answer = (
        _ONE_ANSWER_START_PATTERN.match(prose.straighten_apostrophes(sentence)) is not None
    )
    return is_style and is_about_answer and _HABIT_WORD_PATTERN.search(sentence) is None


def _is_task(sentence: str) -> bool:
    """Check whether a sentence asks for a single task and contains no word such as "always"."""
    return (
        _TASK_START_PATTERN.match(sentence) is not None
        and _STANDING_WORD_PATTERN.search(sentence) is None
    )


def _remove_leading_reply(sentence: str) -> str:
    """Remove a "yes" or "no" from the start of a sentence if enough words follow."""
    assent = _LEADING_REPLY_PATTERN.match(sentence)
    if assent is None or len(sentence[assent.end() :].split()) < MIN_WORDS_AFTER_REPLY:
        return sentence
    return sentence[assent.end() :]


def _only_adds_to_previous_sentence(sentences: Sequence[str], index: int) -> bool:
    """Check whether a sentence merely continues the reply or request in the sentence before it."""
    return _continues_reply(sentences, index) or _describes_task(sentences, index)


def _continues_reply(sentences: Sequence[str], index: int) -> bool:
    """Check whether a short sentence continues a reply and therefore concerns only the next step.

    For example, "Don't archive it" continues the reply "Yes, delete it".
    """
    if index == 0 or len(sentences[index].split()) >= MIN_DEMAND_WORDS:
        return False
    return _REPLY_START_PATTERN.match(sentences[index - 1]) is not None


def _describes_task(sentences: Sequence[str], index: int) -> bool:
    """Check whether a sentence only says how to do the task in the previous sentence.

    For example, "As small as possible, please" follows "I'd like to add a log".
    """
    if index == 0 or _AS_SOON_AS_POSSIBLE_PATTERN.match(sentences[index]) is None:
        return False
    request = sentences[index - 1]
    return (
        _TASK_START_PATTERN.match(request) is not None
        or _WISH_START_PATTERN.match(request) is not None
    )


_AS_SOON_AS_POSSIBLE_PATTERN = compile_lazily(r"\W*as\s+\w+\s+as\s+possible\b", re.IGNORECASE)
_WISH_START_PATTERN = compile_lazily(
    rf"\W*(?:(?:{_FILLER_WORDS_PATTERN})\b\W*)*(?:i(?:'d|\s+would)\s+like|i\s+want|we\s+(?:need|want)|let'?s)\s+(?:to\s+)?\w",
    re.IGNORECASE,
)
"""The first words in a wish such as "I'd like to"."""


def _prepend_subject_sentence(sentences: Sequence[str], index: int) -> str:
    """Return a sentence. If it is short and needs a subject, put the previous sentence before it."""
    sentence = sentences[index]
    if (
        index == 0
        or len(sentence.split()) >= MIN_DEMAND_WORDS
        or prose.is_question(sentences[index - 1])
    ):
        return sentence
    return f"{sentences[index - 1]} {sentence}"


def _find_positions_of_templates(prompts: Sequence[Quote]) -> frozenset[RecordPosition]:
    """Return the positions of the prompts that the user did not type.

    Such a prompt was loaded or made from a template, and its rules are not the user's own. A prompt
    counts as one of these if it assigns a role, has tagged parts, starts like another prompt, or
    directly follows a command.
    """
    beginnings = Counter(
        quote.text[:MIN_TEMPLATE_CHARACTERS]
        for quote in prompts
        if len(quote.text) >= MIN_TEMPLATE_CHARACTERS
    )
    template_positions: set[RecordPosition] = set()
    previous: Quote | None = None
    for quote in prompts:
        if len(quote.text) >= MIN_TEMPLATE_CHARACTERS:
            beginning = quote.text[:MAX_TYPED_CHARACTERS]
            is_loaded = (
                previous is not None
                and previous.text.startswith("/")
                and quote.position.order - previous.position.order
                <= MAX_RECORDS_BEFORE_COMMAND_TEXT
            )
            is_filled_in = (
                beginnings[quote.text[:MIN_TEMPLATE_CHARACTERS]] > 1
                or _ROLE_START_PATTERN.match(beginning) is not None
                or len(_TAGGED_PART_PATTERN.findall(beginning)) >= MIN_TAGGED_PARTS
            )
            if is_loaded or is_filled_in:
                template_positions.add(quote.position)
        previous = quote
    return frozenset(template_positions)


def _select_own_words(text: str) -> str:
    """Return the user's own words in a prompt.

    If a document or review was pasted into the prompt, only the first and last paragraphs can be
    the user's own. Each of them is returned if it is short.
    """
    prompt_ends = _keep_prompt_ends(text)
    if announced := _PASTE_ANNOUNCEMENT_PATTERN.match(prompt_ends):
        return announced[0]
    is_document = (
        len(text) >= MIN_DOCUMENT_CHARACTERS
        and len(_MARKUP_LINE_PATTERN.findall(prompt_ends)) >= MIN_MARKUP_LINES
    )
    is_review = (
        len(text) >= MIN_TEMPLATE_CHARACTERS
        and len(_REVIEW_ROW_PATTERN.findall(prompt_ends)) >= MIN_REVIEW_ROWS
    )
    if not is_document and not is_review:
        return prompt_ends
    paragraphs = prompt_ends.strip().split("\n\n")
    own_paragraphs = []
    for paragraph in (paragraphs[0], *paragraphs[1:][-1:]):
        if len(paragraph) <= MAX_OWN_PARAGRAPH_CHARACTERS:
            own_paragraphs.append(paragraph)
    return "\n\n".join(
        paragraph for paragraph in own_paragraphs if _MARKUP_LINE_PATTERN.search(paragraph) is None
    )


_PASTE_ANNOUNCEMENT_PATTERN = compile_lazily(
    r"[^\n]*\b(?:below|(?:this|the following) (?:note|comment|review|feedback|report|message|error|log|output))\b"
    r"(?:[^\n]*\n(?!\s*\n)){0,3}[^\n]*(?::|\?|\.)[ \t]*\n[ \t]*\n",
    re.IGNORECASE,
)
"""A paragraph that announces that the text below it was not written by the user."""


def _keep_prompt_ends(text: str) -> str:
    if len(text) <= MAX_TYPED_CHARACTERS:
        return redact_and_remember_secrets(text)
    max_end = MAX_TYPED_CHARACTERS // 2
    head = redact_and_remember_secrets(text[:MAX_TYPED_CHARACTERS])[:max_end]
    tail = redact_and_remember_secrets(text[-MAX_TYPED_CHARACTERS:])[-max_end:]
    return f"{head}\n{tail}"


def collect_request_words(facts: LineageFacts) -> frozenset[str]:
    """Return the significant words in the last request and in a call without an answer."""
    texts: list[str] = []
    if facts.prompts.quotes:
        texts.append(facts.prompts.quotes[-1].text[:MAX_REQUEST_CHARACTERS])
    if facts.unanswered_call is not None:
        texts.append(
            facts.unanswered_call.find_first_text("command", "file_path")[:MAX_REQUEST_CHARACTERS]
        )
    return prose.find_significant_words(" ".join(texts))


def list_answers(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the user's answers to questions, the latest first.

    An older answer to the same question is left out.
    """
    answered_questions: set[str] = set()
    for quote in sorted(facts.answers, key=lambda quote: -quote.position.order):
        if quote.position in facts.foreign_prompts:
            continue
        question, _, answer = quote.text.rpartition(" -> ")
        if question and question in answered_questions:
            continue
        answered_questions.add(question)
        # An answer that is too long for this list is shown in the talk instead.
        if len(answer) <= MAX_CHOICE_CHARACTERS and not _is_counter_question(answer):
            note = _describe_later_mention(facts, quote)
            yield make_entry(quote.text, quote.position, note, MAX_ANSWER_CHARACTERS)


def _describe_later_mention(facts: LineageFacts, answer: Quote) -> str:
    """Return a note if a later prompt mentions a name that a question or its answer contains, or ``""``.

    The later prompt may overrule the answer in different words.
    """
    names = set(_DISTINCT_NAME_PATTERN.findall(answer.text))
    answer_positions = {quote.position for quote in facts.answers}
    for prompt in reversed(facts.prompts.quotes):
        if prompt.position.order <= answer.position.order or not names:
            return ""
        mentions = _DISTINCT_NAME_PATTERN.findall(prompt.text[:MAX_TYPED_CHARACTERS])
        shared_names = [name for name in mentions if name in names]
        if shared_names and prompt.position not in answer_positions:
            return f"{shared_names[0]} is mentioned again in USER :{prompt.position.record_number}"
    return ""


_DISTINCT_NAME_PATTERN = compile_lazily(
    r"(?<![\w#/])#\d{1,6}\b|\b[A-Z]{2,8}-\d{1,6}\b|`[^`\n]{4,60}`|"
    r"\b(?=\w{6,60}\b)[A-Za-z]\w*(?:_[A-Za-z]\w*|[a-z\d][A-Z]\w*)|\b[\w-]{2,40}\.(?:py|ts|tsx|js|go|rs|md|json|ya?ml|toml|sh|sql)\b"
)
"""An unambiguous name: the number of an issue, a name from the code, or the name of a file."""


def _is_counter_question(answer: str) -> bool:
    """Check whether the user answered a question with another question instead of choosing."""
    sentences = prose.split_sentences(answer)
    return any(
        is_question(sentence) or _QUESTION_START_PATTERN.match(sentence) for sentence in sentences
    )


def find_start_order_of_last_turns(facts: LineageFacts, turn_count: int) -> int:
    """Return the sequence number of the prompt with which the last ``turn_count`` turns begin.

    Return 0 if there are ``turn_count`` prompts or fewer.
    """
    prompts = facts.prompts.quotes
    if len(prompts) > turn_count:
        return prompts[-turn_count].position.order
    return 0


def list_questions(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the assistant's unanswered questions.

    These are the questions that were asked with a tool, and the questions at the end of the
    assistant's last words.
    """
    yield from (make_entry(quote.text, quote.position) for quote in facts.questions)
    if quote := facts.words_since_prompt:
        sentences = prose.find_last_sentences(redact_and_remember_secrets(quote.text))
        for sentence in sentences[-prose.MAX_LAST_SENTENCES :]:
            if is_question(sentence):
                yield make_entry(sentence, quote.position)


def _list_latest_quotes(quotes: Sequence[Quote]) -> Iterator[Quote]:
    """Yield the quotes, the latest first, until their length reaches MAX_SEARCHED_CHARACTERS.

    At most MAX_TYPED_CHARACTERS characters of each quote are counted.
    """
    remaining_characters = MAX_SEARCHED_CHARACTERS
    for quote in reversed(quotes):
        if remaining_characters <= 0:
            return
        yield quote
        remaining_characters -= min(len(quote.text), MAX_TYPED_CHARACTERS)
