// Draws the line above the prompt (the band) that shows how full the session is, by the engine's figures.

import { ask } from './asking.mjs'
import { LOOK_TOKENS } from './shared_values.mjs'

let measured = {} // the current session: its figures, and the engine's answer (from which size on to ask, show or compact)

export function forgetBand($) {
  measured = {}
  redrawBand($)
}

function bandText() {
  return measured.band?.replace('{percent}', Math.round(100 * measured.tokens / measured.window))
}

let drawnText // the band's text when the client was last asked to draw it
function redrawBand($) { // only if the text has changed, because the client then draws the whole screen
  if (bandText() === drawnText) return
  drawnText = bandText()
  $.ui.invalidate('ui.render')
}

// `startEvent` is the client's event at a session's start: the client's own figures and id may still be the previous session's.
export async function measureSession($, startEvent) {
  const id = startEvent?.session_id ?? await $.session.id(), { context } = await $.session.usage()
  const tokens = startEvent?.context_tokens ?? context.tokens, modelWindow = context.window // changes with the model
  if (!tokens) return {}
  if (measured.id !== id || measured.modelWindow !== modelWindow) measured = { id, modelWindow, look: LOOK_TOKENS }
  else if (tokens < measured.from) measured = { id, modelWindow, look: measured.from, line: measured.line }
  const current = measured
  current.tokens = tokens
  current.path = startEvent?.transcript_path // so that the engine does not use the previous session's limit
  if (tokens >= current.look) current.answer = askForBand($, current)
  await current.answer // also if it was asked at the start, and the turn ended first
  redrawBand($)
  return current // `tells`: the percentage at which the engine shows a choice; `line`: the compaction to run above a threshold
}

async function askForBand($, current) {
  const { id, look: previousLook, tokens, path } = current
  current.look = Infinity // so that it is asked only once
  try {
    const { look = Infinity, ...more } = await ask($, { command: 'band', tokens, session_id: id, ...path && { transcript_path: path } })
    Object.assign(current, more, { look })
  } catch (error) { // the engine failed, or was too slow on a busy machine: ask again after the next turn
    current.look = previousLook
    $.ui.log(String(error), { to: 'debug' })
  }
}

export function drawBand($, e, next) {
  if (!measured.band) return next(e)
  const { Text } = $.ui.resolve(e)
  return h(Text, { dimColor: true, wrap: 'truncate-end' }, bandText())
}
