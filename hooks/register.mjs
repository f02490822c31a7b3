// Owns what our commands do inside the client (2.1.287 and later): asks the engine and does what it answers. Every
// judgement and every word is the engine's; a hook that fails here leaves the classic hooks and their cards.
//
// The client reads this file before it runs it: event names stand as literals, and `$` goes only to functions at the top.

const READING = { immediate: true }
const COMMANDS = [ // what is typed, the engine's verb for it, and what the client's menu says
  ['handoff', 'handoff', 'Go on in a fresh session that knows this one and its ancestors', '[next step]'],
  ['rollover', 'rollover', "Go on in a fresh session with a model's summary; costs tokens, up to two minutes", '[focus]'],
  ['trim', 'trim', 'Go on in a copy without old tool output, or here in place; asks first', '[options]'],
  ['untrim', 'untrim', 'Go on in a copy in which what was trimmed is back', ''],
  ['mark', 'checkpoint', 'Mark this place before you try something', '[goal]'],
  ['rewind-to-mark', 'rewind', 'Go back to the mark in a new session; of what came after, only your report stays', 'report'],
  ['search', 'search', 'Find what was said in this project; --all: in every project', '[--all] words', READING],
  ['find', 'search', 'Find what was said in this project; --all: in every project', '[--all] words', READING],
  ['recall', 'recover-context', 'Show what was done here, to paste if the model has lost it', '', READING],
  ['lineage', 'lineage', "Show this session's ancestors, oldest first", '', READING],
  ['sessions', 'sessions', 'List the newest sessions of this project; --all: of every project', '[--all]', READING],
]
const PREFIXED = ['checkpoint', 'handoff', 'help', 'lineage', 'resume', 'rewind', 'rollover', 'search', 'session', 'trim']
const LIMIT = 15000 // the engine ends by itself within five seconds,
const WAITING = 170000 // or, where it says that there is something to wait for, within 150

const ask = async ($, asked, timeoutMs = LIMIT) => {
  const event = {
    ...asked, session_id: await $.session.id(), transcript_path: (await $.session.info()).transcriptPath,
    screen: (await $.session.surfaces()).includes('terminal'),
  }
  const run = await $.process.run(['sh', `${$.plugin.root}/hooks/engine`, '--module'], {
    env: await $.process.hookEnv(), stdin: JSON.stringify(event), timeoutMs,
  })
  if (run.exitCode !== 0) throw new Error(run.stderr.trim() || `${run.exitCode}`)
  return JSON.parse(run.stdout)
}

const open = async ($, reply) => {
  const before = await $.prompt.read()
  try { await $.command.run({ command: 'resume', args: reply.open }) } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
  if (await $.session.id() !== reply.open) return $.ui.log(reply.by_hand)
  if (reply.remark) $.ui.log(reply.remark)
  const since = await $.prompt.read()
  const text = [reply.fill, before.text + since.text].filter(Boolean).join('\n')
  if (text) await $.prompt.fill({ text })
}

const settle = async ($, command, args) => {
  let reply = await ask($, { command, args })
  while (reply.ask) {
    const choices = reply.choices
    let chosen
    try { chosen = await $.ui.ask(reply.ask, choices.map(([label]) => label)) } catch { chosen = choices.at(-1)[0] }
    const [, word] = choices.find(([label]) => label === chosen) ?? [chosen, chosen]
    reply = await ask($, { command, args: word })
  }
  return reply
}

const answer = async ($, command, args) => {
  let reply = await settle($, command, args)
  if (reply.wait) {
    $.ui.status(reply.wait)
    try { reply = await ask($, { command, args, waiting: true }, WAITING) } finally { $.ui.status(undefined) }
  }
  if (reply.compact) {
    $.clock.after(0, () => trim($, reply))
    return {}
  }
  if (!reply.open) return { text: reply.text, isTextDisplayOnly: true }
  $.clock.after(0, () => open($, reply)) // not from inside: the switch would wait for this very command
  return {}
}

const merged = (rows, plan) => ({ // several messages of the client's as one
  role: rows[0].role,
  text: rows.map(row => plan.texts[row.handle] ?? row.text).filter(Boolean).join('\n\n'),
  toolUses: rows.flatMap(row => row.toolUses ?? []).filter(use => !plan.gone.includes(use.tool_use_id))
    .map(({ tool_use_id, tool, input }) => ({ tool_use_id, tool, input: plan.inputs[tool_use_id] ?? input })),
  toolResults: rows.flatMap(row => row.toolResults ?? []).filter(result => !plan.gone.includes(result.tool_use_id))
    .map(({ tool_use_id, isError, text }) => ({ tool_use_id, isError, text: plan.results[tool_use_id] ?? text })),
})

let asked // what a person chose, until the client's compaction comes for it
const compact = async ($, e, next) => {
  const chosen = asked
  asked = undefined
  if (e.agentId !== undefined || !(chosen || e.trigger === 'auto')) return next(e)
  const messages = e.messages.map(({ handle, role, toolUses, toolResults }) => ({
    handle, role, calls: (toolUses ?? []).map(use => use.tool_use_id), results: (toolResults ?? []).map(result => result.tool_use_id),
  }))
  let plan
  try {
    plan = await ask($, { command: 'plan', trigger: e.trigger, options: chosen?.options, messages })
  } catch (error) { plan = chosen ? { skip: error.message } : {} }
  if (plan.skip) return { skip: plan.skip }
  if (!plan.messages) return next(e)
  if (chosen) chosen.remark = plan.remark
  const rebuilt = plan.messages.map(at => Array.isArray(at) ? merged(at.map(one => e.messages[one]), plan) : e.messages[at])
  const opening = plan.opening.map(text => ({ role: 'user', text, toolUses: [] }))
  return { messages: [...opening, ...rebuilt], tokensBefore: plan.before, tokensAfter: plan.after }
}

let due = 1 // per cent of the context from which on the engine is asked whether it has a question
const propose = async ($, percent) => {
  due = Infinity
  try {
    const reply = await settle($, 'compaction', `${percent}`)
    if (reply.text) $.ui.log(reply.text)
    if (reply.again) due = reply.again
  } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
}

const trim = async ($, reply) => {
  asked = reply
  try { await $.command.run({ command: 'compact', args: reply.compact }) } finally { asked = undefined }
  if (reply.remark) $.ui.log(reply.remark)
}

const refused = new Set() // the sessions whose refusal by the API was spoken of: once each
const offer = async ($, told) => {
  const id = await $.session.id()
  if (refused.has(id)) return
  refused.add(id)
  try {
    const reply = await settle($, 'fsck', told)
    if (reply.open) await open($, reply)
    else if (reply.text) $.ui.log(reply.text)
    else refused.delete(id)
  } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
}

const tell = ($, e, next) => ({ text: next.error.message, isTextDisplayOnly: true })
const leave = ($, e, next) => next(e) // to the classic hook, which has its own answer

export function register(on) {
  const ours = new Set() // a name that the person's own command or another plugin has is theirs
  on('session.start', async ($, e, next) => {
    for (const [name, , description, argumentHint, more] of COMMANDS) {
      try {
        await $.command.register({ name, description, argumentHint, ...more })
        ours.add(name)
      } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
    }
    return next(e)
  })
  for (const [name, verb] of COMMANDS)
    on('command.run', { command: name }, ($, e, next) => ours.has(name) ? answer($, verb, e.args) : next(e)).catch(tell)
  for (const verb of PREFIXED)
    on('command.run', { command: `resume-hooks:${verb}` }, ($, e) => answer($, verb, e.args)).catch(leave)
  on('command.run', { command: 'resume-hooks:recover-context' }, ($, e, next) => // with words it is the skill so called
    e.args?.trim() ? next(e) : answer($, 'recover-context', '')).catch(leave)
  on('session.measure', ($, e, next) => {
    const percent = e.context?.percent ?? 0
    if (percent >= due) $.clock.after(0, () => propose($, percent))
    return next(e)
  }).catch(leave)
  on('session.compact', ($, e, next) => compact($, e, next)).catch(leave)
  on('classic.StopFailure', ($, e, next) => {
    const told = e.last_assistant_message ?? ''
    if (told.includes('400') && !e.agent_id) $.clock.after(0, () => offer($, told)) // not from inside: the turn would wait
    return next(e)
  }).catch(leave)
}
