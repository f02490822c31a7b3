// Draws the band: a line above the input box that shows how full the session is.

import { ask } from './asking.mjs'
import { FULLNESS_CHECK_TOKENS } from './shared_values.mjs'

let measured = {} // The current session's size, and the engine's answer: the sizes from which to ask again, to show the band, and to compact.

export function forgetBand($) {
  measured = {}
  redrawBand($)
}

function bandText() {
  return measured.band?.replace('{percent}', Math.round(100 * measured.tokens / measured.window))
}

let drawnText // The text of the band when the client was last asked to draw it.
function redrawBand($) { // Asks for it only if the text has changed, because the client draws the whole screen.
  if (bandText() === drawnText) return
  drawnText = bandText()
  $.ui.invalidate('ui.render')
}

// `startEvent` is the client's event at a session's start. At that time the client may still report the previous session.
export async function measureSession($, startEvent) {
  const id = startEvent?.session_id ?? await $.session.id(), { context } = await $.session.usage()
  const tokens = startEvent?.context_tokens ?? context.tokens, modelWindow = context.window // The model's context window.
  if (!tokens) return {}
  if (measured.id !== id || measured.modelWindow !== modelWindow) measured = { id, modelWindow, look: FULLNESS_CHECK_TOKENS }
  else if (tokens < measured.from) measured = { id, modelWindow, look: measured.from, line: measured.line }
  const current = measured
  current.tokens = tokens
  current.path = startEvent?.transcript_path // Without the path, the engine would use the previous session's limit.
  if (tokens >= current.look) current.answer = askForBand($, current)
  await current.answer // Waits even for an answer that was requested at the start.
  redrawBand($)
  return current // `tells` is the percentage at which to show the choice, `line` the compaction to run above a threshold.
}

async function askForBand($, current) {
  const { id, look: previousLook, tokens, path } = current
  current.look = Infinity // The engine is asked only once.
  try {
    const { look = Infinity, ...more } = await ask($, { command: 'band', tokens, session_id: id, ...path && { transcript_path: path } })
    Object.assign(current, more, { look })
  } catch (error) { // The engine failed or was too slow. The next turn asks again.
    current.look = previousLook
    $.ui.log(String(error), { to: 'debug' })
  }
}

export function drawBand($, e, next) {
  if (!measured.band) return next(e)
  const { Text } = $.ui.resolve(e)
  return h(Text, { dimColor: true, wrap: 'truncate-end' }, bandText())
}
