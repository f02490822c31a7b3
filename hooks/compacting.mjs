// Compacts the session as the engine planned: converts the plan into the client's messages.

import { ask, quietly, say } from './asking.mjs'

const merged = (rows, plan) => ({ // several messages of the client's as one
  role: rows[0].role,
  text: rows.map(row => plan.texts[row.handle] ?? row.text).filter(Boolean).join('\n\n'),
  toolUses: rows.flatMap(row => row.toolUses ?? []).filter(use => !plan.gone.includes(use.tool_use_id))
    .map(({ tool_use_id, tool, input }) => ({ tool_use_id, tool, input: plan.inputs[tool_use_id] ?? input })),
  toolResults: rows.flatMap(row => row.toolResults ?? []).filter(result => !plan.gone.includes(result.tool_use_id))
    .map(({ tool_use_id, isError, text }) => ({ tool_use_id, isError, text: plan.results[tool_use_id] ?? text })),
})

let untold // of a compaction that nobody asked for: until the turn ends the client draws the screen anew
export function tellOf($) {
  if (untold) $.ui.log(untold)
  untold = undefined
}

let asked // what a person chose, until the client's compaction comes for it
export async function compact($, e, next) {
  const chosen = e.trigger === 'manual' && asked // not for one within a turn, while the command waits for its end
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
  else untold = plan.remark
  if (!plan.messages) return next(e)
  const rebuilt = plan.messages.map(at => Array.isArray(at) ? merged(at.map(one => e.messages[one]), plan) : e.messages[at])
  const opening = plan.opening.map(text => ({ role: 'user', text, toolUses: [] }))
  return { messages: [...opening, ...rebuilt], tokensBefore: plan.before, tokensAfter: plan.after }
}

let told = false // once in a client, from where the engine said that there is a choice to tell of
export async function tellChoice($, now) {
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

const REST = 5 // turns, as the engine counts them, too
let rested = {} // of the session whose turns end: how many did since the last try, and from where on another one is worth it
export async function keepBelow($, now) {
  const id = await $.session.id(), { line, tokens } = now
  if (rested.id !== id) rested = { id, turns: REST, from: 0 }
  const isDue = ++rested.turns >= REST && line && tokens >= Math.max(line.from, rested.from)
  if (!isDue || (await $.prompt.read()).text) return // who writes is not disturbed: the next turn asks again
  const tried = { ...line }
  Object.assign(rested, { turns: 0, from: tokens * 1.25 })
  await trim($, tried)
  if (tried.remark || tried.rests) rested.from = 0 // else it frees too little at this size
}
