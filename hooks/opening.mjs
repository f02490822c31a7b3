// Owns how a session is opened in the running client, and what becomes of words that are sent meanwhile.

import { quietly } from './asking.mjs'
import { ANSWERED, COMMANDS, HELD, NOT_ALONE } from './commands.mjs'

const LIMIT = 15000 // milliseconds after which the client is taken to wait for something else, such as a turn's end
const TRIES = 20, TICK = 50 // how often, and in which milliseconds, the box is looked into for a trigger that was answered
const queued = [] // prompts that were typed over a running turn: no hook hears when the client sends them
const NAMES = COMMANDS.map(each => each.name)
let filledStep // the next step that was put into the box, until something is sent
let opening // the reply whose session is being opened, until when words for it are held, and those words

export function openSoon($, reply) { // from within a command, for which the switch would wait
  begin(reply)
  $.clock.after(0, () => open($, reply))
}

function begin(reply) {
  if (opening?.reply !== reply) opening = { reply, until: Date.now() + LIMIT, words: [] }
  return opening
}

export async function submit($, e, next) {
  if (opening && Date.now() < opening.until) {
    opening.words.push(e.text) // the session that is left would answer them
    return { drop: HELD }
  }
  const step = filledStep
  filledStep = undefined // so that a second Enter sends it
  if (endsInCommand(step, e.text)) return { drop: NOT_ALONE }
  const sent = await next(e)
  const isQueued = e.turnId !== undefined && sent.drop === undefined
  if (isQueued && e.origin?.kind === 'composer') queued.push(e.text) // none that a machine made
  if (ANSWERED.includes(e.text.trim())) $.clock.after(0, () => quietly($, () => clear($, e.text)))
  return sent
}

async function clear($, text) { // a trigger that was answered comes back into the box, where the next prompt would follow it
  for (let tries = 0; tries < TRIES; tries++) {
    await $.clock.sleep(TICK)
    if ((await $.prompt.read()).text === text) return $.prompt.fill({ text: '' })
  }
}

export async function start($, e, next) { // of a turn: the client names the last of the prompts that it sends together
  if (e.agentId !== undefined) return next(e)
  const words = queued.splice(0, queued.lastIndexOf(e.text) + 1)
  if (words.length && opening && Date.now() < opening.until) { // they stood behind the command
    await $.turn.abort({ turnId: e.turnId })
    opening.words.push(...words)
  }
  return next(e)
}

async function stay($, { by_hand }, words, { text }) { // where the client opened nothing
  const missing = words.filter(each => !text.includes(each))
  if (missing.length) await $.prompt.fill({ text: [...missing, text].filter(Boolean).join('\n') })
  $.ui.log(by_hand)
}

function endsInCommand(step, text) { // whether one of our commands was typed right behind the step in the box
  if (!step || !text.startsWith(step)) return false
  const [, name] = /^\/(\S+)/.exec(text.slice(step.length)) ?? []
  return NAMES.includes(name)
}

export async function open($, reply) {
  const { words } = begin(reply)
  const before = await $.prompt.read()
  await quietly($, () => $.command.run({ command: 'resume', args: reply.open }))
  opening = undefined
  const since = await $.prompt.read()
  if (await $.session.id() !== reply.open) return stay($, reply, words, since)
  if (reply.remark) $.ui.log(reply.remark)
  const typed = before.text + since.text // the client puts held words back into the box, mostly
  const draft = [...words.filter(each => !typed.includes(each)), typed].filter(Boolean).join('\n')
  const text = [reply.fill, draft].filter(Boolean).join('\n')
  if (text) await $.prompt.fill({ text: reply.send ? draft : text })
  if (!reply.send) filledStep = text
  if (reply.send) $.prompt.submit({ text: reply.fill, asUser: true }).catch(() => $.prompt.fill({ text }))
}
