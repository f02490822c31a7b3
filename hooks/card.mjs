// Draws the pane of /full: the card, or the table if the user presses a key.

let card // The engine's answer, the time at which the card was opened, and whether the table is shown.
const TURN_KEY = 'turn' // The button is not a letter, because a letter may be the beginning of a prompt.
let openCount = 0 // A part of the pane's id. If the id stayed the same, the client would draw the old content.

export async function showCard($, content) {
  closeCard($)
  card = { ...content, id: `full-${++openCount}`, openedAt: Date.now() }
  await $.ui.open({ id: card.id, rows: card.tall, columns: card.wide, focus: true, closeOnEscape: true })
}

export function closeCard($, openedBefore = Infinity) { // Closes a card that was opened before this time.
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
  return h(Box, { flexDirection: 'column' }, ...(showsTable ? [keyLine, ...rows] : [...rows, keyLine])) // A long table scrolls, so the key comes first.
}
