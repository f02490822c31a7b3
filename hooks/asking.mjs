// Asks the engine, the user and the session's model.

import { MODEL_MS } from './shared_values.mjs'

const ENGINE_TIMEOUT_MS = 15000 // milliseconds; the engine ends by itself within five seconds

let isHeard = false // whether the client calls us for its own events, which an organization's policy prevents
export function hear() { isHeard = true }

export async function ask($, question, script = 'engine', timeoutMs = ENGINE_TIMEOUT_MS) {
  const { transcriptPath, dataRules } = await $.session.info()
  const event = {
    session_id: await $.session.id(), transcript_path: transcriptPath, ...question, rules: dataRules,
    screen: (await $.session.surfaces()).includes('terminal'), window: (await $.session.usage()).context.window, heard: isHeard,
  }
  const run = await $.process.run(['/bin/sh', `${$.plugin.root}/hooks/${script}`, '--module', event.transcript_path ?? ''], {
    env: await $.process.hookEnv(), stdin: JSON.stringify(event), timeoutMs,
  })
  if (run.exitCode !== 0) throw new Error(run.stderr.trim() || `${run.exitCode}`)
  return JSON.parse(run.stdout)
}

export async function quietly($, work) { // runs work that nobody requested; a failure goes only to the log
  try { return await work() } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
}

export async function fork($, prompt) { // repeats the last request with its answer, followed by a prompt
  const late = new Promise(done => $.clock.after(MODEL_MS, () => done({ reason: 'late' })))
  try { return await Promise.race([$.model.fork({ prompt }), late]) } catch (error) { return { reason: String(error) } }
}

export function say($, { text }) { if (text) $.ui.log(text) }

const MAX_OPENING_TICKS = 100 // the number of ticks in which a session must open
export async function sayIn($, id, reply) { // shows a text in its session; the client may still show another one
  for (let tries = 0; tries < MAX_OPENING_TICKS; tries++) {
    if (await $.session.id() === id) return say($, reply)
    await $.clock.sleep(TICK_MS)
  }
}

async function choice($, { ask, choices }, labels) {
  let chosenLabel
  try { chosenLabel = await $.ui.ask(ask, labels) } catch { chosenLabel = choices.at(-1)[0] }
  return choices.find(([label]) => label === chosenLabel)?.[1] ?? chosenLabel
}

const STILL_MS = 1200, TICK_MS = 200 // milliseconds without a change in the input box before a question that nobody requested
const MIN_ANSWER_MS = 1500 // milliseconds; an earlier answer, or Esc, is a key that was meant for the input box
const MAX_SHOWINGS = 3 // how often a question is shown; if the client refuses to show it, the answer also comes early

async function waitForTyping($, maxMs) { // returns the input box's text when typing has stopped, or nothing if that takes too long
  let { text } = await $.prompt.read(), still = 0
  for (let waited = 0; waited < maxMs; waited += TICK_MS) {
    await $.clock.sleep(TICK_MS)
    const now = (await $.prompt.read()).text
    still = now === text ? still + TICK_MS : 0
    text = now
    if (still >= STILL_MS) return text
  }
}

async function askWhenIdle($, reply, waits, maxMs) { // returns an answer from a user who saw the question; the last answer means no
  const no = reply.choices.at(-1)[1], labels = reply.choices.map(([label]) => label)
  if (waits) labels.unshift(labels.pop()) // Enter chooses to do nothing
  for (let showings = 0; showings < MAX_SHOWINGS; showings++) {
    if ((waits || showings) && await waitForTyping($, maxMs) === undefined) return no
    const openedAt = Date.now()
    const args = await choice($, reply, labels)
    if (Date.now() - openedAt > MIN_ANSWER_MS) return args
  }
  return no
}

export function askUnprompted($, reply, maxMs = Infinity) { // asks a question that nobody requested
  return askWhenIdle($, reply, true, maxMs)
}

async function askAfterCommand($, reply) { // asks after a command: immediately, unless the user is still typing
  return askWhenIdle($, reply, (await $.prompt.read()).text !== '', Infinity)
}

async function returnStrayText($, reply, args) { // puts text that was meant for the input box back into it
  if (reply.choices.some(([, word]) => word === args)) return args
  const { text } = await $.prompt.read()
  await $.prompt.fill({ text: args + text })
  return reply.choices.at(-1)[1]
}

export async function settle($, command, args, given, isCalled = true) {
  let reply = given ?? await ask($, { command, args })
  while (reply.ask) {
    args = isCalled ? await askAfterCommand($, reply) : await returnStrayText($, reply, await askUnprompted($, reply))
    reply = await ask($, { command, args })
  }
  return { ...reply, args } // `args` are the arguments that the reply answers
}
