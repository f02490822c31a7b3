// Owns the pane of /search and /sessions: it draws what the engine lists of what is typed, and has it act on a key.

import { ask, open } from './asking.mjs'

const PAUSE = 60 // milliseconds without a key after which is looked: each look is a process
let opened = 0 // how often it was: under the same id the client draws what stood there, and what is typed goes there
const DENY = { deny: 'kept' } // the ring stays where it is
const NAMES = 'names', WORDS = 'words', UP = 'up', LIST = 'list', DOWN = 'down' // the first step of a list; what the ring may be on, or be about to go to
let pane // what was typed there, what the engine said of it, the session that is marked, and where the client's ring is

export async function show($, told) {
  pane = { ...told, id: `sessions-${++opened}`, at: '', rows: [], edges: [], preview: [], most: 1, top: 0, turn: 0, owed: 0, ring: WORDS }
  const { id, tall, wide } = pane
  await $.ui.open({ id, rows: tall, columns: wide, focus: true, closeOnEscape: true })
}

function look($, step, at) {
  pane.listed = looking($, step, at)
}

async function looking($, step, at) { // until all is told, or something else is asked for
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
    if (reply.rows && mine.owed) return shift($, mine.owed)
    $.ui.invalidate('ui.render')
  }
}

function type($, words) {
  Object.assign(pane, { words, owed: 0, armed: undefined, said: undefined })
  look($, NAMES, '')
}

async function act($, key, again) {
  if (key === '--all') {
    Object.assign(pane, { everywhere: !pane.everywhere, head: pane.busy })
    return type($, pane.words)
  }
  if (again && pane.armed !== pane.at + key) { // what makes a session is told before it is done
    Object.assign(pane, { armed: pane.at + key, said: again })
    return $.ui.invalidate('ui.render')
  }
  await $.clock.sleep(PAUSE) // a press can overtake the keys that were before it
  Object.assign(pane, { armed: undefined, said: pane.busy })
  $.ui.invalidate('ui.render')
  const waits = pane.next === NAMES || pane.owed || !pane.at // else the session is meant that is marked by now
  for (let listed; waits && listed !== pane.listed;) await (listed = pane.listed)
  let reply
  try { reply = await ask($, { command: 'pane', key, at: pane.at }) } catch (error) { reply = { head: error.message } }
  if (reply.head) {
    pane.said = reply.head // until the next key
    return $.ui.invalidate('ui.render')
  }
  await $.ui.close({ id: pane.id })
  if (reply.open) $.clock.after(0, () => open($, reply))
  else $.ui.log(reply.text)
}

function shift($, steps) { // moves the mark; steps beyond the rows that are known wait for more of them
  const from = pane.rows.findIndex(([id]) => id === pane.at)
  const to = Math.max(0, Math.min(pane.rows.length - 1, from + steps))
  pane.at = pane.rows[to]?.[0] ?? ''
  const edge = pane.edges.includes(pane.at)
  pane.owed = edge ? from + steps - to : 0
  look($, edge ? pane.again : pane.next || 'preview')
  $.ui.invalidate('ui.render')
}

// The client's ring stays on the marked row, between two stops that it never gets to: so each key is one step, however fast
// they come, and none leads out of the list.
export async function move($, e, next) {
  if (e.requestId !== pane?.id) return next(e)
  const to = e.element
  pane.armed = pane.said = undefined
  $.ui.invalidate('ui.render')
  const isFirst = pane.at === pane.rows[0]?.[0] && !pane.edges.includes(pane.at)
  if (to === WORDS || e.origin.kind === 'plugin' || (pane.ring === LIST && to === UP && isFirst)) return land($, e, next, WORDS)
  if (pane.ring === WORDS && !pane.entering) return to && pane.at && !pane.keys.some(key => key[1] === to) ? land($, e, next, LIST) : DENY
  if (to === UP || to === DOWN || pane.entering) shift($, to === UP && !pane.entering ? -1 : 1)
  return DENY
}

async function land($, e, next, element) {
  pane.entering = element === LIST
  const moved = await next({ ...e, element })
  Object.assign(pane, { entering: false }, moved.deny ? {} : { ring: element })
  $.ui.invalidate('ui.render')
  return moved
}

function shown() { // the rows that are drawn: as many as there is room for, the marked one among them
  const { rows, most } = pane, place = rows.findIndex(([id]) => id === pane.at)
  const top = Math.min(Math.max(pane.top, place - most + 1), place < 0 ? 0 : place)
  pane.top = Math.max(0, Math.min(top, rows.length - most))
  return rows.slice(pane.top, pane.top + most)
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
  const press = (key, again) => () => act($, key, again)
  const stop = (key, text) => h(Button, { key, plain: true, onPress: press('open') }, text)
  const keys = pane.ring === WORDS || !e.props.isFocused ? [] : pane.keys // in the field they are letters
  return h(Box, { flexDirection: 'column' },
    h(Input, { key: WORDS, value: words, placeholder, submitLabel, autoFocus: true, onInput: text => type($, text), onSubmit: press('open') }),
    aside(pane.said ?? pane.head),
    ...shown().map(([id, line, marked]) => id !== pane.at ? h(Text, { wrap: 'truncate-end' }, line) :
      h(Box, {}, stop(UP, marked[0]), stop(LIST, marked.slice(1, -1)), stop(DOWN, marked.at(-1)))),
    ...pane.preview.map(aside),
    h(Box, { columnGap: 2, flexWrap: 'wrap' },
      ...keys.map(([hotkey, key, label, again]) => h(Button, { key, hotkey, plain: true, dimColor: true, onPress: press(key, again) }, label)),
      aside(!e.props.isFocused ? pane.away : keys.length ? pane.help : pane.start)))
}
