// The module by the client's own test kit: what it does with what the engine answers, and where the engine fails.
import { expect, test } from 'claude-code/testing'

const ran = (stdout, exitCode = 0) =>
  async () => ({ value: { exitCode, stdout, stderr: 'ill', isStdoutTruncated: false, isStderrTruncated: false } })

function stand(on, engine) {
  on('session.id', async () => ({ value: 'a' }))
  on('session.info', async () => ({ value: { transcriptPath: '/x/y.jsonl' } }))
  on('session.surfaces', async () => ({ value: ['terminal'] }))
  on('session.usage', async () => ({ value: { context: { window: 200000 } } }))
  on('process.hookEnv', async () => ({ value: {} }))
  on('process.run', engine)
}

test('a text is shown and never reaches the model', async ($, on) => {
  stand(on, ran(JSON.stringify({ text: 'a card' })))
  const shown = await $.command.run({ command: 'resume-hooks:help', args: '' })
  expect(shown.text).toBe('a card')
  expect(shown.isTextDisplayOnly).toBe(true)
})

const FORKED = { wait: 'asking', fork: 'sum up' }

function rolling(on, fork) { // an engine that has the session's own model asked, and keeps what came of it
  const told = []
  stand(on, async (_, e) => {
    const { waiting, forked } = JSON.parse(e.init.stdin)
    if (forked) told.push(forked)
    return ran(JSON.stringify(!waiting ? { wait: 'asking' } : told.length < 2 ? FORKED : { text: 'done' }))()
  })
  on('session.model', async () => ({ value: 'claude-x' }))
  on('ui.status', async () => ({ value: undefined }))
  if (fork) on('model.fork', fork)
  return told
}

test('the session\'s own model is asked between two answers of the engine', async ($, on) => {
  const asked = []
  const told = rolling(on, async (_, e) => {
    asked.push(e.prompt)
    return { value: { isAnswered: true, text: '{}', usage: {} } }
  })
  on('clock.after', () => new Promise(() => {}))
  const shown = await $.command.run({ command: 'resume-hooks:rollover', args: '' })
  expect(shown.text).toBe('done')
  expect(asked).toEqual(['sum up'])
  expect(told).toEqual([{ model: 'claude-x' }, { model: 'claude-x', isAnswered: true, text: '{}', usage: {} }])
})

test('one that never answers is late', async ($, on) => {
  const told = rolling(on, () => new Promise(() => {}))
  on('clock.after', async (_, e) => { expect([0, 120000]).toContain(e.ms); return { value: undefined } })
  await $.command.run({ command: 'resume-hooks:rollover', args: '' })
  expect(told[1]).toEqual({ model: 'claude-x', reason: 'late' })
})

test('one that can\'t be asked gives a reason', async ($, on) => {
  const told = rolling(on)
  on('clock.after', () => new Promise(() => {}))
  await $.command.run({ command: 'resume-hooks:rollover', args: '' })
  expect(told[1].reason.includes('model.fork')).toBe(true)
})

const SAID = [
  { handle: 'h1', role: 'user', text: 'fix it', toolUses: [] },
  { handle: 'h2', role: 'assistant', text: '', toolUses: [{ tool_use_id: 't1', tool: 'Read', input: {} }] },
  { handle: 'h3', role: 'user', text: '', toolUses: [], toolResults: [{ tool_use_id: 't1', isError: false, text: 'a long output' }] },
]

test('a compaction becomes what the engine planned', async ($, on) => {
  const plan = { messages: [0, 1, [2]], opening: ['what was before'], texts: {}, inputs: {}, gone: [], results: { t1: 'CUT' } }
  stand(on, ran(JSON.stringify({ ...plan, before: 9, after: 3 })))
  const held = await $.session.compact({ trigger: 'auto', messages: SAID })
  expect(held.messages.length).toBe(4)
  expect(held.messages[0].text).toBe('what was before')
  expect(held.messages[3].toolResults[0].text).toBe('CUT')
  expect(held.tokensAfter).toBe(3)
})

test('a compaction that the engine fails at is the client\'s own', async ($, on) => {
  on('session.compact', async () => ({ skip: 'the client came to it' }))
  stand(on, ran('', 1))
  const held = await $.session.compact({ trigger: 'auto', messages: SAID })
  expect(held.skip).toBe('the client came to it')
})

test('where the engine fails the command is the classic hook\'s', async ($, on) => {
  stand(on, ran('', 1))
  let passed = ''
  try { await $.command.run({ command: 'resume-hooks:handoff', args: 'go on' }) } catch (error) { passed = String(error) }
  expect(passed.includes('no implementation for command.run')).toBe(true)
})

test('what is typed while the list opens comes whole into it, in its order', async ($, on) => {
  const words = 'fauh huaf in the far hall of a hub', KEY = 40, FILL = 12, LOOK = 60 // milliseconds; a look's own pause runs beside them
  let now = 0, typed = 0, box = '', last = ''
  const pass = ms => { // keys that come in that time go to the box
    for (now += ms; typed < words.length && typed * KEY <= now; typed++) box += words[typed]
  }
  stand(on, async (_, e) => {
    const { command, args } = JSON.parse(e.init.stdin)
    if (command === 'pane') last = args
    return ran(JSON.stringify(command === 'pane' ? { rows: [], edges: [], next: '' } : { pane: { words: '' } }))()
  })
  on('ui.open', async () => ({ value: { isPlaced: true } }))
  on('ui.panes', async () => ({ value: ['sessions-1', 'sessions-2'].map(id => ({ id })) }))
  on('ui.invalidate', async () => ({ value: undefined }))
  on('prompt.read', async () => ({ value: { text: box, cursor: box.length } }))
  on('prompt.fill', async () => { pass(FILL); box = ''; return { isFilled: true, text: box, cursor: 0 } })
  on('clock.sleep', async (_, e) => { if (e.ms !== LOOK) pass(e.ms); return { value: undefined } })
  on('clock.after', async () => ({ value: undefined }))
  on('ui.log', async () => ({ value: undefined }))
  await $.command.run({ command: 'resume-hooks:search', args: '' })
  for (let turn = 0; turn < 500; turn++) await new Promise(done => setTimeout(done, 1))
  expect(typed).toBe(words.length)
  expect(last).toBe(words)
})

test('a start is measured by what it tells, while the client still names the session before it', async ($, on) => {
  const events = []
  stand(on, async (_, e) => {
    events.push(JSON.parse(e.init.stdin))
    return ran('{}')()
  })
  on('classic.SessionStart', async () => ({}))
  on('clock.after', async () => ({ value: undefined }))
  on('ui.invalidate', async () => ({ value: undefined }))
  const told = { session_id: 'b', transcript_path: '/x/b.jsonl' }
  await $.classic.SessionStart({ source: 'resume', context_tokens: 150000, ...told })
  for (let turn = 0; turn < 50; turn++) await new Promise(done => setTimeout(done, 1))
  const [{ command, session_id, transcript_path, tokens }] = events
  expect({ command, session_id, transcript_path, tokens }).toEqual({ command: 'band', ...told, tokens: 150000 })
})
