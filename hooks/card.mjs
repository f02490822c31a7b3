// Draws the pane of /full: the card, and after a key the table instead.

let card // what the engine said, when it was opened, and whether the table is shown
const TURN = 'turn' // it has no letter: that would be the first of a prompt
let opened = 0 // how often: under the same id the client draws what stood there

export async function showCard($, told) {
  closeCard($)
  card = { ...told, id: `full-${++opened}`, at: Date.now() }
  await $.ui.open({ id: card.id, rows: card.tall, columns: card.wide, focus: true, closeOnEscape: true })
}

export function closeCard($, before = Infinity) { // what it says is of then
  if (!(card?.at < before)) return
  $.ui.close({ id: card.id }).catch(() => {})
  card = undefined
}

export function drawCard($, e, next) {
  if (e.requestId !== card?.id) return next(e)
  const { Box, Text, Button } = $.ui.resolve(e)
  const { shown, lines, more } = card
  const [label, help] = shown ? card.back : card.keys
  const turn = () => {
    card.shown = !shown
    $.ui.invalidate('ui.render')
  }
  const keys = h(Box, { gap: 2 },
    h(Button, { key: TURN, autoFocus: true, plain: true, onPress: turn }, label), h(Text, { dimColor: true }, help))
  const rows = (shown ? more : lines).map(line => h(Text, {}, line))
  return h(Box, { flexDirection: 'column' }, ...(shown ? [keys, ...rows] : [...rows, keys])) // the table may be the taller: it scrolls
}
