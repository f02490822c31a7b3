// Owns what our commands do inside the client (2.1.287 and later): asks the engine and does what it answers. Every
// judgement and every word is the engine's; a hook that fails here leaves the classic hooks and their cards.
//
// The client reads this file before it runs it: event names stand as literals, and `$` goes only to functions at the top.

const READING = { immediate: true }
const COMMANDS = [
  ['handoff', 'Go on in a fresh session that knows this one and its ancestors', '[next step]'],
  ['trim', 'Go on in a copy without old tool output; asks first', '[options]'],
  ['untrim', 'Go on in a copy in which what was trimmed is back', ''],
  ['search', 'Find what was said in this project; --all: in every project', '[--all] words', READING],
  ['find', 'Find what was said in this project; --all: in every project', '[--all] words', READING],
  ['lineage', "Show this session's ancestors, oldest first", '', READING],
  ['sessions', 'List the newest sessions of this project; --all: of every project', '[--all]', READING],
]
const LIMIT = 15000 // the engine ends by itself within five seconds

const ask = async ($, command, args, screen) => {
  const event = {
    command, args, screen, session_id: await $.session.id(), transcript_path: (await $.session.info()).transcriptPath,
  }
  const run = await $.process.run(['sh', `${$.plugin.root}/hooks/engine`, '--module'], {
    env: await $.process.hookEnv(), stdin: JSON.stringify(event), timeoutMs: LIMIT,
  })
  if (run.exitCode !== 0) throw new Error(run.stderr.trim() || `${run.exitCode}`)
  return JSON.parse(run.stdout)
}

const open = async ($, reply) => {
  const before = await $.prompt.read()
  try { await $.command.run({ command: 'resume', args: reply.open }) } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
  if (await $.session.id() !== reply.open) return $.ui.log(reply.by_hand)
  const since = await $.prompt.read()
  const text = [reply.fill, before.text + since.text].filter(Boolean).join('\n')
  if (text) await $.prompt.fill({ text })
}

const answer = async ($, command, args) => {
  const screen = (await $.session.surfaces()).includes('terminal')
  let reply = await ask($, command, args, screen)
  while (reply.ask) {
    const choices = reply.choices
    let chosen
    try { chosen = await $.ui.ask(reply.ask, choices.map(([label]) => label)) } catch { chosen = choices.at(-1)[0] }
    const [, word] = choices.find(([label]) => label === chosen) ?? [chosen, chosen]
    reply = await ask($, command, word, screen)
  }
  if (!reply.open) return { text: reply.text, isTextDisplayOnly: true }
  $.clock.after(0, () => open($, reply)) // not from inside: the switch would wait for this very command
  return {}
}

const ours = new Set() // a name that the person's own command or another plugin has is theirs
const bare = ($, e, next) => ours.has(e.command) ? answer($, e.command, e.args) : next(e)
const tell = ($, e, next) => ({ text: next.error.message, isTextDisplayOnly: true })

const prefixed = ($, e) => answer($, e.command.split(':')[1], e.args)
const leave = ($, e, next) => next(e) // to the classic hook, which has its own answer

export function register(on) {
  on('session.start', async ($, e, next) => {
    for (const [name, description, argumentHint, more] of COMMANDS) {
      try {
        await $.command.register({ name, description, argumentHint, ...more })
        ours.add(name)
      } catch (error) { $.ui.log(String(error), { to: 'debug' }) }
    }
    return next(e)
  })
  on('command.run', { command: 'handoff' }, bare).catch(tell)
  on('command.run', { command: 'trim' }, bare).catch(tell)
  on('command.run', { command: 'untrim' }, bare).catch(tell)
  on('command.run', { command: 'search' }, bare).catch(tell)
  on('command.run', { command: 'find' }, bare).catch(tell)
  on('command.run', { command: 'lineage' }, bare).catch(tell)
  on('command.run', { command: 'sessions' }, bare).catch(tell)
  on('command.run', { command: 'resume-hooks:handoff' }, prefixed).catch(leave)
  on('command.run', { command: 'resume-hooks:trim' }, prefixed).catch(leave)
  on('command.run', { command: 'resume-hooks:search' }, prefixed).catch(leave)
  on('command.run', { command: 'resume-hooks:lineage' }, prefixed).catch(leave)
}
