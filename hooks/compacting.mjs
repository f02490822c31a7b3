// Compacts the session as the engine planned: converts the plan into the client's messages.

import { ask, quietly, say } from './asking.mjs'

const mergeMessages = (rows, plan) => ({ // merges several messages of the client into one
  role: rows[0].role,
  text: rows.map(row => plan.texts[row.handle] ?? row.text).filter(Boolean).join('\n\n'),
  toolUses: rows.flatMap(row => row.toolUses ?? []).filter(use => !plan.gone.includes(use.tool_use_id))
    .map(({ tool_use_id, tool, input }) => ({ tool_use_id, tool, input: plan.inputs[tool_use_id] ?? input })),
  toolResults: rows.flatMap(row => row.toolResults ?? []).filter(result => !plan.gone.includes(result.tool_use_id))
    .map(({ tool_use_id, isError, text }) => ({ tool_use_id, isError, text: plan.results[tool_use_id] ?? text })),
})

let pendingRemark // about a compaction that nobody requested; shown at the turn's end, because the client redraws the screen until then
export function showRemark($) {
  if (pendingRemark) $.ui.log(pendingRemark)
  pendingRemark = undefined
}

let asked // the user's choice, until the client's compaction uses it
export async function compact($, e, next) {
  const chosen = e.trigger === 'manual' && asked // not for a compaction within a turn, while the command waits for the turn's end
  if (e.agentId !== undefined || !(chosen || e.trigger === 'auto')) return next(e)
  const messages = e.messages.map(({ handle, role, toolUses, toolResults }) => ({
    handle, role, calls: (toolUses ?? []).map(use => use.tool_use_id), results: (toolResults ?? []).map(result => result.tool_use_id),
  }))
  let plan
  try {
    plan = await ask($, { command: 'plan', trigger: chosen?.trigger ?? e.trigger, options: chosen?.options, messages })
  } catch (error) { plan = chosen ? { skip: error.message } : {} }
  if (chosen) chosen.rests = plan.rests
  if (plan.skip) return { skip: plan.skip }
  if (chosen) chosen.remark = plan.remark
  else pendingRemark = plan.remark
  if (!plan.messages) return next(e)
  const rebuilt = plan.messages.map(at => Array.isArray(at) ? mergeMessages(at.map(one => e.messages[one]), plan) : e.messages[at])
  const opening = plan.opening.map(text => ({ role: 'user', text, toolUses: [] }))
  return { messages: [...opening, ...rebuilt], tokensBefore: plan.before, tokensAfter: plan.after }
}

let told = false // whether the choice was shown, once in each client
export async function showChoice($, now) {
  const percent = Math.round(100 * now.tokens / now.window) // as the band says it; without a band there is no window
  if (told || !(percent >= now.tells)) return
  told = true
  await quietly($, async () => say($, await ask($, { command: 'compaction', args: `${percent}` })))
}

export async function trim($, reply) {
  asked = reply
  try { await $.command.run({ command: 'compact', args: reply.compact }) } finally { asked = undefined }
  if (reply.remark) $.ui.log(reply.remark)
}

const MIN_TURNS_BETWEEN = 5 // turns, as the engine counts them, too
let lineState = {} // of the session whose turns end: how many did since the last try, and from where on another one is worth it
export async function compactAboveLine($, now) {
  const id = await $.session.id(), { line, tokens } = now
  if (lineState.id !== id) lineState = { id, turns: MIN_TURNS_BETWEEN, from: 0 }
  const isDue = ++lineState.turns >= MIN_TURNS_BETWEEN && line && tokens >= Math.max(line.from, lineState.from)
  if (!isDue || (await $.prompt.read()).text) return // who writes is not disturbed: the next turn asks again
  const tried = { ...line }
  Object.assign(lineState, { turns: 0, from: tokens * 1.25 })
  await trim($, tried)
  if (tried.remark || tried.rests) lineState.from = 0 // else it frees too little at this size
}
