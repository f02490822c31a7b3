// The tool with which the model requests a handoff: asks the user, and switches the session at the turn's end.

import { ask, quietly, say, askUnprompted } from './asking.mjs'
import { open } from './opening.mjs'

const PATIENCE = 6000 // milliseconds that the call waits for who types; the client ends it after 10 seconds
let agreed // what the person agreed to, until the turn of it ends
let begun // what a start is told, asked for by the first of the two events that come with it

export function look($) {
  return begun ??= quietly($, () => ask($, { command: 'offer' }, 'offered'))
}

export async function equip($) {
  let reply = await look($) ?? {}
  if (reply.look) {
    $.clock.after(0, () => quietly($, async () => say($, await ask($, { command: 'moved' })))) // not from inside: the start would wait
    reply = reply.offer ? await ask($, { command: 'offer' }) : {}
  }
  for (const tool of reply.tools ?? []) await $.tool.register(tool)
}

export async function serve($, e) {
  const asked = { command: 'tool', args: e.next_step, agent_id: e.agentId }
  let reply = await ask($, asked)
  if (reply.ask) reply = await ask($, { ...asked, said: await askUnprompted($, reply, PATIENCE) })
  if ('step' in reply) agreed = { step: reply.step, id: await $.session.id() }
  return { result: reply.text }
}

export function part($, e) {
  const wish = agreed
  if (e.agentId || !wish) return
  agreed = undefined
  if (e.reason === 'answer') $.clock.after(0, () => leave($, wish)) // not from inside: the turn would wait
}

async function leave($, { step, id }) {
  if (await $.session.id() !== id) return
  let reply
  try { reply = await ask($, { command: 'handoff', args: step, by_model: true }) } catch (error) { reply = { text: error.message } }
  if (reply.open) await open($, reply)
  else $.ui.log(reply.text)
}
