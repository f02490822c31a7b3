// Owns the pane of /search and /sessions: it draws what the engine lists of what is typed, and has it act on a key.

import { ask, open } from './asking.mjs'

const PAUSE = 60 // milliseconds without a key after which is looked: each look is a process
let opened = 0 // how often it was: under the same id the client draws what stood there, and what is typed goes there
let pane // what was typed there, what the engine said of it, and the session that is marked

export async function show($, told) {
  pane = { ...told, id: `sessions-${++opened}`, words: '', at: '', head: '', rows: [], edges: [], preview: [], turn: 0 }
  const { id, tall, wide } = pane
  await $.ui.open({ id, rows: tall, columns: wide, focus: true, closeOnEscape: true })
}

async function look($, step, at) { // until all is told, or something else is asked for
  const mine = pane, turn = ++mine.turn
  mine.next = step
  await $.clock.sleep(PAUSE)
  while (mine.next && turn === mine.turn) {
    const { words, everywhere, columns, lines, next } = mine
    let reply
    try {
      reply = await ask($, { command: 'pane', args: words, everywhere, columns, lines, step: next, at: at ?? mine.at })
    } catch (error) { reply = { head: error.message, next: '' } }
    if (turn !== mine.turn) return
    at = undefined
    Object.assign(mine, reply)
    $.ui.invalidate('ui.render')
  }
}

function type($, words) {
  pane.words = words
  pane.listed = look($, 'names', '')
}

async function act($, key) {
  if (key === '--all') {
    pane.everywhere = !pane.everywhere
    return type($, pane.words)
  }
  await pane.listed
  let reply
  try { reply = await ask($, { command: 'pane', key, at: pane.at }) } catch (error) { reply = { head: error.message } }
  if (reply.head) {
    pane.head = reply.head
    return $.ui.invalidate('ui.render')
  }
  await $.ui.close({ id: pane.id })
  if (reply.open) $.clock.after(0, () => open($, reply))
  else $.ui.log(reply.text)
}

export function mark($, e) {
  const at = e.element
  if (e.requestId !== pane?.id || pane.at === at || !pane.rows.some(([id]) => id === at)) return
  pane.at = at
  look($, pane.edges.includes(at) ? pane.again : pane.next || 'preview')
}

export function drawPane($, e, next) {
  if (e.requestId !== pane?.id) return next(e)
  const { Box, Text, Input, Button } = $.ui.resolve(e)
  const columns = e.props.bodyColumns, lines = e.props.scroll.bodyRows
  if (pane.columns !== columns || pane.lines !== lines) {
    Object.assign(pane, { columns, lines })
    $.clock.after(0, () => type($, pane.words))
  }
  const { words, placeholder, submitLabel } = pane
  const aside = line => h(Text, { dimColor: true, wrap: 'truncate-end' }, line)
  const press = key => () => act($, key)
  return h(Box, { flexDirection: 'column' },
    h(Input, { key: 'words', value: words, placeholder, submitLabel, autoFocus: true, onInput: text => type($, text), onSubmit: press('open') }),
    aside(pane.head),
    ...pane.rows.map(([id, line, marked]) => h(Button, { key: id, plain: true, onPress: press('open') }, id === pane.at ? marked : line)),
    ...pane.preview.map(aside),
    h(Box, { gap: 2 },
      ...pane.keys.map(([hotkey, key, label]) => h(Button, { key, hotkey, plain: true, dimColor: true, onPress: press(key) }, label)),
      aside(pane.help)))
}
