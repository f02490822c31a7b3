// The tool with which the model asks for a handoff: asks the user, and opens the new session at the end of the turn.

import { ask, runAndLogError, showText, askUnprompted } from './asking.mjs'
import { open } from './opening.mjs'

const MAX_TYPING_MS = 6000 // The number of milliseconds that the call waits while the user types. The client ends a call after 10 seconds.
let agreedStep // The next step to which the user agreed, until the turn ends.
let startReply // The engine's answer at a start. The first of two events requests it.

export function askAtStart($) {
  return startReply ??= runAndLogError($, () => ask($, { command: 'offer' }, 'offered'))
}

export async function registerTools($) {
  let reply = await askAtStart($) ?? {}
  if (reply.look) {
    $.clock.after(0, () => runAndLogError($, async () => showText($, await ask($, { command: 'moved' })))) // Done after this event, because the start would wait.
    reply = reply.offer ? await ask($, { command: 'offer' }) : {}
  }
  for (const tool of reply.tools ?? []) await $.tool.register(tool)
}

export async function answerTool($, e) {
  const question = { command: 'tool', args: e.next_step, agent_id: e.agentId }
  let reply = await ask($, question)
  if (reply.ask) reply = await ask($, { ...question, said: await askUnprompted($, reply, MAX_TYPING_MS) })
  if ('step' in reply) agreedStep = { step: reply.step, id: await $.session.id() }
  return { result: reply.text }
}

export function endTurn($, e) {
  const step = agreedStep
  if (e.agentId || !step) return
  agreedStep = undefined
  if (e.reason === 'answer') $.clock.after(0, () => handOff($, step)) // Done after this event, because the turn would wait.
}

async function handOff($, { step, id }) {
  if (await $.session.id() !== id) return
  const reply = await ask($, { command: 'handoff', args: step, by_model: true }).catch(error => ({ text: error.message }))
  if (reply.open) await open($, reply)
  else $.ui.log(reply.text)
}
