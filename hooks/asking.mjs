// Asks the engine, the user and the session's model.

import { MODEL_MS } from './shared_values.mjs'

const ENGINE_TIMEOUT_MS = 15000 // The time limit in milliseconds. The engine itself usually answers within five seconds.

let hasClientCalled = false // Whether the client has called us for one of its own events. An organization's policy can prevent that.
export function recordClientCall() { hasClientCalled = true }

export async function ask($, question, script = 'engine', timeoutMs = ENGINE_TIMEOUT_MS) {
  const { transcriptPath, dataRules } = await $.session.info()
  const event = {
    session_id: await $.session.id(), transcript_path: transcriptPath, ...question, rules: dataRules,
    screen: (await $.session.surfaces()).includes('terminal'), window: (await $.session.usage()).context.window, heard: hasClientCalled,
  }
  const run = await $.process.run(['/bin/sh', `${$.plugin.root}/hooks/${script}`, '--module', event.transcript_path ?? ''], {
    env: await $.process.hookEnv(), stdin: JSON.stringify(event), timeoutMs,
  })
  if (run.exitCode !== 0) throw new Error(run.stderr.trim() || `${run.exitCode}`)
  return JSON.parse(run.stdout)
}

export async function runAndLogError($, work) { // Runs work that the user did not request. A failure is only written to the log.
  try { return await work() } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
}

export async function fork($, prompt) { // Sends a prompt to a copy of the conversation, and returns the model's answer.
  const timedOut = new Promise(done => $.clock.after(MODEL_MS, () => done({ reason: 'late' })))
  try { return await Promise.race([$.model.fork({ prompt }), timedOut]) } catch (error) { return { reason: String(error) } }
}

export function showText($, { text }) { if (text) $.ui.log(text) }

const MAX_OPENING_TICKS = 100 // How many times we check whether the session is open.
export async function showTextInSession($, id, reply) { // Shows a text as soon as its session is open. The client may still show another session.
  for (let tries = 0; tries < MAX_OPENING_TICKS; tries++) {
    if (await $.session.id() === id) return showText($, reply)
    await $.clock.sleep(TICK_MS)
  }
}

async function choice($, { ask, choices }, labels) {
  let chosenLabel
  try { chosenLabel = await $.ui.ask(ask, labels) } catch { chosenLabel = choices.at(-1)[0] }
  return choices.find(([label]) => label === chosenLabel)?.[1] ?? chosenLabel
}

const STILL_MS = 1200, TICK_MS = 200 // A question that the user did not request waits until the input box has not changed for STILL_MS milliseconds.
const MIN_ANSWER_MS = 1500 // An answer that comes earlier, or Esc, was a key press for the input box.
const MAX_SHOWINGS = 3 // How many times a question is shown. If the client can't show the question, the answer also comes too early.

async function waitForTyping($, maxMs) { // Returns the text of the input box when the user has stopped typing. Returns nothing after `maxMs`.
  let { text } = await $.prompt.read(), still = 0
  for (let waited = 0; waited < maxMs; waited += TICK_MS) {
    await $.clock.sleep(TICK_MS)
    const now = (await $.prompt.read()).text
    still = now === text ? still + TICK_MS : 0
    text = now
    if (still >= STILL_MS) return text
  }
}

async function askWhenIdle($, reply, waits, maxMs) { // Returns the answer of a user who has seen the question. The last answer means no.
  const no = reply.choices.at(-1)[1], labels = reply.choices.map(([label]) => label)
  if (waits) labels.unshift(labels.pop()) // Enter chooses the first answer, so the answer that does nothing comes first.
  for (let showings = 0; showings < MAX_SHOWINGS; showings++) {
    if ((waits || showings) && await waitForTyping($, maxMs) === undefined) return no
    const openedAt = Date.now()
    const args = await choice($, reply, labels)
    if (Date.now() - openedAt > MIN_ANSWER_MS) return args
  }
  return no
}

export function askUnprompted($, reply, maxMs = Infinity) { // Asks a question that the user did not request.
  return askWhenIdle($, reply, true, maxMs)
}

async function askAfterCommand($, reply) { // Asks a question after the user's command, immediately if the input box is empty.
  return askWhenIdle($, reply, (await $.prompt.read()).text !== '', Infinity)
}

async function returnStrayText($, reply, args) { // If the answer is text that the user typed for the input box, puts it there.
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
  return { ...reply, args } // `args` are the words to which the engine replied.
}
