// Draws the pane of /full: the card, or the table after a key.

let card // the engine's answer, when the card was opened, and whether the table is shown
const TURN_KEY = 'turn' // the button has no letter, because a letter would be the first one of a prompt
let openCount = 0 // part of the id, because under the same id the client would draw the previous content

export async function showCard($, content) {
  closeCard($)
  card = { ...content, id: `full-${++openCount}`, openedAt: Date.now() }
  await $.ui.open({ id: card.id, rows: card.tall, columns: card.wide, focus: true, closeOnEscape: true })
}

export function closeCard($, openedBefore = Infinity) { // closes an outdated card
  if (!(card?.openedAt < openedBefore)) return
  $.ui.close({ id: card.id }).catch(() => {})
  card = undefined
}

export function drawCard($, e, next) {
  if (e.requestId !== card?.id) return next(e)
  const { Box, Text, Button } = $.ui.resolve(e)
  const { showsTable, lines, more } = card
  const [label, help] = showsTable ? card.back : card.keys
  const turnCard = () => {
    card.showsTable = !showsTable
    $.ui.invalidate('ui.render')
  }
  const keyLine = h(Box, { gap: 2 },
    h(Button, { key: TURN_KEY, autoFocus: true, plain: true, onPress: turnCard }, label), h(Text, { dimColor: true }, help))
  const rows = (showsTable ? more : lines).map(line => h(Text, {}, line))
  return h(Box, { flexDirection: 'column' }, ...(showsTable ? [keyLine, ...rows] : [...rows, keyLine])) // a tall table scrolls, so its key comes first
}
