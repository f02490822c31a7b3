// Draws the pane of /search and /sessions: the engine lists sessions for the typed text, and acts on keys.
//
// The focus never leaves the input field, so that every letter goes into the search. Up and Down, which would move the
// focus, move the mark instead: among the sessions, or among the open session's ways.

import { ask, quietly } from './asking.mjs'
import { closeCard } from './card.mjs'
import { openSoon } from './opening.mjs'

const PAUSE = 60 // milliseconds without a key after which is looked: each look is a process
const TRIES = 200, TICK = 10 // how often, and in which milliseconds, is looked for what was typed before the pane had the keys
const REST = 30 // of these after which no key is waited for
const LONGEST = 200 // characters of that; what is longer, or has lines, is a draft that the client put back
const SOON = 3000 // milliseconds after the opening in which the client sends a prompt that it had queued behind the command
const SIDE = 28, LOW = 16, WIDE = 70 // the columns beside a list with the field, in a pane of fewer lines and at least so many columns
const SPACE = '\u00a0' // ends a word, and is drawn
let opened = 0 // how often it was: under the same id the client draws what stood there, and what is typed goes there
const NAMES = 'names', WORDS = 'words', UP = 'up', DOWN = 'down' // the first step of a list; the field, and the stops beside it
let pane // what was typed there, what the engine said of it, the session that is marked, and the ways once it is open

export async function show($, told) {
  pane = { ...told, id: `sessions-${++opened}`, at: '', rows: [], edges: [], preview: [], most: 1, top: 0, turn: 0, owed: 0, until: Date.now() + SOON }
  closeCard($) // else the client draws the names of both, in a line of the list
  await raise($, pane)
  $.clock.after(0, () => quietly($, () => gather($)))
}

function raise($, { id, tall, wide }) {
  return $.ui.open({ id, rows: tall, columns: wide, focus: true, closeOnEscape: true })
}

export async function holds($, { text, turnId }) { // whether a prompt is what an open list is to look for
  const mine = pane
  if (!mine || Date.now() >= mine.until || turnId !== undefined || isDraft(text)) return false
  if (!await isOpen($, mine)) return false
  mine.until = Date.now() + SOON // the client puts the words back into the box, from which they are taken
  return true
}

async function isOpen($, { id }) {
  const panes = await $.ui.panes()
  return panes.some(each => each.id === id)
}

function isDraft(text) {
  return text.length > LONGEST || text.includes('\n')
}

async function gather($) { // the client gives a pane no keys while something stands in the box
  const mine = pane
  let { text: before } = await $.prompt.read()
  const isWaiting = tries => Date.now() < mine.until || (tries < TRIES && !mine.isFocused)
  for (let tries = 1; mine === pane && isWaiting(tries); tries++) {
    await $.clock.sleep(mine.isFocused ? PAUSE : TICK)
    const { text } = await $.prompt.read()
    if (isDraft(text)) return
    if (text && (text !== before || tries % REST === 0)) { // right behind a key: one that comes before the box is empty is lost
      if (!await isOpen($, mine)) return // the next prompt is being typed
      await $.prompt.fill({ text: '' })
      type($, mine.words + text)
      await raise($, mine)
    }
    before = text
  }
}

function look($, step, at) {
  pane.listed = looking($, step, at)
}

function asked({ words, columns, lines, side, rows }, at) { // what each question names, with the place of the words that were found
  return { command: 'pane', args: words, columns, lines, side, at, ...rows.find(([id]) => id === at)?.[3] }
}

async function looking($, step, at) { // until all is told, or something else is asked for
  const mine = pane, turn = ++mine.turn
  mine.next = step
  await $.clock.sleep(PAUSE)
  while (mine.next && turn === mine.turn) {
    let reply
    try {
      reply = await ask($, { ...asked(mine, at ?? mine.at), step: mine.next })
    } catch (error) { reply = { head: error.message, next: '' } }
    if (turn !== mine.turn) return
    at = undefined
    Object.assign(mine, reply)
    if (reply.rows && mine.owed) return shift($, mine.owed)
    $.ui.invalidate('ui.render')
  }
}

function type($, words) {
  Object.assign(pane, { words, owed: 0, ways: undefined, said: undefined })
  look($, NAMES, '')
}

function enter($) { // apart from the press: when that has been answered the client empties the field
  const mine = pane
  if (mine.isEntered) return
  mine.isEntered = true // until then no key moves the mark
  $.clock.after(0, async () => {
    refill($)
    await quietly($, () => taken($))
    mine.isEntered = false
  })
}

function refill($) { // the client fills the field again only with words other than before
  const { words } = pane
  pane.words = words.endsWith(SPACE) ? words.slice(0, -1) : words + SPACE
  $.ui.invalidate('ui.render')
}

async function taken($) {
  const mine = pane
  await $.clock.sleep(PAUSE) // a press can overtake the keys that were before it
  const waits = mine.next === NAMES || mine.owed || !mine.at // else the session is meant that is marked by now
  if (waits) {
    mine.said = mine.busy
    $.ui.invalidate('ui.render')
  }
  for (let listed; waits && listed !== mine.listed;) await (listed = mine.listed)
  mine.said = undefined
  const key = mine.ways?.[mine.way][0]
  if (key === 'list') mine.ways = mine.said = undefined
  else if (!mine.ways) await read($, 0)
  else if (key === 'on') await read($, mine.page + 1)
  else if (key === 'back') await read($, mine.page - 1)
  else return act($, key)
  $.ui.invalidate('ui.render')
}

async function read($, page) { // opens the session that is marked, at the hit, or another page of it
  const { turn } = pane
  const reply = await answered($, { step: 'page', page })
  if (turn === pane.turn || pane.ways) Object.assign(pane, reply)
}

async function act($, key) {
  Object.assign(pane, { said: pane.busy })
  $.ui.invalidate('ui.render')
  const reply = await answered($, { key })
  if (reply.said) {
    pane.said = reply.said // until the next key
    return $.ui.invalidate('ui.render')
  }
  await $.ui.close({ id: pane.id })
  if (reply.open) openSoon($, reply)
  else $.ui.log(reply.text)
}

async function answered($, what) {
  let reply
  try { reply = await ask($, { ...asked(pane, pane.at), ...what }) } catch (error) { reply = { head: error.message } }
  return reply.head ? { said: reply.head } : { ...reply, said: undefined }
}

function shift($, steps) { // moves the mark; steps beyond the rows that are known wait for more of them
  pane.said = undefined
  $.ui.invalidate('ui.render')
  if (pane.ways) return pane.way = Math.max(0, Math.min(pane.ways.length - 1, pane.way + steps))
  const from = pane.rows.findIndex(([id]) => id === pane.at)
  const to = Math.max(0, Math.min(pane.rows.length - 1, from + steps))
  pane.at = pane.rows[to]?.[0] ?? ''
  const edge = pane.edges.includes(pane.at)
  pane.owed = edge ? from + steps - to : 0
  look($, edge ? pane.again : pane.next || 'preview')
}

export async function move($, e, next) {
  if (e.requestId !== pane?.id || ![UP, DOWN].includes(e.element)) return next(e)
  if (!pane.isEntered) shift($, e.element === UP ? -1 : 1)
  return { deny: 'kept' }
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
  pane.isFocused = e.props.isFocused
  if (pane.columns !== columns || pane.lines !== lines) {
    Object.assign(pane, { columns, lines, side: lines < LOW && columns >= WIDE ? SIDE : 0 })
    $.clock.after(0, () => type($, pane.words))
  }
  const { words, placeholder, ways, said, rows } = pane
  const way = ways?.[pane.way]
  const told = said ?? (pane.isFocused ? way?.[2] ?? pane.head : pane.away)
  const bare = said || !(ways || rows.length) // then there is room for all of it
  const aside = (line, wrap = 'truncate-end') => h(Text, { dimColor: true, wrap }, line)
  const stop = (key, by) => h(Button, { key, plain: true, onPress: () => shift($, by) }, SPACE)
  const isBeside = pane.side && !ways
  const field = h(Input, {
    key: WORDS, value: words, placeholder: isBeside ? placeholder.split(',')[0] : placeholder, submitLabel: way?.[1] ?? pane.submitLabel, autoFocus: true, onInput: text => type($, text), onSubmit: () => enter($),
  })
  const list = () => [...shown().flatMap(([id, plain, marked]) => (id === pane.at ? marked : plain).map((line, below) =>
    h(Text, { wrap: 'truncate-end', dimColor: below > 0 && id !== pane.at, bold: id === pane.at }, line))), ...pane.preview.map(line => aside(line))]
  const page = () => [...pane.lines_read.map(line => h(Text, { wrap: 'truncate-end' }, line)),
    h(Box, { columnGap: 2, flexWrap: 'wrap' }, ...ways.map(each => h(Text, { inverse: each === way }, each[1])))]
  if (isBeside) {
    const beside = rows.find(([id]) => id === pane.at)?.[4] ?? []
    return h(Box, {},
      h(Box, { flexDirection: 'column', width: columns - pane.side }, ...bare ? [aside(told, 'wrap')] : list()),
      h(Box, { flexDirection: 'column', width: pane.side, height: lines, paddingLeft: 1, overflow: 'hidden' },
        h(Box, {}, stop(UP, -1), field, stop(DOWN, 1)), ...bare ? [] : [aside(told, 'wrap'), ...beside.map(line => h(Text, { wrap: 'truncate-end' }, line))]))
  }
  return h(Box, { flexDirection: 'column' },
    h(Box, {}, stop(UP, -1), field, stop(DOWN, 1), aside(bare ? '' : told)),
    ...bare ? [aside(told, 'wrap')] : ways ? page() : list())
}
