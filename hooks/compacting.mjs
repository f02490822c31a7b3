// Compacts the session: converts the engine's plan into messages for the client.

import { ask, runAndLogError, showText } from './asking.mjs'

const mergeMessages = (rows, plan) => ({ // Merges several messages of the client into one.
  role: rows[0].role,
  text: rows.map(row => plan.texts[row.handle] ?? row.text).filter(Boolean).join('\n\n'),
  toolUses: rows.flatMap(row => row.toolUses ?? []).filter(use => !plan.gone.includes(use.tool_use_id))
    .map(({ tool_use_id, tool, input }) => ({ tool_use_id, tool, input: plan.inputs[tool_use_id] ?? input })),
  toolResults: rows.flatMap(row => row.toolResults ?? []).filter(result => !plan.gone.includes(result.tool_use_id))
    .map(({ tool_use_id, isError, text }) => ({ tool_use_id, isError, text: plan.results[tool_use_id] ?? text })),
})

let pendingRemark // The remark about a compaction that the user did not request. It is shown at the end of the turn, because the client redraws the screen before.
export function showRemark($) {
  if (pendingRemark) $.ui.log(pendingRemark)
  pendingRemark = undefined
}

let request // The compaction that the user or the threshold requested, until the client compacts.
export async function compact($, e, next) {
  const ownRequest = e.trigger === 'manual' && request // An automatic compaction during a turn is not the requested one, which waits for the end of the turn.
  if (e.agentId !== undefined || !(ownRequest || e.trigger === 'auto')) return next(e)
  const messages = e.messages.map(({ handle, role, toolUses, toolResults }) => ({
    handle, role, calls: (toolUses ?? []).map(use => use.tool_use_id), results: (toolResults ?? []).map(result => result.tool_use_id),
  }))
  const question = { command: 'plan', trigger: ownRequest?.trigger ?? e.trigger, options: ownRequest?.options, messages }
  const plan = await ask($, question).catch(error => ownRequest ? { skip: error.message } : {})
  if (ownRequest) ownRequest.rests = plan.rests
  if (plan.skip) return { skip: plan.skip }
  if (ownRequest) ownRequest.remark = plan.remark
  else pendingRemark = plan.remark
  if (!plan.messages) return next(e)
  const rebuilt = plan.messages.map(at => Array.isArray(at) ? mergeMessages(at.map(one => e.messages[one]), plan) : e.messages[at])
  const opening = plan.opening.map(text => ({ role: 'user', text, toolUses: [] }))
  return { messages: [...opening, ...rebuilt], tokensBefore: plan.before, tokensAfter: plan.after }
}

let isChoiceShown = false // A client shows the choice only once.
export async function showChoice($, measured) {
  const percent = Math.round(100 * measured.tokens / measured.window) // The same percentage as in the band. Without a band the window is unknown.
  if (isChoiceShown || !(percent >= measured.tells)) return
  isChoiceShown = true
  await runAndLogError($, async () => showText($, await ask($, { command: 'compaction', args: `${percent}` })))
}

export async function trim($, reply) {
  request = reply
  try { await $.command.run({ command: 'compact', args: reply.compact }) } finally { request = undefined }
  if (reply.remark) $.ui.log(reply.remark)
}

const MIN_TURNS_BETWEEN_COMPACTIONS = 5 // The engine has the same minimum number of turns.
let thresholdState = {} // The current session's turns since the last attempt, and the number of tokens from which another attempt is useful.
export async function compactAboveThreshold($, measured) {
  const id = await $.session.id(), { line, tokens } = measured
  if (thresholdState.id !== id) thresholdState = { id, turns: MIN_TURNS_BETWEEN_COMPACTIONS, from: 0 }
  const isDue = ++thresholdState.turns >= MIN_TURNS_BETWEEN_COMPACTIONS && line && tokens >= Math.max(line.from, thresholdState.from)
  if (!isDue || (await $.prompt.read()).text) return // The user is typing. The next turn tries again.
  const reply = { ...line }
  Object.assign(thresholdState, { turns: 0, from: tokens * 1.25 })
  await trim($, reply)
  if (reply.remark || reply.rests) thresholdState.from = 0 // If the engine declined, a compaction would free too little until the session is larger.
}
