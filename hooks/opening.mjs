// Opens a session in the running client, and keeps the prompts that the user sends meanwhile.

import { runAndLogError } from './asking.mjs'
import { ANSWERED_TRIGGERS, COMMANDS, NOT_ALONE, PROMPT_HELD_MESSAGE } from './commands.mjs'
import {
  beginDraft, beginDraftWith, beginDraftWithout, completePrompt, endDraft, hasDraft, keepPrompt, restoreDraft,
} from './draft.mjs'

const MAX_OPENING_MS = 15000 // After this number of milliseconds, prompts are sent again. The client is waiting for something else, such as the end of a turn.
const MAX_TRIES = 20, TICK_MS = 50 // How many times, and at what interval in milliseconds, the box is read to find a trigger that was answered.
const queuedPrompts = [] // Prompts that were typed during a turn. The client calls no hook when it sends them.
const NAMES = COMMANDS.map(each => each.name)
let filledStep // The next step that we put into the box, until the user sends a prompt.
let opening // The session that is opening: the engine's reply, the time until which prompts are kept, and these prompts, oldest first.
let lastSwitch = Promise.resolve() // Resolves when the client has switched to the previous session.

export function openSoon($, reply) { // For a call from a command. The switch waits for the end of that command.
  beginOpening(reply)
  $.clock.after(0, () => openInTurn($, reply))
}

function beginOpening(reply) { // Keeps the draft and the prompts of another session that is still opening.
  if (!opening) beginDraftWithout(filledStep)
  opening = { reply, until: Date.now() + MAX_OPENING_MS, keptPrompts: opening?.keptPrompts ?? [] }
}

export async function submit($, e, next) {
  if (opening && Date.now() < opening.until) {
    opening.keptPrompts.push(keepPrompt(e.text)) // Without this, the old session would answer the prompt.
    return { drop: PROMPT_HELD_MESSAGE }
  }
  const isEarly = !opening && hasDraft(), text = isEarly ? completePrompt(e.text) : e.text
  if (text === undefined) return { drop: PROMPT_HELD_MESSAGE }
  if (opening) beginDraft('')
  else endDraft()
  const step = filledStep
  filledStep = undefined // A second Enter sends the text.
  if (endsInCommand(step, text)) return { drop: NOT_ALONE }
  if (e.turnId !== undefined && e.origin?.kind === 'composer') queuedPrompts.push(text) // Done before the next hook, because a later prompt may be sent first.
  const sentPrompt = await next({ ...e, text })
  if (sentPrompt.drop !== undefined) forgetQueued(text)
  if (isEarly || ANSWERED_TRIGGERS.includes(text.trim())) $.clock.after(0, () => runAndLogError($, () => clearBox($, text)))
  return sentPrompt
}

function forgetQueued(text) { // Forgets a prompt that another hook blocked.
  const index = queuedPrompts.lastIndexOf(text)
  if (index >= 0) queuedPrompts.splice(index, 1)
}

async function clearBox($, text) { // Empties the box if the client has put a sent prompt back, because the next prompt would be appended to it.
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    await $.clock.sleep(TICK_MS)
    if ((await $.prompt.read()).text === text) return $.prompt.fill({ text: '' })
  }
}

export async function startTurn($, e, next) { // The client reports only the last of several prompts that it sends together.
  if (e.agentId !== undefined) return next(e)
  const prompts = queuedPrompts.splice(0, queuedPrompts.lastIndexOf(e.text) + 1)
  if (prompts.length && opening && Date.now() < opening.until) { // The prompts were typed after the command that opens a session.
    await $.turn.abort({ turnId: e.turnId })
    opening.keptPrompts.push(...prompts)
  }
  return next(e)
}

function endsInCommand(step, text) { // Checks whether one of our commands was typed after the next step in the box.
  if (!step || !text.startsWith(step)) return false
  const [, name] = /^\/(\S+)/.exec(text.slice(step.length).trimStart()) ?? []
  return NAMES.includes(name)
}

export function open($, reply) {
  beginOpening(reply)
  return openInTurn($, reply)
}

function openInTurn($, reply) { // Waits for the previous switch, because both fill the input box.
  const openedSession = lastSwitch.then(() => switchTo($, reply)).finally(() => endOpening(reply))
  lastSwitch = openedSession.catch(() => {})
  return openedSession
}

function endOpening(reply) { // Also called after a failed switch, because all later prompts would otherwise be held back.
  if (opening?.reply === reply) opening = undefined
  if (!opening) endDraft()
}

async function switchTo($, reply) {
  await runAndLogError($, () => $.command.run({ command: 'resume', args: reply.open }))
  const isOpen = await $.session.id() === reply.open
  if (!isOpen) $.ui.log(reply.by_hand)
  if (opening.reply !== reply) return // Another session is opening already, and gets the prompts.
  const { keptPrompts } = opening
  opening = undefined // From now on, prompts contain the text before them.
  if (isOpen && reply.remark) $.ui.log(reply.remark)
  if (isOpen && reply.fill && !reply.send) keptPrompts.unshift(reply.fill)
  if (isOpen && reply.send) $.prompt.submit({ text: reply.fill, asUser: true }).catch(() => runAndLogError($, () => fillBefore($, reply.fill)))
  const draft = beginDraftWith(keptPrompts)
  if (isOpen && !reply.send) filledStep = draft.trimEnd()
  await restoreDraft($)
}

async function fillBefore($, step) {
  const { text } = await $.prompt.read()
  await $.prompt.fill({ text: [step, text].filter(Boolean).join('\n') })
}
