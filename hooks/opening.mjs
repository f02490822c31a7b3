// Opens a session in the running client, and holds prompts that are sent meanwhile.

import { quietly } from './asking.mjs'
import { ANSWERED, COMMANDS, HELD, NOT_ALONE } from './commands.mjs'
import { beginDraft, beginDraftWith, endDraft, hasDraft, holdPrompt, restoreDraft, wholePrompt } from './draft.mjs'

const MAX_OPENING_MS = 15000 // milliseconds after which the client is taken to wait for something else, such as a turn's end
const MAX_TRIES = 20, TICK_MS = 50 // how often, and in which milliseconds, the box is looked into for a trigger that was answered
const queued = [] // prompts that were typed over a running turn: no hook hears when the client sends them
const NAMES = COMMANDS.map(each => each.name)
let filledStep // the next step that was put into the box, until something is sent
let opening // the reply whose session is being opened, until when prompts are held, and these, oldest first

export function openSoon($, reply) { // from within a command, for which the switch would wait
  begin(reply)
  $.clock.after(0, () => open($, reply))
}

function begin(reply) {
  if (opening?.reply === reply) return opening
  beginDraft()
  return opening = { reply, until: Date.now() + MAX_OPENING_MS, words: [] }
}

export async function submit($, e, next) {
  if (opening && Date.now() < opening.until) {
    opening.words.push(holdPrompt(e.text)) // the session that is left would answer it
    return { drop: HELD }
  }
  const isEarly = !opening && hasDraft(), text = isEarly ? wholePrompt(e.text) : e.text
  if (text === undefined) return { drop: HELD }
  if (opening) beginDraft('')
  else endDraft()
  const step = filledStep
  filledStep = undefined // so that a second Enter sends it
  if (endsInCommand(step, text)) return { drop: NOT_ALONE }
  if (e.turnId !== undefined && e.origin?.kind === 'composer') queued.push(text) // at once, as typed: a later prompt can be through first
  const sent = await next({ ...e, text })
  if (sent.drop !== undefined) forget(text)
  if (isEarly || ANSWERED.includes(text.trim())) $.clock.after(0, () => quietly($, () => clear($, text)))
  return sent
}

function forget(text) { // of a prompt that another hook stopped
  const at = queued.lastIndexOf(text)
  if (at >= 0) queued.splice(at, 1)
}

async function clear($, text) { // of what was sent, and comes into the box again: the next prompt would follow it
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    await $.clock.sleep(TICK_MS)
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

function endsInCommand(step, text) { // whether one of our commands was typed right behind the step in the box
  if (!step || !text.startsWith(step)) return false
  const [, name] = /^\/(\S+)/.exec(text.slice(step.length).trimStart()) ?? []
  return NAMES.includes(name)
}

export async function open($, reply) {
  try {
    await switchTo($, reply)
  } finally {
    endDraft() // else a failure here would hold back the prompts that follow
  }
}

async function switchTo($, reply) {
  const { words } = begin(reply)
  await quietly($, () => $.command.run({ command: 'resume', args: reply.open }))
  const isOpen = await $.session.id() === reply.open
  opening = undefined // not before: what is sent from here on takes the words that stand before it along
  if (!isOpen) $.ui.log(reply.by_hand)
  else if (reply.remark) $.ui.log(reply.remark)
  if (isOpen && reply.fill && !reply.send) words.unshift(reply.fill)
  if (isOpen && reply.send) $.prompt.submit({ text: reply.fill, asUser: true }).catch(() => quietly($, () => fillBefore($, reply.fill)))
  const draft = beginDraftWith(words)
  if (isOpen && !reply.send) filledStep = draft.trimEnd()
  await restoreDraft($)
}

async function fillBefore($, step) {
  const { text } = await $.prompt.read()
  await $.prompt.fill({ text: [step, text].filter(Boolean).join('\n') })
}
