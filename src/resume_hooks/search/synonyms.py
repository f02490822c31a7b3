"""Words that people in software use for the same thing: what somebody asks for is often not the word that was said.

One line a meaning. A related word counts half, and only where the typed words alone lead nowhere good.
"""

from __future__ import annotations

_MEANINGS = """
abort cancel stop interrupt terminate kill
add introduce create insert append new
agent subagent assistant helper bot robot task
allow permit accept enable approve
answer reply respond response
api endpoint route interface
argument parameter option flag switch
ask question prompt query request
assertion expect check verify validate
authenticate login auth signin credential token
avoid prevent skip bypass circumvent
boolean bool flag toggle switch true false yes
branch fork ref head
break fail error crash broken failure
bug defect flaw fault issue problem mistake
build compile make package
bump upgrade update renew raise
cache memoize store buffer
change modify edit alter rename tweak
chat conversation session dialogue thread
check inspect look examine review audit
choose decide pick select prefer
class type struct object model
clean cleanup tidy prune purge garbage sweep orphan stale
clear reset wipe empty erase flush
cli command terminal shell console
code source implementation
combine merge join unite squash concatenate
comment annotation note remark docstring
commit checkin changeset revision sha hash
compare diff difference delta versus
config configuration setting settings preference option
connect connection link attach
container docker image pod
copy duplicate clone replicate
correct right proper fix genuine
cost price expense charge billing usage spend
count number figure amount total quantity
crash panic segfault exception abort
database db sql table schema
data content payload record
debug trace troubleshoot diagnose investigate
decision choice tradeoff rationale reason
default fallback standard
delay lag latency wait slow sluggish timeout
delete remove drop eliminate discard erase strip
dependency package library module vendor third-party
deploy release publish ship rollout
deprecated legacy old obsolete outdated backwards compatible
description summary tagline caption blurb
directory folder path dir
disable off deactivate suppress mute
disappear vanish missing lost gone
document documentation docs readme guide manual
download fetch pull get retrieve
duplicate double twice repeated redundant
empty blank null none nil
end finish finalize complete done close
environment env variable
error exception failure problem
exit quit leave shutdown stop
expire timeout stale ttl
expected should supposed intended
fast quick speed performance optimize
file document path
find search locate lookup discover
fix repair solve resolve patch correct mend
flaky intermittent unstable unreliable race sporadic
folder directory dir
format style layout formatting lint
function method procedure routine func
hang stuck block freeze deadlock wait
heading title header caption
hide conceal mask redact suppress
hook callback trigger handler listener
hurry rush quickly
ignore skip swallow suppress disregard
image picture screenshot photo png
import include require load
improve enhance better optimize refine
inflated bigger higher larger overcounted double
install setup bootstrap provision
integrate integration wire hook
key secret credential password token
kind type sort category
label name tag identifier field title
laptop local locally machine workstation
large big huge long
launch start run begin spawn kick
license licence copyright
limit cap maximum threshold quota
link url reference href
lint linter linting style check rule
list array collection sequence
lock mutex semaphore guard
log logging logs trace output
main master trunk mainline
markup html markdown xml yaml
match equal same identical correspond
memory ram heap footprint
merge rebase pull integrate
message text notice notification warning
migrate migration move port transition convert
missing absent lacking lost
mock stub fake double
move relocate transfer shift
network http socket connection
notify alert warn inform
number count total figure
obsolete unused dead stale
open begin start launch fresh
order sort sequence sorting
output print stdout display
owner author maintainer
parallel concurrent simultaneous async
parse parser reader decode deserialize
password secret credential
pause postpone defer delay hold suspend
permission access privilege rights
pipeline ci workflow action actions job
plan design proposal approach strategy
plugin extension addon
pr pull-request merge-request mr
preview draft dryrun
process daemon worker job
production prod live
project repo repository workspace
property attribute field key
publish release announce post
push upload send submit
quote string quoted text
race concurrency conflict collision
read load parse open
rebuild regenerate recreate
refactor restructure reorganize rewrite cleanup
refuse reject deny decline block
regex pattern expression
release version tag publish
remote server ci upstream host
rename renamed label
renovate dependabot bot robot upgrade
replace swap substitute exchange switch
repository repo project
restart reboot reload resume
restore recover rollback revert undo rewind back
result outcome output
retry again repeat attempt
revert undo rollback rewind restore
review feedback comment critique
rule policy guideline convention constraint requirement
run execute launch invoke
save store persist write keep
schema structure shape model format
script program tool
secure security vulnerability cve hole exploit unsafe danger
send post submit dispatch
separate split divide isolate
server backend service host
show display render print present
shrink reduce smaller trim cut decrease
simple plain easy straightforward
size length bytes
skip omit ignore exclude
snapshot checkpoint backup savepoint
specify define declare
split divide separate chunk
stage staging index
stale outdated old
start begin launch startup
state status condition
stop halt end cease
string text str
style css theme appearance
subdirectory subfolder nested
success pass green ok succeed fine
support handle compatible
table grid matrix
template skeleton boilerplate scaffold
temporary temp tmp transient
test spec unit suite testing
timestamp time date created createdat
tool utility command
transcript log history record
translate localize i18n translation language
truncate shorten cut trim
turn flip toggle
type kind class
ui interface frontend screen page
unexpected strange weird odd surprising
unique distinct
update refresh upgrade sync
upload push send
url link address
user person somebody customer people
validate verify check validation
value content
variable var env
version release revision number
view screen page panel
wait delay sleep pause
warning caution alert
website page site
window pane tab
wrong incorrect false bad invalid broken
"""


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _MEANINGS.split("\n"):
        words = line.split()
        for word in words:
            found.setdefault(word, set()).update(other for other in words if other != word)
    return {word: frozenset(others) for word, others in found.items()}


RELATED = _table()
"""For each word the words that may have been meant."""
