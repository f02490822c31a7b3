// Asks the engine, the user and the session's model.

import { MODEL_MS } from './shared_values.mjs'

const LIMIT = 15000 // the engine ends by itself within five seconds

let isHeard = false // whether the client calls us for its own events: under an organization's policy it does not
export function hear() { isHeard = true }

export async function ask($, asked, script = 'engine', timeoutMs = LIMIT) {
  const { transcriptPath, dataRules } = await $.session.info()
  const event = {
    session_id: await $.session.id(), transcript_path: transcriptPath, ...asked, rules: dataRules,
    screen: (await $.session.surfaces()).includes('terminal'), window: (await $.session.usage()).context.window, heard: isHeard,
  }
  const run = await $.process.run(['/bin/sh', `${$.plugin.root}/hooks/${script}`, '--module', event.transcript_path ?? ''], {
    env: await $.process.hookEnv(), stdin: JSON.stringify(event), timeoutMs,
  })
  if (run.exitCode !== 0) throw new Error(run.stderr.trim() || `${run.exitCode}`)
  return JSON.parse(run.stdout)
}

export async function quietly($, work) { // what nobody asked for: its failure is for the log
  try { return await work() } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
}

export async function fork($, prompt) { // the last request again, with its answer and a prompt behind it
  const late = new Promise(done => $.clock.after(MODEL_MS, () => done({ reason: 'late' })))
  try { return await Promise.race([$.model.fork({ prompt }), late]) } catch (error) { return { reason: String(error) } }
}

export function say($, { text }) { if (text) $.ui.log(text) }

const OPENS = 100 // ticks that a session has to open
export async function sayIn($, id, told) { // in the session that it is about: the client may still stand in another one
  for (let tries = 0; tries < OPENS; tries++) {
    if (await $.session.id() === id) return say($, told)
    await $.clock.sleep(TICK)
  }
}

async function choice($, { ask, choices }, labels) {
  let chosen
  try { chosen = await $.ui.ask(ask, labels) } catch { chosen = choices.at(-1)[0] }
  return choices.find(([label]) => label === chosen)?.[1] ?? chosen
}

const STILL = 1200, TICK = 200 // milliseconds without a change in the box before a question that nobody called for
const EARLY = 1500 // milliseconds within which an answer, Esc as well, is a key that was meant for the box
const OFTEN = 3 // times that a question is shown: where the client refuses it, its answer is as early

async function settled($, most) { // what stands in the box once nobody types; nothing where that takes too long
  let { text } = await $.prompt.read(), still = 0
  for (let waited = 0; waited < most; waited += TICK) {
    await $.clock.sleep(TICK)
    const now = (await $.prompt.read()).text
    still = now === text ? still + TICK : 0
    text = now
    if (still >= STILL) return text
  }
}

async function considered($, reply, waits, most) { // a choice of who saw the question; the last one means no
  const no = reply.choices.at(-1)[1], labels = reply.choices.map(([label]) => label)
  if (waits) labels.unshift(labels.pop()) // what stands under Enter is to do nothing
  for (let shown = 0; shown < OFTEN; shown++) {
    if ((waits || shown) && await settled($, most) === undefined) return no
    const opened = Date.now()
    const args = await choice($, reply, labels)
    if (Date.now() - opened > EARLY) return args
  }
  return no
}

export function unbidden($, reply, most = Infinity) { // one that nobody called for
  return considered($, reply, true, most)
}

async function bidden($, reply) { // one behind a command: at once, but for who goes on typing meanwhile
  return considered($, reply, (await $.prompt.read()).text !== '', Infinity)
}

async function returned($, reply, args) { // words that were meant for the box go back there
  if (reply.choices.some(([, word]) => word === args)) return args
  const { text } = await $.prompt.read()
  await $.prompt.fill({ text: args + text })
  return reply.choices.at(-1)[1]
}

export async function settle($, command, args, given, isCalled = true) {
  let reply = given ?? await ask($, { command, args })
  while (reply.ask) {
    args = isCalled ? await bidden($, reply) : await returned($, reply, await unbidden($, reply))
    reply = await ask($, { command, args })
  }
  return { ...reply, args } // the words that it answers
}
