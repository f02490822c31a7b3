// Opens a session in the running client, and holds prompts that the user sends meanwhile.

import { quietly } from './asking.mjs'
import { ANSWERED_TRIGGERS, COMMANDS, NOT_ALONE, PROMPT_HELD_MESSAGE } from './commands.mjs'
import {
  beginDraft, beginDraftWith, beginDraftWithout, completePrompt, endDraft, hasDraft, holdPrompt, restoreDraft,
} from './draft.mjs'

const MAX_OPENING_MS = 15000 // milliseconds after which prompts are no longer held: the client waits for something else, such as a turn's end
const MAX_TRIES = 20, TICK_MS = 50 // how often, and after how many milliseconds each, the box is read to find an answered trigger
const queuedPrompts = [] // prompts typed during a turn: no hook is called when the client sends them
const NAMES = COMMANDS.map(each => each.name)
let filledStep // the next step that we put into the box, until something is sent
let opening // the newest opening: its reply, until when prompts are held, and the held prompts, oldest first
let lastSwitch = Promise.resolve() // settled after the switch to the session of the previous reply

export function openSoon($, reply) { // called inside a command, whose end the switch would wait for
  beginOpening(reply)
  $.clock.after(0, () => openInTurn($, reply))
}

function beginOpening(reply) { // takes over the draft and the held prompts of an opening that still runs
  if (!opening) beginDraftWithout(filledStep)
  opening = { reply, until: Date.now() + MAX_OPENING_MS, heldPrompts: opening?.heldPrompts ?? [] }
}

export async function submit($, e, next) {
  if (opening && Date.now() < opening.until) {
    opening.heldPrompts.push(holdPrompt(e.text)) // otherwise the old session would answer it
    return { drop: PROMPT_HELD_MESSAGE }
  }
  const isEarly = !opening && hasDraft(), text = isEarly ? completePrompt(e.text) : e.text
  if (text === undefined) return { drop: PROMPT_HELD_MESSAGE }
  if (opening) beginDraft('')
  else endDraft()
  const step = filledStep
  filledStep = undefined // so that a second Enter sends it
  if (endsInCommand(step, text)) return { drop: NOT_ALONE }
  if (e.turnId !== undefined && e.origin?.kind === 'composer') queuedPrompts.push(text) // at once, as typed, because a later prompt may pass first
  const sentPrompt = await next({ ...e, text })
  if (sentPrompt.drop !== undefined) forgetQueued(text)
  if (isEarly || ANSWERED_TRIGGERS.includes(text.trim())) $.clock.after(0, () => quietly($, () => clearBox($, text)))
  return sentPrompt
}

function forgetQueued(text) { // forgets a prompt that another hook stopped
  const index = queuedPrompts.lastIndexOf(text)
  if (index >= 0) queuedPrompts.splice(index, 1)
}

async function clearBox($, text) { // removes a sent prompt that the client puts back, because the next prompt would follow it
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    await $.clock.sleep(TICK_MS)
    if ((await $.prompt.read()).text === text) return $.prompt.fill({ text: '' })
  }
}

export async function startTurn($, e, next) { // the client names only the last of the prompts that it sends together
  if (e.agentId !== undefined) return next(e)
  const prompts = queuedPrompts.splice(0, queuedPrompts.lastIndexOf(e.text) + 1)
  if (prompts.length && opening && Date.now() < opening.until) { // they were queued after the command
    await $.turn.abort({ turnId: e.turnId })
    opening.heldPrompts.push(...prompts)
  }
  return next(e)
}

function endsInCommand(step, text) { // checks whether one of our commands was typed directly after the step in the box
  if (!step || !text.startsWith(step)) return false
  const [, name] = /^\/(\S+)/.exec(text.slice(step.length).trimStart()) ?? []
  return NAMES.includes(name)
}

export function open($, reply) {
  beginOpening(reply)
  return openInTurn($, reply)
}

function openInTurn($, reply) { // waits for the previous switch, because both fill the input box
  const openedSession = lastSwitch.then(() => switchTo($, reply)).finally(() => endOpening(reply))
  lastSwitch = openedSession.catch(() => {})
  return openedSession
}

function endOpening(reply) { // after a failed switch, too: otherwise it would hold all later prompts
  if (opening?.reply === reply) opening = undefined
  if (!opening) endDraft()
}

async function switchTo($, reply) {
  await quietly($, () => $.command.run({ command: 'resume', args: reply.open }))
  const isOpen = await $.session.id() === reply.open
  if (!isOpen) $.ui.log(reply.by_hand)
  if (opening.reply !== reply) return // the next session opens immediately and gets the held prompts
  const { heldPrompts } = opening
  opening = undefined // only now: prompts sent from here on include the text in front of them
  if (isOpen && reply.remark) $.ui.log(reply.remark)
  if (isOpen && reply.fill && !reply.send) heldPrompts.unshift(reply.fill)
  if (isOpen && reply.send) $.prompt.submit({ text: reply.fill, asUser: true }).catch(() => quietly($, () => fillBefore($, reply.fill)))
  const draft = beginDraftWith(heldPrompts)
  if (isOpen && !reply.send) filledStep = draft.trimEnd()
  await restoreDraft($)
}

async function fillBefore($, step) {
  const { text } = await $.prompt.read()
  await $.prompt.fill({ text: [step, text].filter(Boolean).join('\n') })
}
