// Draws the pane of /search and /sessions. The engine lists the sessions for the typed text, and acts on keys.
//
// The focus never leaves the input field, so that every letter goes into the search. Up and Down would move the focus.
// They move the mark instead: from session to session, or from action to action on the page of a session.

import { ask, runAndLogError } from './asking.mjs'
import { closeCard } from './card.mjs'
import { openSoon } from './opening.mjs'

const PAUSE_MS = 60 // The list is updated when no key was pressed for this number of milliseconds, because each update starts a process.
const MAX_TRIES = 200, TICK_MS = 10 // How many times, and at what interval in milliseconds, the box is read for text that was typed before the pane got the keys.
const TRIES_PER_READ = 30 // After this number of reads, the text is used even if the user has stopped typing.
const MAX_TYPED_CHARACTERS = 200 // A longer text, or a text of several lines, is a draft that the client has restored.
const QUEUED_PROMPT_MS = 3000 // For this number of milliseconds after the pane has opened, the client may send prompts that were typed after the command.
const SIDE_COLUMNS = 28, MIN_TALL_LINES = 16, MIN_WIDE_COLUMNS = 70 // The width of the field next to the list, in a pane with fewer than MIN_TALL_LINES and at least MIN_WIDE_COLUMNS.
const SPACE = '\u00a0' // A no-break space. It ends a word, and the client draws it.
let openingCount = 0 // If the pane's id stayed the same, the client would draw the old content.
const NAMES = 'names', WORDS = 'words', UP = 'up', DOWN = 'down' // The first step of listing, the input field, and the elements before and after it that get the focus.
let pane // The typed words, the engine's answer, the marked session, and the actions if its page is shown.

export async function showPane($, content) {
  pane = { ...content, id: `sessions-${++openingCount}`, at: '', rows: [], edges: [], preview: [], most: 1, top: 0, turn: 0, remainingSteps: 0, until: Date.now() + QUEUED_PROMPT_MS }
  closeCard($) // If both panes were open, the client would draw their names in a line of the list.
  await raise($, pane)
  $.clock.after(0, () => runAndLogError($, () => collectTypedText($)))
}

function raise($, { id, tall, wide }) {
  return $.ui.open({ id, rows: tall, columns: wide, focus: true, closeOnEscape: true })
}

export async function isForPane($, { text, turnId }) { // Checks whether a prompt is text that the user typed for the list.
  const thisPane = pane
  if (!thisPane || Date.now() >= thisPane.until || turnId !== undefined || isDraft(text)) return false
  if (!await isOpen($, thisPane)) return false
  thisPane.until = Date.now() + QUEUED_PROMPT_MS // The client puts the words back into the input box, where `collectTypedText` reads them.
  return true
}

async function isOpen($, { id }) {
  const panes = await $.ui.panes()
  return panes.some(each => each.id === id)
}

function isDraft(text) {
  return text.length > MAX_TYPED_CHARACTERS || text.includes('\n')
}

async function collectTypedText($) { // Moves text from the input box to the field. While the box has text, the client sends the pane no keys.
  const thisPane = pane
  let { text: before } = await $.prompt.read()
  const isWaiting = tries => Date.now() < thisPane.until || (tries < MAX_TRIES && !thisPane.isFocused)
  for (let tries = 1; thisPane === pane && isWaiting(tries); tries++) {
    await $.clock.sleep(thisPane.isFocused ? PAUSE_MS : TICK_MS)
    const { text } = await $.prompt.read()
    if (isDraft(text)) return
    if (text && (text !== before || tries % TRIES_PER_READ === 0)) { // A key that is pressed before the box is empty is lost, so this is done directly after a key.
      if (!await isOpen($, thisPane)) return // The pane was closed. The user is typing the next prompt.
      await $.prompt.fill({ text: '' })
      type($, thisPane.words + text)
      await raise($, thisPane)
    }
    before = text
  }
}

function startListing($, step, at) {
  pane.listing = listRows($, step, at)
}

function describePane({ words, columns, lines, side, rows }, at) { // Returns the fields of every question, with the hit of the marked session.
  return { command: 'pane', args: words, columns, lines, side, at, ...rows.find(([id]) => id === at)?.[3] }
}

async function listRows($, step, at) { // Ends when the list is complete, or when another call replaces this one.
  const thisPane = pane, turn = ++thisPane.turn
  thisPane.next = step
  await $.clock.sleep(PAUSE_MS)
  while (thisPane.next && turn === thisPane.turn) {
    const question = { ...describePane(thisPane, at ?? thisPane.at), step: thisPane.next }
    const reply = await ask($, question).catch(error => ({ head: error.message, next: '' }))
    if (turn !== thisPane.turn) return
    at = undefined
    Object.assign(thisPane, reply)
    if (reply.rows && thisPane.remainingSteps) return moveMark($, thisPane.remainingSteps)
    $.ui.invalidate('ui.render')
  }
}

function type($, words) {
  Object.assign(pane, { words, remainingSteps: 0, ways: undefined, said: undefined })
  startListing($, NAMES, '')
}

function enter($) { // Acts after the handler of the key, because the client then empties the field.
  const thisPane = pane
  if (thisPane.isEntered) return
  thisPane.isEntered = true // Until this is done, no key moves the mark.
  $.clock.after(0, async () => {
    refill($)
    await runAndLogError($, () => runEntered($))
    thisPane.isEntered = false
  })
}

function refill($) { // The client fills the field again only if the words have changed.
  const { words } = pane
  pane.words = words.endsWith(SPACE) ? words.slice(0, -1) : words + SPACE
  $.ui.invalidate('ui.render')
}

async function runEntered($) {
  const thisPane = pane
  await $.clock.sleep(PAUSE_MS) // Enter may arrive before keys that were pressed earlier.
  const waits = thisPane.next === NAMES || thisPane.remainingSteps || !thisPane.at // If the list is complete, Enter means the session that is marked now.
  if (waits) {
    thisPane.said = thisPane.busy
    $.ui.invalidate('ui.render')
  }
  for (let listing; waits && listing !== thisPane.listing;) await (listing = thisPane.listing)
  thisPane.said = undefined
  const key = thisPane.ways?.[thisPane.way][0]
  if (key === 'list') thisPane.ways = thisPane.said = undefined
  else if (!thisPane.ways) await read($, 0)
  else if (key === 'on') await read($, thisPane.page + 1)
  else if (key === 'back') await read($, thisPane.page - 1)
  else return act($, key)
  $.ui.invalidate('ui.render')
}

async function read($, page) { // Shows a page of the marked session. Page 0 contains the hit.
  const { turn } = pane
  const reply = await askEngine($, { step: 'page', page })
  if (turn === pane.turn || pane.ways) Object.assign(pane, reply)
}

async function act($, key) {
  Object.assign(pane, { said: pane.busy })
  $.ui.invalidate('ui.render')
  const reply = await askEngine($, { key })
  if (reply.said) {
    pane.said = reply.said // The text is shown until the next key.
    return $.ui.invalidate('ui.render')
  }
  await $.ui.close({ id: pane.id })
  if (reply.open) openSoon($, reply)
  else $.ui.log(reply.text)
}

async function askEngine($, what) {
  const reply = await ask($, { ...describePane(pane, pane.at), ...what }).catch(error => ({ head: error.message }))
  return reply.head ? { said: reply.head } : { ...reply, said: undefined }
}

function moveMark($, steps) { // Moves the mark. Steps beyond the loaded rows are done when more rows are loaded.
  pane.said = undefined
  $.ui.invalidate('ui.render')
  if (pane.ways) return pane.way = Math.max(0, Math.min(pane.ways.length - 1, pane.way + steps))
  const from = pane.rows.findIndex(([id]) => id === pane.at)
  const to = Math.max(0, Math.min(pane.rows.length - 1, from + steps))
  pane.at = pane.rows[to]?.[0] ?? ''
  const edge = pane.edges.includes(pane.at)
  pane.remainingSteps = edge ? from + steps - to : 0
  startListing($, edge ? pane.again : pane.next || 'preview')
}

export async function move($, e, next) {
  if (e.requestId !== pane?.id || ![UP, DOWN].includes(e.element)) return next(e)
  if (!pane.isEntered) moveMark($, e.element === UP ? -1 : 1)
  return { deny: 'kept' }
}

function visibleRows() { // Returns the rows that fit, including the marked row.
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
    Object.assign(pane, { columns, lines, side: lines < MIN_TALL_LINES && columns >= MIN_WIDE_COLUMNS ? SIDE_COLUMNS : 0 })
    $.clock.after(0, () => type($, pane.words))
  }
  const { words, placeholder, ways, said, rows } = pane
  const way = ways?.[pane.way]
  const statusText = said ?? (pane.isFocused ? way?.[2] ?? pane.head : pane.away)
  const showsOnlyText = said || !(ways || rows.length) // Only the text is shown.
  const aside = (line, wrap = 'truncate-end') => h(Text, { dimColor: true, wrap }, line)
  const stop = (key, by) => h(Button, { key, plain: true, onPress: () => moveMark($, by) }, SPACE)
  const isBeside = pane.side && !ways
  const field = h(Input, {
    key: WORDS, value: words, placeholder: isBeside ? placeholder.split(',')[0] : placeholder, submitLabel: way?.[1] ?? pane.submitLabel, autoFocus: true, onInput: text => type($, text), onSubmit: () => enter($),
  })
  const list = () => [...visibleRows().flatMap(([id, plain, marked]) => (id === pane.at ? marked : plain).map((line, below) =>
    h(Text, { wrap: 'truncate-end', dimColor: below > 0 && id !== pane.at, bold: id === pane.at }, line))), ...pane.preview.map(line => aside(line))]
  const page = () => [...pane.lines_read.map(line => h(Text, { wrap: 'truncate-end' }, line)),
    h(Box, { columnGap: 2, flexWrap: 'wrap' }, ...ways.map(each => h(Text, { inverse: each === way }, each[1])))]
  if (isBeside) {
    const beside = rows.find(([id]) => id === pane.at)?.[4] ?? []
    return h(Box, {},
      h(Box, { flexDirection: 'column', width: columns - pane.side }, ...showsOnlyText ? [aside(statusText, 'wrap')] : list()),
      h(Box, { flexDirection: 'column', width: pane.side, height: lines, paddingLeft: 1, overflow: 'hidden' },
        h(Box, {}, stop(UP, -1), field, stop(DOWN, 1)), ...showsOnlyText ? [] : [aside(statusText, 'wrap'), ...beside.map(line => h(Text, { wrap: 'truncate-end' }, line))]))
  }
  return h(Box, { flexDirection: 'column' },
    h(Box, {}, stop(UP, -1), field, stop(DOWN, 1), aside(showsOnlyText ? '' : statusText)),
    ...showsOnlyText ? [aside(statusText, 'wrap')] : ways ? page() : list())
}
